"""Starts of values that labels choose parents for, and of which several observed variables tell.

One of the observed variables lies about the value itself, and another about a multiple of it, so that no values can be
measured from the mean of the data.
"""

import numpy as np
import pytest
from thinning import amount

import caviar as cv
from starts.case import TOLERANCE, Problem, cases_of


def _measured_twice(levels, *, size=1.0, level=0.0, missing=0.0):
    def make(rng):
        n, k, true = 240, len(levels), size * np.asarray(levels) + level
        labels = rng.integers(k, size=n)
        hidden = true[labels] + 0.7 * size * rng.normal(size=n)
        y = hidden + 0.5 * size * rng.normal(size=n)
        other = 2 * hidden + size + 0.5 * size * rng.normal(size=n)
        y[rng.random(n) < missing] = np.nan
        o, kind, unit = cv.Plate("o"), cv.Plate("kind", k), size**-2
        z = cv.Categorical("z", cv.Dirichlet("w", np.ones(k)), plates=o)
        mean = cv.Normal("m", level, 0.05 * unit, plates=kind)
        precision = cv.Gamma("p", 1, size**2, plates=kind)
        u = cv.Normal("u", mean[z], precision[z], plates=o)
        scaled = u * cv.Normal("b", 0, 0.1) + cv.Normal("c", 0, 0.1 * unit)
        model = cv.Model(
            cv.Normal("y", u, 4 * unit, plates=o),
            cv.Normal("other", scaled, cv.Gamma("t", 1, size**2), plates=o),
        )
        return Problem(model, {"y": y, "other": other}, {"m": true, "b": 2.0, "c": size}, n)

    return make


def _vectors(rng):
    n, true, weights = 240, np.array([[-4.0, 0], [4, 0], [0, 5]]), np.array([1.0, -2])
    hidden = true[rng.integers(3, size=n)] + 0.7 * rng.normal(size=(n, 2))
    data = {
        "y": hidden + 0.5 * rng.normal(size=(n, 2)),
        "other": hidden @ weights + 0.3 * rng.normal(size=n),
    }
    o, kind = cv.Plate("o"), cv.Plate("kind", 3)
    z = cv.Categorical("z", cv.Dirichlet("w", np.ones(3)), plates=o)
    mean = cv.MultivariateNormal("m", np.zeros(2), np.eye(2) / 20, plates=kind)
    precision = cv.Wishart("p", 3.0, np.eye(2), plates=kind)
    u = cv.MultivariateNormal("u", mean[z], precision[z], plates=o)
    scaled = cv.dot(u, cv.MultivariateNormal("b", np.zeros(2), np.eye(2) / 10))
    model = cv.Model(
        cv.MultivariateNormal("y", u, 4 * np.eye(2), plates=o),
        cv.Normal("other", scaled, cv.Gamma("t", 1, 1), plates=o),
    )
    return Problem(model, data, {"m": true, "b": weights}, n)


CASES = cases_of(
    measured_twice=_measured_twice([-4, 0, 4]),
    measured_twice_in_large_units=_measured_twice([-4, 0, 4, 9], size=1e3),
    measured_twice_far_from_zero_and_missing_in_part=_measured_twice([-4, 0, 4], level=100, missing=0.3),
    vectors_measured_twice=_vectors,
)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hidden_values_begin_at_what_is_measured_of_them(case):
    assert max(case.shortfalls(amount(2, 5))) < TOLERANCE


@pytest.mark.slow
def test_a_weight_of_two_is_the_row_twice_from_given_labels():
    problem = CASES[2].problem()
    rng = np.random.default_rng(0)
    weights, labels = rng.integers(1, 4, size=problem.rows), rng.integers(3, size=problem.rows)
    twice = {name: np.repeat(values, weights) for name, values in problem.data.items()}
    once = problem.model.fit(
        problem.data, sample_weight=weights, init={"z": labels}, max_iter=1, accelerate=False
    )
    again = problem.model.fit(twice, init={"z": np.repeat(labels, weights)}, max_iter=1, accelerate=False)
    assert once.elbo == pytest.approx(again.elbo, rel=1e-10)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(4))
def test_components_of_censored_values_are_found(seed):
    """Values behind what is recorded began at 1, as those that nothing is known of: fits ended 0.4 nats a row lower."""
    rng = np.random.default_rng(seed)
    z, middles = rng.integers(3, size=240), np.array([45.0, 50.0, 55.0])
    y = middles[z] + 0.8 * rng.normal(size=240)
    row, kind = cv.Plate("row"), cv.Plate("kind", 3)
    label = cv.Categorical("label", cv.Dirichlet("shares", np.ones(3)), plates=row)
    mean, tau = cv.Normal("mean", 50, 0.01, plates=kind), cv.Gamma("tau", 1, 1, plates=kind)
    censored = cv.Data("censored", plates=row)
    model = cv.Model(cv.CensoredNormal("y", mean[label], tau[label], censored=censored, plates=row))
    data = {"y": np.minimum(y, 54.0), "censored": (y > 54.0).astype(int)}
    elbo = model.fit(data, init={"mean": middles, "tau": np.full(3, 1.5)}).elbo
    assert model.fit(data).elbo == pytest.approx(elbo, abs=0.24)
