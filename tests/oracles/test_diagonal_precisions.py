"""Precisions of weights, an entry each: a number for all times one for each, or one of two widths.

The first is the global horseshoe, the second stochastic search variable selection.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import caviar as cv

SIZE = 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, SIZE))
Y = X @ np.array([2.0, 0.0, 0.0, -1.5, 0.0, 0.0]) + 0.5 * RNG.normal(size=80)


def _model() -> cv.Model:
    obs, entry = cv.Plate("obs"), cv.Plate("entry", SIZE)
    common = cv.Gamma("common", 0.5, cv.Gamma("scale", 0.5, 1))
    own = cv.Gamma("own", 0.5, cv.Gamma("scales", 0.5, 1, plates=entry), plates=entry)
    w = cv.MultivariateNormal("w", np.zeros(SIZE), cv.diagonal(common * own))
    return cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), 4.0, plates=obs))


def _sweeps() -> tuple[np.ndarray, float, np.ndarray]:
    """Return the means of weights and precisions by the textbook's updates, one after the other."""
    common, own, scale, scales = 1.0, np.ones(SIZE), 1.0, np.ones(SIZE)
    for _ in range(3000):
        covariance = np.linalg.inv(4.0 * X.T @ X + np.diag(common * own))
        mean = covariance @ (4.0 * X.T @ Y)
        square = mean**2 + np.diag(covariance)
        common = (0.5 + SIZE / 2) / (scale + own @ square / 2)
        own = 1.0 / (scales + common * square / 2)
        scale, scales = 1.0 / (1.0 + common), 1.0 / (1.0 + own)
    return mean, common, own


def test_its_factors_are_those_of_the_updates_by_hand():
    posterior = _model().fit({"X": X, "y": Y}, seed=0, tol=1e-13)
    mean, common, own = _sweeps()
    np.testing.assert_allclose(posterior["w"].mean, mean, atol=1e-6)
    assert float(posterior["common"].mean) == pytest.approx(common, rel=1e-4)
    np.testing.assert_allclose(posterior["own"].mean, own, rtol=1e-3)
    assert (np.diff(posterior.elbo_trace) > -1e-9).all()


@pytest.mark.slow
def test_every_seed_ends_there_and_the_kit_finds_nothing_wrong():
    data = {"X": X, "y": Y}
    ends = [_model().fit(data, seed=seed).elbo for seed in range(5)]
    np.testing.assert_allclose(ends, ends[0], atol=1e-6)
    cv.testing.check_model(_model(), data, seed=0).raise_if_failed()


WIDTHS = np.array([1.0, 1000.0])


def _search(*, latent: bool = False, common: bool = False) -> cv.Model:
    obs, entry, kind = cv.Plate("obs"), cv.Plate("entry", SIZE), cv.Plate("kind", 2)
    z = cv.Categorical("z", [0.4, 0.6], plates=entry)
    widths = (
        cv.Gamma("widths", 50 * np.ones(2), 50 / WIDTHS, plates=kind)
        if latent
        else cv.Constant("widths", WIDTHS, plates=kind)
    )
    chosen = widths[z] * cv.Gamma("common", 5, 5) if common else widths[z]
    w = cv.MultivariateNormal("w", np.zeros(SIZE), cv.diagonal(chosen))
    return cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), 4.0, plates=obs))


def test_labels_that_choose_widths_are_those_of_the_updates_by_hand_below_the_evidence():
    posterior = _search().fit({"X": X, "y": Y}, seed=0, tol=1e-13)
    first = np.full(SIZE, 0.5)
    for _ in range(3000):
        covariance = np.linalg.inv(4.0 * X.T @ X + np.diag(first * WIDTHS[0] + (1 - first) * WIDTHS[1]))
        square = (covariance @ (4.0 * X.T @ Y)) ** 2 + np.diag(covariance)
        logits = [
            np.log(p) + 0.5 * np.log(v) - 0.5 * v * square for p, v in zip((0.4, 0.6), WIDTHS, strict=True)
        ]
        first = 1.0 / (1.0 + np.exp(logits[1] - logits[0]))
    np.testing.assert_allclose(posterior["z"].probabilities[:, 0], first, atol=1e-6)
    np.testing.assert_allclose(np.diag(posterior["w"].covariance), np.diag(covariance), rtol=1e-6)
    every = []
    for kinds in product((0, 1), repeat=SIZE):
        own = np.array(kinds)
        marginal = np.eye(len(Y)) / 4.0 + X @ np.diag(1 / WIDTHS[own]) @ X.T
        prior = np.log(np.array([0.4, 0.6]))[own].sum()
        every.append(stats.multivariate_normal(np.zeros(len(Y)), marginal).logpdf(Y) + prior)
    assert 0 < logsumexp(every) - posterior.elbo < 1.0


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", [{}, {"latent": True}, {"common": True}])
def test_the_kit_finds_nothing_wrong_with_chosen_widths(kind: dict[str, bool]):
    data = {"X": X, "y": Y}
    cv.testing.check_model(_search(**kind), data, seed=0).raise_if_failed()
    ends = [_search(**kind).fit(data, seed=seed).elbo for seed in range(3)]
    np.testing.assert_allclose(ends, ends[0], atol=1e-6)


def test_entries_chosen_by_known_labels_are_refused():
    entry, kind = cv.Plate("entry", SIZE), cv.Plate("kind", 2)
    widths = cv.Gamma("widths", 1, 1, plates=kind)
    with pytest.raises(
        cv.ModelError, match=r"chosen by known labels or by several, widths\[g\]; only one Categorical"
    ):
        cv.MultivariateNormal("w", np.zeros(SIZE), cv.diagonal(widths[cv.Data("g", plates=entry)]))


@pytest.mark.slow
def test_predicted_variances_are_those_of_the_whole_product():
    """Of two Gammas of shape 3 and rate 2 the expected inverse is 1 each."""
    obs, entry = cv.Plate("obs", 1), cv.Plate("entry", 2)
    common, own = cv.Gamma("common", 3, 2), cv.Gamma("own", 3, 4, plates=entry)
    model = cv.Model(cv.MultivariateNormal("x", np.zeros(2), cv.diagonal(5 * common * own), plates=obs))
    posterior = model.fit({"x": [[0.3, -0.2]]})
    draws = posterior.predictive(n_draws=4_000, sizes={"obs": 1}, seed=0)["x"].reshape(-1, 2)
    found = posterior.predict({})["x"].standard_deviation[0]
    np.testing.assert_allclose(found, draws.std(axis=0), rtol=0.05)
