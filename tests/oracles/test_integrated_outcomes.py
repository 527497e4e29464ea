"""Groups with binary outcomes: posteriors integrated over their spread are those of a grid."""

from __future__ import annotations

import runpy
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_expit, log_ndtr

import caviar as cv
from caviar.engine.evaluation.given_by_passes import Correction, GivenByPasses
from caviar.engine.response import probed
from caviar.engine.response.given import GivenInRows
from caviar.posterior.integration.lattice_of_fits import _between
from caviar.posterior.uncertainty.pending import Pending

OBS = cv.Plate("obs")
LINKS = {"logistic": (cv.logistic, log_expit), "probit": (cv.probit, log_ndtr)}
SEPARATED = [5, 5, 5, 1, 5, 5, 3, 5]
"""Ones among five outcomes of each group: hardly any group is mixed, so that effects are far from Normal."""
ALIKE = [4, 6, 5, 7, 5, 4]
"""The same among ten."""
PRECISIONS = np.exp(np.linspace(-5.5, 11.0, 67))
NODES = np.linspace(-6.0, 6.0, 97)


class Exact:
    """The posterior by sums over log precisions, levels and the effect of each group.

    The standard deviation of the effects is half-t with 4 degrees of freedom, the level Normal with variance 2.
    """

    def __init__(self, link: str, ones: list[int], n: int) -> None:
        self._ones, self._n, log_probability = ones, n, LINKS[link][1]
        self._levels = np.linspace(-1.0, 1.0, 61) * (6.0 if ones == SEPARATED else 2.0)
        effects = NODES / np.sqrt(PRECISIONS)[:, None]
        predictor = self._levels[None, :, None] + effects[:, None, :]
        self._yes, self._no = log_probability(predictor), log_probability(-predictor)
        self._effects = effects
        log_prior = 2.0 * np.log(PRECISIONS) - 2.5 * np.log(PRECISIONS + 0.25)
        own = {k: self._of_group(k) for k in set(ones)}
        log_joint = sum(own[k][0] for k in ones) + log_prior[:, None] - 0.25 * self._levels**2
        shares = np.exp(log_joint - log_joint.max())
        self.shares, self._given = shares / shares.sum(), {k: weights for k, (_, weights) in own.items()}

    def _of_group(self, ones: int) -> tuple[np.ndarray, np.ndarray]:
        log_likelihood = ones * self._yes + (self._n - ones) * self._no - 0.5 * NODES**2
        largest = log_likelihood.max(axis=2, keepdims=True)
        weights = np.exp(log_likelihood - largest)
        total = weights.sum(axis=2, keepdims=True)
        return (np.log(total) + largest)[..., 0], weights / total

    @cached_property
    def marginals(self) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
        """Values and probabilities of each entry."""
        order = np.argsort(self._effects.ravel())
        effects = [np.einsum("tm,tmz->tz", self.shares, self._given[k]).ravel()[order] for k in self._ones]
        return {
            "between": [(np.log(PRECISIONS), self.shares.sum(axis=1))],
            "mu": [(self._levels, self.shares.sum(axis=0))],
            "a": [(self._effects.ravel()[order], own) for own in effects],
        }

    def inside(self, name: str, ends: np.ndarray) -> np.ndarray:
        found = []
        ends = np.log(ends) if name == "between" else ends
        for (values, shares), own in zip(self.marginals[name], np.reshape(ends, (2, -1)).T, strict=True):
            below = np.interp(own, values, np.cumsum(shares) - 0.5 * shares)
            found.append(below[1] - below[0])
        return np.array(found)

    def moments(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        means = np.array([shares @ values for values, shares in self.marginals[name]])
        squares = np.array([shares @ values**2 for values, shares in self.marginals[name]])
        return means, np.sqrt(squares - means**2)


def fitted(
    link: str, method: str, ones: list[int], n: int, known: dict[str, Any] | None = None, **arguments: Any
) -> tuple[Any, dict[str, Any]]:
    between = cv.Gamma("between", 2.0, cv.Gamma("rate", 0.5, 0.25))
    a = cv.Normal("a", 0.0, between, plates=cv.Plate("groups", len(ones)))
    at = cv.Normal("mu", 0.0, 0.5) + a[cv.Data("g", plates=OBS)]
    model = cv.Model(cv.Bernoulli("y", LINKS[link][0](at, method=method), plates=OBS))
    y = np.concatenate([np.arange(n) < k for k in ones]).astype(int)
    data = {"g": np.repeat(np.arange(len(ones)), n), "y": y, **(known or {})}
    return model.fit(data, seed=0, tol=1e-9, **arguments), data


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("ones", "n"), [(ALIKE, 10), (SEPARATED, 5)], ids=["alike", "separated"])
@pytest.mark.parametrize("method", ["bound", "expectation"])
@pytest.mark.parametrize("link", LINKS)
def test_intervals_are_those_of_a_grid(link, method, ones, n):
    posterior, _ = fitted(link, method, ones, n)
    assert posterior.uncertainty == "integrated"
    exact = Exact(link, ones, n)
    for name in ("mu", "a", "between"):
        assert np.allclose(exact.inside(name, posterior.interval(name, 0.9)), 0.9, atol=0.03), name
    for name in ("mu", "a"):
        mean, sd = exact.moments(name)
        assert np.allclose((posterior.mean(name) - mean) / sd, 0.0, atol=0.07), name
        assert np.allclose(posterior.sd(name) / sd, 1.0, atol=0.08), name


@pytest.mark.parametrize(("link", "off"), [("logistic", 0.03), ("probit", 0.15)])
def test_the_evidence_given_a_precision_has_the_cubes_of_what_rows_say(link, off):
    posterior, data = fitted(link, "expectation", SEPARATED, 5, uncertainty="mean_field")
    state = posterior._state(*posterior._bound(Pending(data, None)))
    given, family = GivenInRows(state, ["between"]), posterior["between"].family
    chosen, beside, found = slice(20, 48, 4), None, []
    for precision in PRECISIONS[chosen]:
        before = beside
        beside = given.fit_at({"between": family.statistics_of(np.array(precision))}, before)
        found.append(beside.log_density + np.log(precision))

    exact = np.log(Exact(link, SEPARATED, 5).shares.sum(axis=1)[chosen])
    assert np.ptp(np.array(found) - exact) < off


@pytest.mark.thinned(2)
@pytest.mark.parametrize("known", [{}, {"a": [np.nan, 1.5, np.nan, -0.5, np.nan, np.nan, np.nan, np.nan]}])
def test_draws_of_the_factor_tell_what_the_whole_matrix_does(monkeypatch, known):
    posterior, data = fitted("probit", "expectation", SEPARATED, 5, known, uncertainty="mean_field")
    state, family = posterior._state(*posterior._bound(Pending(data, None))), posterior["between"].family
    monkeypatch.setattr(probed, "n_probes", lambda _: 400)
    formed, drawn = (kind(state, ["between"]) for kind in (GivenInRows, probed.GivenByProbes))
    assert formed.is_available
    assert drawn.is_available
    for precision in (0.05, 0.3):
        statistics = {"between": family.statistics_of(np.array(precision))}
        one, other = (kind.fit_at(statistics, None) for kind in (formed, GivenByPasses(state, ["between"])))
        cubes, told = one.log_density - other.log_density, drawn.correction(drawn.fit_at(statistics, None))
        assert cubes > 0.2
        assert told.log_density == pytest.approx(cubes, rel=0.03)
        for name in ("mu", "a"):
            # the rest of the series is left out
            sd = np.sqrt(other.sds[name] ** 2 + told.variances[name])
            assert np.allclose(sd, one.sds[name], rtol=0.05), name


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("link", "method"), [("logistic", "bound"), ("probit", "expectation")])
def test_many_groups_are_integrated_by_default(link, method):
    ones = np.random.default_rng(1).choice([0, 1, 2, 3, 4, 5], p=[0.2, 0.15, 0.15, 0.15, 0.15, 0.2], size=70)
    posterior, _ = fitted(link, method, ones.tolist(), 5)
    assert posterior.uncertainty == "integrated"
    exact = Exact(link, ones.tolist(), 5)
    for name in ("mu", "a"):
        mean, sd = exact.moments(name)
        assert np.allclose((posterior.mean(name) - mean) / sd, 0.0, atol=0.07), name
        assert np.allclose(posterior.sd(name) / sd, 1.0, atol=0.06), name


def test_corrections_vary_slowly_so_that_every_second_point_has_one():
    own = {
        place: Correction(float(sum(place)), {"a": np.array([place[0]])})
        for place in ((0, 0), (2, 0), (0, 2), (2, 2))
    }
    inherited = Correction(9.0, {"a": np.array([9.0])})
    found = _between({**own, **dict.fromkeys([(1, 0), (1, 1), (-1, 2), (5, 5)], inherited)}, 2)
    assert [found[place].log_density for place in ((2, 2), (1, 0), (1, 1), (-1, 2))] == [4.0, 1.0, 2.0, 2.0]
    assert found[1, 1].variances["a"] == 1.0
    assert found[5, 5] is inherited


@pytest.mark.slow
def test_crossed_groups_are_integrated_by_default():
    """Beside the Gibbs sampler of the benchmark, which shares no code with the library."""
    folder = Path(__file__).parents[2] / "benchmarks"
    crossed = runpy.run_path(str(folder / "crossed_outcomes.py"))
    rng, sizes = np.random.default_rng([0, 2]), (40, 30)
    data = crossed["drawn"](sizes, 1200, rng)
    posterior = crossed["stated"](sizes, "bound").fit(data, seed=0)
    assert posterior.uncertainty == "integrated"
    for name, draws in crossed["sampled"](sizes, data, 2_500, rng).items():
        lower, upper = np.reshape(posterior.interval(name, 0.9), (2, -1))
        assert ((draws >= lower) & (draws <= upper)).mean() == pytest.approx(0.9, abs=0.035), name


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [80, 1_500])
def test_a_mixed_model_shows_the_spread_of_quadrature(n_groups):
    """Also beside the place of a new group, which has no rows: its effect varies as groups do."""
    folder = Path(__file__).parents[2] / "benchmarks"
    spread = runpy.run_path(str(folder / "spread_between_groups.py"))
    frame, successes = spread["drawn"](n_groups, 6, np.random.default_rng(4))
    model = cv.MixedModel("y ~ 1 + (1 | g)", family="bernoulli").fit(frame)
    assert model.posterior_.uncertainty == "integrated"
    row = next(own for own in model.summary().rows if own.name == "g, Intercept")
    mean, sd, lower, upper = spread["exact"](successes, 6)
    assert row.mean == pytest.approx(mean, abs=0.05 * sd)
    assert row.sd == pytest.approx(sd, rel=0.03)
    assert (row.lower, row.upper) == pytest.approx((lower, upper), abs=0.1 * sd)
    new = model.posterior_.sd("1 | g")[-1]
    assert new == pytest.approx(np.hypot(row.mean, row.sd), rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bound", "expectation"])
def test_factors_apart_show_the_same(method):
    apart, together = (fitted("probit", method, ALIKE, 10, **own)[0] for own in ({"factors": "apart"}, {}))
    assert apart.uncertainty == together.uncertainty == "integrated"
    for name in ("mu", "a"):
        assert np.allclose(apart.mean(name), together.mean(name), atol=0.05 * together.sd(name).min()), name
        assert np.allclose(apart.sd(name), together.sd(name), rtol=0.03), name


def test_outcomes_of_two_plates_have_second_order():
    """The link of the second plate has a variable of its own, which the fit in expectation does not have."""
    y, g, other = np.random.default_rng(3).integers(0, 2, 24), np.repeat(np.arange(6), 4), cv.Plate("other")
    e = cv.Normal("e", 0.0, cv.Gamma("between", 2, 1), plates=cv.Plate("group", 6))
    level = cv.Normal("level", 0, 0.1)
    leaves = [
        cv.Bernoulli(name, cv.logistic(level + e[cv.Data(of, plates=plate)]), plates=plate)
        for name, of, plate in (("y", "g", OBS), ("other y", "other g", other))
    ]
    data = {"y": y[:18], "g": g[:18], "other y": y[18:], "other g": g[18:]}
    posterior = cv.Model(*leaves).fit(data, tol=1e-10)
    whole = cv.Model(leaves[0]).fit({"y": y, "g": g}, tol=1e-10, uncertainty="second_order")
    assert posterior.elbo == pytest.approx(whole.elbo, abs=1e-5)
    assert posterior.uncertainty == "second_order"
    for name in ("level", "between", "e"):
        np.testing.assert_allclose(posterior.sd(name), whole.sd(name), rtol=1e-3)
