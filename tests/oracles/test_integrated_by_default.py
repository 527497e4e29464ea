"""Stated models show posteriors integrated over the globals that separate the others, as dense grids have them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, ndtr

import caviar as cv
from caviar.posterior.integration.integrated import Weighted
from caviar.posterior.integration.separating import separating

OBS = cv.Plate("obs")
EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def half_t(name: str, scale: float) -> cv.Gamma:
    """Return a precision whose standard deviation is half-t with 4 degrees of freedom."""
    return cv.Gamma(name, 2.0, cv.Gamma(f"rate of {name}", 0.5, 0.25 / scale**2))


def log_half_t(log_precision: np.ndarray, scale: float) -> np.ndarray:
    sd = np.exp(-0.5 * log_precision)
    return stats.t.logpdf(sd / scale, 4) + np.log(sd)


def log_gamma(log_precision: np.ndarray, shape: float, rate: float) -> np.ndarray:
    return shape * log_precision - rate * np.exp(log_precision)


@dataclass
class Exact:
    """Normal marginals (points, entries) at the points of a grid of log precisions, and the weights of these."""

    mean: np.ndarray
    variance: np.ndarray
    weights: np.ndarray
    precisions: Mapping[str, np.ndarray]

    @classmethod
    def of(
        cls,
        axes: Mapping[str, np.ndarray],
        log_prior: Callable[..., np.ndarray],
        rows: tuple[np.ndarray, np.ndarray, np.ndarray],
        precision: Callable[..., tuple[np.ndarray, np.ndarray]],
    ) -> Exact:
        """Return the posterior of y = Xb + noise, a Normal for known precisions.

        ``precision`` has the diagonal of the prior precision of b, (points, p), and the precision of the rows.
        """
        y, X, weights = rows
        grid = [own.ravel() for own in np.meshgrid(*axes.values(), indexing="ij")]
        of_prior, of_rows = precision(*grid)
        counted = of_rows * weights
        A = np.einsum("sn,ni,nj->sij", counted, X, X)
        A[:, np.arange(X.shape[1]), np.arange(X.shape[1])] += of_prior
        h = (counted * y) @ X
        covariance = np.linalg.inv(A)
        mean = (covariance @ h[..., None])[..., 0]
        log_density = 0.5 * (np.log(of_prior).sum(axis=1) - np.linalg.slogdet(A)[1] + (h * mean).sum(axis=1))
        log_density += 0.5 * (np.log(of_rows) * weights - counted * y**2).sum(axis=1) + log_prior(*grid)
        shares = np.exp(log_density - log_density.max())
        variance = np.diagonal(covariance, axis1=1, axis2=2)
        named = dict(zip(axes, map(np.exp, grid), strict=True))
        return cls(mean, variance, shares / shares.sum(), named)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        mean = self.weights @ self.mean
        return mean, np.sqrt(self.weights @ (self.variance + (self.mean - mean) ** 2))

    def below(self, ends: np.ndarray) -> np.ndarray:
        """Return the probability below an end of each entry of b."""
        return self.weights @ ndtr((ends - self.mean) / np.sqrt(self.variance))


def groups_of(
    seed: int, n_groups: int, n: int, sd: float, *, empty: int = 0, missing: int = 0, weighted: bool = False
) -> tuple[dict[str, Any], Any, Exact]:
    """Return data of groups, weights of the rows, and the exact posterior of :func:`level_and_groups`."""
    rng = np.random.default_rng(seed)
    g = np.append(np.arange(n_groups), rng.integers(0, n_groups, n - n_groups))
    y = 1.0 + sd * rng.normal(size=n_groups)[g] + rng.normal(size=n)
    weights = rng.choice([0.5, 1.0, 2.0], n) if weighted else np.ones(n)
    size = n_groups + empty
    X = np.column_stack([np.ones(n), g[:, None] == np.arange(size)])
    kept = np.ones(n, dtype=bool)
    kept[n - missing :] = False

    def precision(between: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        of_groups = np.repeat(np.exp(between)[:, None], size, axis=1)
        return np.column_stack([np.full(len(between), 0.5), of_groups]), np.exp(tau)[:, None]

    exact = Exact.of(
        {"between": np.linspace(-5.0, 16.0, 120), "tau": np.linspace(-2.5, 2.0, 60)},
        lambda between, tau: log_half_t(between, 2.0) + log_half_t(tau, 2.0),
        (y[kept], X[kept], weights[kept]),
        precision,
    )
    data = {"g": g, "y": np.where(kept, y, np.nan)}
    return data, weights if weighted else None, exact


def level_and_groups(n_groups: int) -> cv.Model:
    effect = cv.Normal("effect", 0.0, half_t("between", 2.0), plates=cv.Plate("group", n_groups))
    at = cv.Normal("mu", 0.0, 0.5) + effect[cv.Data("g", plates=OBS)]
    return cv.Model(cv.Normal("y", at, half_t("tau", 2.0), plates=OBS))


CASES = {
    "one group": {"n_groups": 1, "n": 12, "sd": 1.0},
    "two groups": {"n_groups": 2, "n": 12, "sd": 1.0},
    "no spread": {"n_groups": 6, "n": 40, "sd": 0.0},
    "groups without rows": {"n_groups": 5, "n": 30, "sd": 1.0, "empty": 2},
    "missing": {"n_groups": 5, "n": 30, "sd": 0.5, "missing": 6},
    "weights": {"n_groups": 5, "n": 30, "sd": 1.0, "weighted": True},
}


@pytest.mark.thinned(6)
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("case", CASES)
def test_a_level_and_groups_are_those_of_a_grid(case, seed):
    data, weights, exact = groups_of(seed, **CASES[case])
    n_groups = CASES[case]["n_groups"] + CASES[case].get("empty", 0)
    posterior = level_and_groups(n_groups).fit(data, sample_weight=weights)
    assert posterior.uncertainty == "integrated"
    mean, sd = exact.moments()
    shown = np.append(posterior.mean("mu"), posterior.mean("effect"))
    np.testing.assert_allclose(shown, mean, atol=0.02 * sd.min())
    np.testing.assert_allclose(np.append(posterior.sd("mu"), posterior.sd("effect")), sd, rtol=0.02)
    lower, upper = np.column_stack([posterior.interval("mu", 0.9), posterior.interval("effect", 0.9)])
    inside = exact.below(upper) - exact.below(lower)
    np.testing.assert_allclose(inside, 0.9, atol=0.035)
    for name in ("between", "tau"):
        own, ends = exact.precisions[name], posterior.interval(name, 0.9)
        np.testing.assert_allclose(
            np.log(ends), np.log(Weighted(own, exact.weights).interval(0.9)), atol=0.12
        )


def exact_of_schools() -> tuple[Weighted, tuple[float, float]]:
    """Return the precision between the schools, and mean and sd of the common effect."""
    log_between = np.linspace(-12.0, 14.0, 2000)
    precision = 1.0 / (ERROR**2 + np.exp(-log_between)[:, None])
    total = precision.sum(axis=1) + 1 / 400.0
    center = precision @ EFFECT / total
    log_density = 0.5 * (np.log(precision) - precision * EFFECT**2).sum(axis=1)
    log_density += 0.5 * (total * center**2 - np.log(total)) + log_half_t(log_between, 10.0)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ center
    return Weighted(np.exp(log_between), weights), (
        mean,
        np.sqrt(weights @ (1 / total + (center - mean) ** 2)),
    )


def test_groups_without_rows_about_a_level_are_forecasts():
    """Of the level, as of the sum of a level and an effect, by the law of total variance."""
    data, _, exact = groups_of(0, 5, 30, 1.0)
    level = cv.Normal("level", cv.Normal("mu", 0.0, 0.5), half_t("between", 2.0), plates=cv.Plate("group", 7))
    posterior = cv.Model(cv.Normal("y", level[cv.Data("g", plates=OBS)], half_t("tau", 2.0), plates=OBS)).fit(
        data
    )
    assert posterior.uncertainty == "integrated"
    mean = exact.moments()[0][0]
    given = exact.variance[:, 0] + 1.0 / exact.precisions["between"]
    sd = np.sqrt(exact.weights @ (given + (exact.mean[:, 0] - mean) ** 2))
    np.testing.assert_allclose(posterior.mean("level")[5:], mean, atol=0.02 * sd)
    np.testing.assert_allclose(posterior.sd("level")[5:], sd, rtol=0.02)


@pytest.mark.parametrize("plate", ["schools", "rows"])
def test_eight_schools_are_those_of_a_grid(plate):
    """With a school for each row the effects are hidden, and each value takes a pass."""
    group = OBS if plate == "rows" else cv.Plate("school", 8)
    theta = cv.Normal("theta", cv.Normal("mu", 0.0, 1 / 400.0), half_t("between", 10.0), plates=group)
    of_row = theta if plate == "rows" else theta[cv.Data("school", plates=OBS)]
    model = cv.Model(cv.Normal("y", of_row, cv.Data("known", plates=OBS), plates=OBS))
    data = {"y": EFFECT, "known": ERROR**-2.0, **({} if plate == "rows" else {"school": np.arange(8)})}
    posterior = model.fit(data)
    between, (mean, sd) = exact_of_schools()
    assert posterior.uncertainty == "integrated"
    assert posterior.mean("mu") == pytest.approx(mean, abs=0.03 * sd)
    assert posterior.sd("mu") == pytest.approx(sd, rel=0.03)
    found = posterior.transformed(lambda precision: precision**-0.5, "between")
    exact = Weighted(between.values**-0.5, between.weights)
    assert found.mean == pytest.approx(exact.mean, rel=0.04)
    assert found.sd == pytest.approx(exact.sd, rel=0.05)
    assert found.quantile(0.95) == pytest.approx(exact.quantile(0.95), rel=0.05)
    # its mean is infinite: nothing is made of the draws that happen to be largest
    assert np.isinf(posterior.mean("between"))
    assert np.isinf(posterior.sd("between"))
    assert "between: no finite standard deviation" in posterior.summary().remark


def test_noise_of_groups_is_integrated_over_what_they_share():
    """Over mean and scale, whose two numbers leave the six precisions independent."""
    rng = np.random.default_rng(1)
    g = np.append(np.arange(6), rng.integers(0, 6, 30))
    y = 5.0 + rng.normal(size=36) / np.sqrt(rng.gamma(3.0, 1.0, 6) / 3.0)[g]
    tau = cv.Gamma("tau", 3.0, cv.Gamma("scale", 3.0, 1.0), plates=cv.Plate("group", 6))
    noise = tau[cv.Data("g", plates=OBS)]
    posterior = cv.Model(cv.Normal("y", cv.Normal("mu", 4.0, 0.5), noise, plates=OBS)).fit({"g": g, "y": y})
    assert "integrated over" in posterior.interval_remark
    assert "tau" not in posterior.interval_remark
    mu, scale = (own.ravel() for own in np.meshgrid(np.linspace(3, 7, 200), np.geomspace(0.1, 30, 150)))
    shape = 3.0 + 0.5 * np.bincount(g)
    squares = np.stack([np.square(y[g == k][:, None] - mu).sum(axis=0) for k in range(6)], axis=1)
    rate = scale[:, None] + 0.5 * squares
    log_density = (3.0 * np.log(scale)[:, None] + gammaln(shape) - shape * np.log(rate)).sum(axis=1)
    log_density += stats.norm.logpdf(mu, 4.0, np.sqrt(2.0)) + 3.0 * np.log(scale) - scale
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    first = shape / rate
    mean = weights @ first
    sd = np.sqrt(weights @ (first / rate + (first - mean) ** 2))
    np.testing.assert_allclose(posterior.mean("tau"), mean, atol=0.03 * sd.min())
    np.testing.assert_allclose(posterior.sd("tau"), sd, rtol=0.03)
    for name, values in (("mu", mu), ("scale", scale)):
        exact = Weighted(values, weights)
        assert posterior.mean(name) == pytest.approx(exact.mean, abs=0.03 * exact.sd), name
        assert posterior.sd(name) == pytest.approx(exact.sd, rel=0.03), name
        np.testing.assert_allclose(posterior.interval(name), exact.interval(), atol=0.15 * exact.sd)


@pytest.mark.parametrize("seed", range(20))
def test_the_set_that_separates_is_the_smallest(seed):
    """By trying all sets of up to six globals, some of which may not be chosen."""
    rng = np.random.default_rng(seed)
    names = "abcdef"
    pairs = [frozenset(pair) for pair in combinations(names, 2) if rng.random() < 0.4]
    pairs += [frozenset(name) for name in names if rng.random() < 0.1]
    sizes = {name: float(rng.integers(1, 5)) for name in names if rng.random() < 0.85}
    sets = [set(own) for n in range(7) for own in combinations(sizes, n)]
    valid = [own for own in sets if all(pair & own for pair in pairs)]
    smallest = min((sum(sizes[name] for name in own) for own in valid), default=np.inf)
    found = separating(pairs, sizes, 8.0)
    assert (found is None) == (smallest > 8.0)
    if found is not None:
        assert found in valid
        assert sum(sizes[name] for name in found) == smallest


def test_of_a_location_and_its_precision_it_is_the_precision():
    assert separating([frozenset("mt")], {"m": 1.0, "t": 1.0}, 8.0) == frozenset("t")


def test_pickled_and_saved_posteriors_show_the_same(tmp_path):
    data, _, _ = groups_of(0, 5, 30, 1.0)
    posterior = level_and_groups(5).fit(data)
    posterior.save(tmp_path / "m.caviar")
    for other in (cv.load(tmp_path / "m.caviar"), pickle.loads(pickle.dumps(posterior))):
        assert other.uncertainty == "integrated"
        assert str(other.summary()) == str(posterior.summary())


def test_what_is_normal_keeps_linear_response():
    """It is exact there, up to rounding, and draws of a mean are not."""
    rng = np.random.default_rng(0)
    a, b = cv.Normal("a", 0.0, 1.0), cv.Normal("b", 0.0, 1.0)
    posterior = cv.Model(cv.Normal("x", a + b, 4.0, plates=OBS)).fit(
        {"x": rng.normal(size=9)}, factors="apart", tol=1e-13
    )
    assert posterior.uncertainty == "second_order"
    exact = np.sqrt(np.linalg.inv(np.eye(2) + 36.0)[0, 0])
    assert posterior.sd("a") == pytest.approx(exact, rel=1e-8)


def test_what_is_not_integrated_over_is_not_transformed():
    data, _, _ = groups_of(0, 5, 30, 1.0)
    posterior = level_and_groups(5).fit(data)
    with pytest.raises(cv.ModelError, match=r"linear_response\(data\).transformed"):
        posterior.transformed(np.exp, "mu")
