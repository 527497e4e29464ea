"""Examples of the BUGS manuals, with the priors of these, beside quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, multigammaln

import caviar as cv

NAN = np.nan

CAMEL = np.array(
    [[1, 1], [1, -1], [-1, 1], [-1, -1], *[[2, NAN]] * 2, *[[-2, NAN]] * 2, *[[NAN, 2]] * 2, *[[NAN, -2]] * 2]
)
"""Vectors seen in part, of which either sign of the correlation explains the second moments."""

DOSE = np.repeat([0.0, 10.0, 33.0, 100.0, 333.0, 1000.0], 3)
COLONIES = np.array([15, 21, 29, 16, 18, 21, 16, 26, 33, 27, 41, 60, 33, 38, 41, 20, 27, 42])
"""Of salmonella on plates with a dose of quinoline, three plates each."""


def _camel_by_quadrature() -> tuple[float, np.ndarray, np.ndarray]:
    """Return log evidence, and means and standard deviations of the precision, by sums over a grid."""
    logs, angle = np.linspace(-2.2, 2.2, 61), np.linspace(-3.5, 3.5, 121)
    first, second, bend = np.meshgrid(logs, logs, angle, indexing="ij")
    rho = np.tanh(bend)
    # of the covariance; the volume is that of the three entries of the precision
    a, b = np.exp(2 * first), np.exp(2 * second)
    determinant = a * b * (1 - rho**2)
    p, q, r = b / determinant, a / determinant, -rho * np.sqrt(a * b) / determinant
    df = 4.0
    prior = (
        0.5 * (df - 3) * np.log(p * q - r**2)
        - 0.5 * (p + q)
        - 0.5 * df * 2 * np.log(2)
        - multigammaln(df / 2, 2)
    )
    # d(p, q, r) / d(log sd, log sd, rho) is 4 / ((a b)^(3/2) (1 - rho^2)^3)
    volume = np.log(4.0) - 1.5 * np.log(a * b) - 3 * np.log1p(-(rho**2)) + np.log1p(-(rho**2))
    total = prior + volume
    for row in CAMEL:
        if np.isnan(row).any():
            (value,), variance = row[~np.isnan(row)], b if np.isnan(row[0]) else a
            total = total - 0.5 * np.log(2 * np.pi * variance) - 0.5 * value**2 / variance
        else:
            x, y = row
            total = total - np.log(2 * np.pi) + 0.5 * np.log(p * q - r**2)
            total = total - 0.5 * (p * x * x + 2 * r * x * y + q * y * y)
    cell = np.log((logs[1] - logs[0]) ** 2 * (angle[1] - angle[0]))
    evidence = logsumexp(total) + cell
    weights = np.exp(total + cell - evidence)
    means = np.array([np.sum(weights * own) for own in (p, q, r)])
    sds = np.sqrt([np.sum(weights * own**2) - mean**2 for own, mean in zip((p, q, r), means, strict=True)])
    return float(evidence), means, sds


def test_camel() -> None:
    """Entries that are missing have a factor each row: the fit is not exact, nor is its saddle point an end."""
    obs = cv.Plate("obs")
    precision = cv.Wishart("precision", 4.0, np.eye(2))
    data = {"y": CAMEL}
    posterior = cv.Model(cv.MultivariateNormal("y", np.zeros(2), precision, plates=obs)).fit(data, seed=0)
    evidence, means, sds = _camel_by_quadrature()
    assert not posterior.is_exact
    assert abs(posterior["precision"].mean[0, 1]) > 0.2  # zero is the saddle point
    shown, spread = posterior.mean("precision"), posterior.sd("precision")
    places = (np.array([0, 1, 0]), np.array([0, 1, 1]))
    np.testing.assert_allclose(shown[places], means, atol=0.1 * sds.max())
    np.testing.assert_allclose(spread[places], sds, rtol=0.1)
    told = posterior.evidence(data, seed=0)
    assert posterior.elbo < evidence - 0.5
    assert abs(told.value - evidence) < 0.1
    assert posterior.interval_remark


def test_a_saved_fit_to_vectors_seen_in_part_is_not_exact(tmp_path) -> None:
    obs = cv.Plate("obs")
    model = cv.Model(
        cv.MultivariateNormal("y", np.zeros(2), cv.Wishart("precision", 4.0, np.eye(2)), plates=obs)
    )
    posterior = model.fit({"y": CAMEL}, seed=0, uncertainty="mean_field")
    posterior.save(tmp_path / "camel.caviar")
    assert not cv.load(tmp_path / "camel.caviar").is_exact
    assert model.fit({"y": CAMEL[:4]}).is_exact


@pytest.mark.thinned(3)
@pytest.mark.starts_of_users
@pytest.mark.parametrize(("size", "vague"), [(30.0, 1e-4), (1000.0, 1e-4), (10_000.0, 0.1)])
def test_salmon_starts_near_its_counts(size: float, vague: float) -> None:
    """Effects of plates went to minus a million before anything was known of the dose."""
    columns = np.column_stack(
        [np.ones(18), np.log(DOSE + 10) - np.log(DOSE + 10).mean(), (DOSE - DOSE.mean()) / 1000]
    )
    plate = cv.Plate("plate")
    w = cv.MultivariateNormal("w", np.zeros(3), vague * np.eye(3))
    own = cv.Normal("own", 0.0, cv.Gamma("tau", 1.0, 0.1), plates=plate)
    mean = cv.exp(cv.dot(cv.Data("X", plates=plate), w) + own)
    posterior = cv.Model(cv.NegativeBinomial("y", mean, size, plates=plate)).fit(
        {"y": COLONIES, "X": columns}, seed=0
    )
    assert posterior.converged
    assert posterior.n_iter < 200
    # Poisson with these effects, by Hamiltonian Monte Carlo: 3.31, 0.31 and -0.98
    np.testing.assert_allclose(posterior["w"].mean, [3.31, 0.31, -0.98], atol=0.06)


def _of_effects(
    log_density: Callable[[np.ndarray], np.ndarray], levels: np.ndarray, shape: float, rate: float
) -> tuple[float, float, tuple[float, float]]:
    """Return mean and sd of the level, and the 90% interval of the precision of effects, by quadrature.

    The log density is that of the rows of each group, (..., groups, nodes), at predictors of shape (..., 1, nodes).
    """
    logs = np.linspace(-3.0, 8.0, 221)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    total = np.empty((len(levels), len(logs)))
    for place, log in enumerate(logs):
        each = log_density(levels[:, None, None] + np.exp(-log / 2) * nodes)
        total[:, place] = logsumexp(each, b=weights, axis=2).sum(axis=1) + shape * log - rate * np.exp(log)
    density = np.exp(total - total.max())
    density /= density.sum()
    mean = density.sum(axis=1) @ levels
    ends = np.interp([0.05, 0.95], np.cumsum(density.sum(axis=0)), logs)
    return mean, np.sqrt(density.sum(axis=1) @ levels**2 - mean**2), tuple(np.exp(ends))


@pytest.mark.parametrize("centred", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_surgical(centred: bool) -> None:
    """The effect of each hospital, a row of its own, has one factor with the level where figures are integrated."""
    n = np.array([47, 148, 119, 810, 211, 196, 148, 215, 207, 97, 256, 360])
    y = np.array([0, 18, 8, 46, 8, 13, 9, 31, 14, 8, 29, 24])
    hospital = cv.Plate("hospital")
    level, between = cv.Normal("level", 0.0, 1e-6), cv.Gamma("between", 1.0, 0.1)
    own = cv.Normal("own", level if centred else 0.0, between, plates=hospital)
    chance = cv.logistic(own if centred else level + own)
    model = cv.Model(cv.Binomial("y", cv.Data("n", plates=hospital), chance, plates=hospital))
    posterior = model.fit({"y": y, "n": n}, seed=0)
    mean, sd, ends = _of_effects(
        lambda eta: y[:, None] * eta - n[:, None] * np.logaddexp(0.0, eta),
        np.linspace(-4.0, -1.2, 141),
        1.0,
        0.1,
    )
    assert posterior.uncertainty == "integrated"
    assert abs(posterior.mean("level") - mean) < 0.05 * sd
    np.testing.assert_allclose(posterior.sd("level"), sd, rtol=0.06)
    np.testing.assert_allclose(posterior.interval("between", 0.9), ends, rtol=0.06)
    asked = model.fit({"y": y, "n": n}, seed=0, uncertainty="integrated")
    np.testing.assert_allclose(asked.sd("level"), posterior.sd("level"), rtol=1e-6)
    # the factor of the fit is as it was, and so are figures that are asked for
    plain = model.fit({"y": y, "n": n}, seed=0, uncertainty="linear_response")
    assert plain.uncertainty == "linear_response"
    assert posterior.elbo == plain.elbo


@pytest.mark.parametrize("n_rows", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_counts_of_patients(n_rows: int) -> None:
    """As Epil: counts with more variance than a Poisson, of patients with an effect each, integrated as answers are."""
    rng, size = np.random.default_rng(2), 50.0
    patients = np.repeat(np.arange(20), n_rows)
    y = rng.poisson(np.exp(1.5 + 0.5 * rng.normal(size=20)[patients]))
    row = cv.Plate("row")
    level, between = cv.Normal("level", 0.0, 1e-3), cv.Gamma("between", 1.0, 0.1)
    data: dict[str, np.ndarray] = {"y": y}
    if n_rows == 1:
        own: Any = cv.Normal("own", 0.0, between, plates=row)
    else:
        data["patient"] = patients
        own = cv.Normal("own", 0.0, between, plates=cv.Plate("patients", 20))[cv.Data("patient", plates=row)]
    posterior = cv.Model(cv.NegativeBinomial("y", cv.exp(level + own), size, plates=row)).fit(data, seed=0)
    sums = np.bincount(patients, y)[:, None]

    def log_density(eta: np.ndarray) -> np.ndarray:
        return sums * eta - (sums + n_rows * size) * np.log(size + np.exp(eta))

    mean, sd, ends = _of_effects(log_density, np.linspace(0.6, 2.4, 141), 1.0, 0.1)
    assert posterior.uncertainty == "integrated"
    assert abs(posterior.mean("level") - mean) < 0.05 * sd
    np.testing.assert_allclose(posterior.sd("level"), sd, rtol=0.05)
    np.testing.assert_allclose(posterior.interval("between", 0.9), ends, rtol=0.06)


def test_effects_that_are_not_integrated_over_are_in_doubt() -> None:
    """Of many rows with an effect each, and of grades, whose link has no expectation that would tell."""
    rng, row = np.random.default_rng(0), cv.Plate("row")
    own = cv.Normal("own", 0.0, cv.Gamma("between", 1.0, 1.0), plates=row)
    model = cv.Model(cv.Binomial("y", 10, cv.logistic(cv.Normal("level", 0.0, 0.1) + own), plates=row))
    told = model.fit({"y": rng.binomial(10, 0.4, size=310)}, seed=0)
    assert "own[Data('row', plates=row)] with Plate('rows', 310)" in told.interval_remark
    group = rng.integers(30, size=90)
    grade = np.searchsorted([-0.5, 0.7], rng.normal(size=30)[group] + rng.normal(size=90))
    own = cv.Normal("own", 0.0, cv.Gamma("between", 1.0, 1.0), plates=cv.Plate("groups", 30))
    probabilities = cv.ordered(own[cv.Data("group", plates=row)], cv.Thresholds("cut", 2))
    told = cv.Model(cv.Categorical("y", probabilities, plates=row)).fit({"y": grade, "group": group}, seed=0)
    assert "in doubt" in told.interval_remark


def test_animals_that_are_there() -> None:
    """A chance that a prior holds at zero has no digits to second order, which says nothing of the others."""
    seen = np.repeat(np.arange(6), [175, 29, 24, 15, 5, 2])
    animal, there = cv.Plate("animal"), cv.Plate("there", 2)
    z = cv.Categorical("z", cv.Dirichlet("share", [1.0, 1.0]), plates=animal)
    chance = cv.Beta("chance", [1e-6, 1.0], [1e6, 1.0], plates=there)
    posterior = cv.Model(cv.Binomial("y", 5, chance[z], plates=animal)).fit({"y": seen}, seed=0)
    grid = np.linspace(0.002, 0.998, 499)
    p, share = np.meshgrid(grid, grid, indexing="ij")
    total = np.zeros_like(p)
    for value, count in zip(*np.unique(seen, return_counts=True), strict=True):
        total += count * np.log(share * p**value * (1 - p) ** (5 - value) + (1 - share) * (value == 0))
    weights = np.exp(total - total.max())
    weights /= weights.sum()
    for name, own in (("chance", p), ("share", share)):
        mean = np.sum(weights * own)
        sd = np.sqrt(np.sum(weights * own**2) - mean**2)
        assert abs(posterior.mean(name)[1] - mean) < 0.05 * sd
        assert posterior.sd(name)[1] == pytest.approx(sd, rel=0.02)
    assert posterior.uncertainty == "second_order"
    assert "doubt" not in posterior.interval_remark


def test_effects_of_rows_are_integrated_over_in_every_fit_of_equal_models() -> None:
    """The nodes of the first of them are those of all its bound models."""
    y = np.random.default_rng(3).binomial(12, 0.4, size=14)
    for _ in range(2):
        row = cv.Plate("row")
        own = cv.Normal("own", 0.0, cv.Gamma("between", 2.0, 1.0), plates=row)
        model = cv.Model(cv.Binomial("y", 12, cv.logistic(cv.Normal("level", 0.0, 0.1) + own), plates=row))
        assert model.fit({"y": y}, seed=0).uncertainty == "integrated"


@pytest.mark.parametrize(
    ("n_missing", "remark"),
    [
        pytest.param(0, "weighted draws", marks=pytest.mark.slow),
        (5, "'own' of a row and the hidden"),
    ],
)
def test_effects_of_rows_beside_a_covariate_are_drawn_or_in_doubt(n_missing: int, remark: str) -> None:
    """A column with a distribution is no effect, whether or not it is known in all rows."""
    rng, row = np.random.default_rng(3), cv.Plate("row")
    x = rng.normal(size=20)
    own = cv.Normal("own", 0.0, cv.Gamma("between", 2.0, 1.0), plates=row)
    hidden = cv.Normal("x", cv.Normal("m", 0.0, 0.1), cv.Gamma("q", 1.0, 1.0), plates=row)
    line = cv.Normal("level", 0.0, 0.1) + cv.Normal("slope", 0.0, 0.1) * hidden + own
    model = cv.Model(cv.Binomial("y", 12, cv.logistic(line), plates=row))
    y = rng.binomial(12, 1 / (1 + np.exp(0.3 - x - 0.7 * rng.normal(size=20))))
    told = model.fit({"x": np.where(np.arange(20) < n_missing, np.nan, x), "y": y}, seed=0)
    assert remark in told.interval_remark


@pytest.mark.starts_of_users
def test_stagnant_begins_at_the_best_change() -> None:
    """Both lines follow the first guess of where they meet, and hold it there: at 18.1 nats, and not at 25.7."""
    x = np.array(
        [-1.39, -1.39, -1.08, -1.08, -0.94, -0.80, -0.63, -0.63, -0.25, -0.25, -0.12, -0.12, 0.01, 0.11, 0.11]
    )
    x = np.append(x, [0.11, 0.25, 0.25, 0.34, 0.34, 0.44, 0.59, 0.70, 0.70, 0.85, 0.85, 0.99, 0.99, 1.19])
    y = np.array([1.12, 1.12, 0.99, 1.03, 0.92, 0.90, 0.81, 0.83, 0.65, 0.67, 0.60, 0.59, 0.51, 0.44, 0.43])
    y = np.append(
        y, [0.43, 0.33, 0.30, 0.25, 0.24, 0.13, -0.01, -0.13, -0.14, -0.30, -0.33, -0.46, -0.43, -0.65]
    )
    grid = np.linspace(-1.3, 1.1, 49)
    obs, change = cv.Plate("obs"), cv.Plate("change", len(grid))
    c = cv.Categorical("c", np.full(len(grid), 1 / len(grid)))
    level, before, after = (cv.Normal(name, 0.0, 1e-6) for name in ("level", "before", "after"))
    left, right = (cv.Data(name, plates=(obs, change)) for name in ("left", "right"))
    mean = level + before * left[c] + after * right[c]
    model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1e-3, 1e-3), plates=obs))
    away = x[:, None] - grid
    data = {"y": y, "left": np.minimum(away, 0), "right": np.maximum(away, 0)}
    found = model.fit(data, seed=0)
    best = max(model.fit(data, init={"c": k}, uncertainty="mean_field").elbo for k in range(22, 33))
    assert found.elbo > best - 1e-6
    # least squares at each change, the coefficients integrated out, has .030 +- .032
    assert abs(grid[found["c"].probabilities.argmax()] - 0.03) < 0.032
