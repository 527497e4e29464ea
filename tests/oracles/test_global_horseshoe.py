"""Precisions of weights that are a number for all of them times one for each: the global horseshoe."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_every_seed_ends_there_and_the_kit_finds_nothing_wrong():
    data = {"X": X, "y": Y}
    ends = [_model().fit(data, seed=seed).elbo for seed in range(5)]
    np.testing.assert_allclose(ends, ends[0], atol=1e-6)
    cv.testing.check_model(_model(), data, seed=0).raise_if_failed()
