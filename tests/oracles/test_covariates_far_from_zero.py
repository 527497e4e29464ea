"""Covariates known in some rows that lie far from 0: the fit is that of centred ones, in about as many iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import caviar as cv

N, FAR = 200, 1000.0
OBS = cv.Plate("obs")
Case = tuple[cv.Model, dict[str, Any]]


def location(name: str, **plates: Any) -> cv.Normal:
    """Return a location whose prior says nearly the same of both places."""
    return cv.Normal(name, 0.0, 1e-8, **plates)


def number(name: str = "x", mean: Any = None) -> cv.Normal:
    own = location(f"mean of {name}") if mean is None else mean
    return cv.Normal(name, own, cv.Gamma(f"precision of {name}", 1, 1), plates=OBS)


def line_of(x: Any) -> Any:
    return location("a") + location("b") * x


def holes(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Return values with 30% of the rows missing."""
    gone = rng.random(N) < 0.3
    return np.where(gone.reshape(-1, *(1,) * (values.ndim - 1)), np.nan, values)


def one(rng: np.random.Generator, at: float) -> Case:
    x = rng.normal(0.0, 2.0, N)
    y = 1.0 + 0.5 * x + 0.7 * rng.normal(size=N)
    return cv.Model(cv.Normal("y", line_of(number()), cv.Gamma("tau", 1, 1), plates=OBS)), {
        "x": holes(rng, x + at),
        "y": y,
    }


def two(rng: np.random.Generator, at: float) -> Case:
    """Two, of which one depends on the other."""
    x = rng.normal(0.0, 2.0, N)
    w = 0.3 * x + rng.normal(size=N)
    y = 1.0 + 0.5 * x - 0.8 * w + 0.7 * rng.normal(size=N)
    first = number()
    second = number("w", location("start") + location("slope") * first)
    line = line_of(first) + location("c") * second
    data = {"x": holes(rng, x + at), "w": holes(rng, w + at), "y": y}
    return cv.Model(cv.Normal("y", line, cv.Gamma("tau", 1, 1), plates=OBS)), data


def beside_complete_and_yes(rng: np.random.Generator, at: float) -> Case:
    """A complete column that is as far, and a number 0 or 1 that is known in part, too."""
    x, s = rng.normal(0.0, 2.0, N), (rng.random(N) < 0.4).astype(float)
    w = 0.3 * x + rng.normal(size=N)
    y = 1.0 + 0.5 * x - 0.8 * w + s + 0.7 * rng.normal(size=N)
    yes = cv.Bernoulli("s", cv.Beta("p", 1, 1), plates=OBS)
    line = line_of(number()) + location("c") * cv.Data("w", plates=OBS) + location("d") * yes
    data = {"x": holes(rng, x + at), "w": w + at, "s": holes(rng, s), "y": y}
    return cv.Model(cv.Normal("y", line, cv.Gamma("tau", 1, 1), plates=OBS)), data


def answers(rng: np.random.Generator, at: float) -> Case:
    x = rng.normal(0.0, 2.0, N)
    y = (rng.random(N) < 1 / (1 + np.exp(-0.3 - 0.5 * x))).astype(float)
    return cv.Model(cv.Bernoulli("y", cv.logistic(line_of(number())), plates=OBS)), {
        "x": holes(rng, x + at),
        "y": y,
    }


def vector(rng: np.random.Generator, at: float) -> Case:
    x = 2.0 * rng.normal(size=(N, 3))
    y = 1.0 + x @ [0.5, -0.3, 0.2] + 0.7 * rng.normal(size=N)
    hidden = cv.MultivariateNormal(
        "x", cv.NormalWishart("own", np.zeros(3), 1e-8, 4.0, np.eye(3)), plates=OBS
    )
    slopes = cv.MultivariateNormal("b", np.zeros(3), 1e-8 * np.eye(3))
    line = location("a") + cv.dot(slopes, hidden)
    data = {"x": holes(rng, x + at), "y": y}
    return cv.Model(cv.Normal("y", line, cv.Gamma("tau", 1, 1), plates=OBS)), data


def beside_scores(rng: np.random.Generator, at: float) -> Case:
    """A hidden score of the row, with loadings, on which the columns depend, too."""
    x, u, column = rng.normal(0.0, 2.0, N), rng.normal(size=N), cv.Plate("column", 3)
    y = np.column_stack([1 + 0.5 * x + u, 2 - 0.3 * x + 0.7 * u, 0.5 * x - 0.6 * u])
    y += 0.4 * rng.normal(size=y.shape)
    line = location("a", plates=column) + location("b", plates=column) * number()
    line = line + cv.Normal("loading", 0, 1, plates=column) * cv.Normal("score", 0, 1, plates=OBS)
    data = {"x": holes(rng, x + at), "y": y}
    return cv.Model(cv.Normal("y", line, cv.Gamma("tau", 1, 1, plates=column), plates=(OBS, column))), data


def labelled(rng: np.random.Generator, at: float) -> Case:
    """A hidden label of the row chooses the mean of the covariate."""
    z, side = rng.random(N) < 0.4, cv.Plate("side", 2)
    x = np.where(z, 3.0, -3.0) + rng.normal(size=N)
    y = 1.0 + 0.5 * x + 0.7 * rng.normal(size=N)
    label = cv.Categorical("z", cv.Dirichlet("shares", [1.0, 1.0]), plates=OBS)
    line = line_of(number(mean=location("of sides", plates=side)[label]))
    return cv.Model(cv.Normal("y", line, cv.Gamma("tau", 1, 1), plates=OBS)), {
        "x": holes(rng, x + at),
        "y": y,
    }


CASES = (one, two, beside_complete_and_yes, answers, vector, beside_scores, labelled)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_a_fit_is_the_same_from_wherever_a_covariate_is_measured(
    case: Callable[..., Case], seed: int
) -> None:
    (model, centred), (_, far) = (case(np.random.default_rng(seed), at) for at in (0.0, FAR))
    near, found = (model.fit(data, tol=1e-9, seed=0) for data in (centred, far))
    assert found.n_iter <= near.n_iter + 20
    # a shift has no Jacobian; the prior of what is 1,000 away says less by half of 1e6 times its precision
    assert found.elbo == pytest.approx(near.elbo, abs=0.015)
    for name in {"b", "c", "d", "slope", "tau"} & model.variables.keys():
        np.testing.assert_allclose(found.mean(name), near.mean(name), rtol=2e-3)
        np.testing.assert_allclose(found.sd(name), near.sd(name), rtol=0.01)
    hidden, other = (own.local(data)["x"] for own, data in ((near, centred), (found, far)))
    np.testing.assert_allclose(other.mean - FAR, hidden.mean, atol=0.01)
    spread = "covariance" if case is vector else "variance"
    np.testing.assert_allclose(getattr(other, spread), getattr(hidden, spread), rtol=0.01, atol=1e-9)

    rows = np.random.default_rng(6).normal(size=(5, 3))
    known = {name: np.array([0.0, 1.0, 0.0, 1.0, 1.0]) for name in {"s"} & centred.keys()}
    columns = {name: rows if case is vector else rows[:, place] for place, name in enumerate(("x", "w"))}
    columns = {name: own for name, own in columns.items() if name in centred}
    # by the factors: weighted draws of two fits differ by chance
    told, again = (
        model.fit(data, tol=1e-9, seed=0, uncertainty="mean_field").predict(
            {**{name: values + at for name, values in columns.items()}, **known}
        )["y"]
        for data, at in ((centred, 0.0), (far, FAR))
    )
    np.testing.assert_allclose(again.mean, told.mean, rtol=2e-3, atol=2e-3)
    if case is not answers:
        np.testing.assert_allclose(again.standard_deviation, told.standard_deviation, rtol=0.01)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_hidden_label_may_choose_the_line_of_a_covariate_far_from_zero(seed: int) -> None:
    found = []
    for at in (0.0, FAR):
        rng, side = np.random.default_rng(seed), cv.Plate("side", 2)
        x, z = rng.normal(0.0, 2.0, N), rng.random(N) < 0.4
        y = np.where(z, 3.0 + x, -3.0 - 0.5 * x) + 0.5 * rng.normal(size=N)
        label = cv.Categorical("z", cv.Dirichlet("shares", [1.0, 1.0]), plates=OBS)
        line = location("a", plates=side)[label] + location("b", plates=side)[label] * number()
        model = cv.Model(cv.Normal("y", line, cv.Gamma("tau", 1, 1), plates=OBS))
        found.append(model.fit({"x": holes(rng, x + at), "y": y}, tol=1e-9, seed=0))
    near, far = found
    assert far.n_iter <= near.n_iter + 20
    assert far.elbo == pytest.approx(near.elbo, abs=0.02)
    order, other = (np.argsort(own.mean("b")) for own in found)
    np.testing.assert_allclose(far.mean("b")[other], near.mean("b")[order], rtol=2e-3)
    np.testing.assert_allclose(far.sd("b")[other], near.sd("b")[order], rtol=0.01)


def test_evidence_and_coefficients_are_those_of_quadrature() -> None:
    """Given its coefficients, the density of a row is known: both are integrated over a grid about the far mean."""
    rng, n = np.random.default_rng(3), 40
    x = rng.normal(FAR, 2.0, n)
    y = 1.0 + 0.5 * (x - FAR) + 0.7 * rng.normal(size=n)
    gone = rng.random(n) < 0.4
    hidden = cv.Normal("x", FAR, 0.25, plates=OBS)
    prior = 1e-4
    model = cv.Model(
        cv.Normal("y", cv.Normal("a", 0, prior) + cv.Normal("b", 0, 1) * hidden, 2.0, plates=OBS)
    )
    data = {"x": np.where(gone, np.nan, x), "y": y}
    posterior = model.fit(data, tol=1e-12, seed=0)

    level, b = (own.ravel() for own in np.meshgrid(np.linspace(-1.5, 3.5, 301), np.linspace(-0.5, 1.5, 301)))
    log_joint = stats.norm.logpdf(level - FAR * b, 0.0, prior**-0.5) + stats.norm.logpdf(b)
    for own_x, own_y, is_gone in zip(x, y, gone, strict=True):
        if is_gone:
            log_joint += stats.norm.logpdf(own_y, level, np.sqrt(0.5 + 4.0 * b**2))
        else:
            log_joint += stats.norm.logpdf(own_x, FAR, 2.0)
            log_joint += stats.norm.logpdf(own_y, level + b * (own_x - FAR), np.sqrt(0.5))
    evidence = logsumexp(log_joint) + np.log(5.0 / 300 * 2.0 / 300)
    shares = np.exp(log_joint - logsumexp(log_joint))
    for name, values in {"b": b, "a": level - FAR * b}.items():
        mean = shares @ values
        sd = np.sqrt(shares @ np.square(values - mean))
        assert abs(posterior.mean(name) - mean) < 0.05 * sd
        assert posterior.sd(name) == pytest.approx(sd, rel=0.03)
    assert evidence - 0.2 < posterior.elbo < evidence
    drawn = posterior.importance_sample(data, n_draws=4000, seed=0)
    assert drawn.log_evidence == pytest.approx(evidence, abs=0.03)


@pytest.mark.parametrize("case", [one, two])
def test_linear_response_has_its_digits_from_wherever_a_covariate_is_measured(
    case: Callable[..., Case],
) -> None:
    """The intercept and the slope nearly determine each other, and their squares and product even more."""
    told = []
    for at in (0.0, FAR):
        model, data = case(np.random.default_rng(0), at)
        told.append(model.fit(data, tol=1e-12, uncertainty="mean_field", seed=0).linear_response(data))
    near, found = told
    assert found.log_determinant == pytest.approx(near.log_determinant, abs=1e-3)
    for name in ("b", "tau", "mean of x", "precision of x"):
        assert found.sd(name) == pytest.approx(near.sd(name), rel=1e-3)


def test_a_saved_fit_goes_on_with_new_rows_far_from_zero(tmp_path: Any) -> None:
    (model, centred), (_, far) = (two(np.random.default_rng(4), at) for at in (0.0, FAR))
    more = [two(np.random.default_rng(5), at)[1] for at in (0.0, FAR)]
    found = []
    for name, data, new in zip(("near", "far"), (centred, far), more, strict=True):
        model.fit(data, tol=1e-10, seed=0).save(tmp_path / name)
        found.append(cv.load(tmp_path / name).update(new, tol=1e-10, seed=0))
    near, other = found
    assert other.n_iter <= near.n_iter + 20
    for name in ("b", "c", "slope"):
        assert other.mean(name) == pytest.approx(near.mean(name), abs=1e-4)
        assert other.sd(name) == pytest.approx(near.sd(name), rel=0.01)
    values = [own.local(data)["x"] for own, data in zip(found, more, strict=True)]
    np.testing.assert_allclose(values[1].mean - FAR, values[0].mean, atol=2e-3)
    np.testing.assert_allclose(values[1].variance, values[0].variance, atol=1e-3)
