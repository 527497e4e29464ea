"""Mixtures with priors below the least number: draws of them have no order, and are weighed as they come."""

from __future__ import annotations

import numpy as np
import pytest

import caviar as cv

OBS = cv.Plate("obs")


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("shape", "n"), [(1e-3, 10), (1e-3, 30), (1e-2, 10)])
def test_precisions_with_a_vague_prior(shape: float, n: int) -> None:
    rng, component = np.random.default_rng(0), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("w", [1.0, 1.0]), plates=OBS)
    location = cv.Normal("location", 0, 0.01, plates=component)
    precision = cv.Gamma("precision", shape, shape, plates=component)
    data = {"x": rng.normal(size=n) + 3.0 * (np.arange(n) % 2)}
    posterior = cv.Model(cv.Normal("x", location[z], precision[z], plates=OBS)).fit(data, seed=0)
    assert "precision" in str(posterior.summary())
    assert np.isfinite(posterior.evidence(data).value)
    posterior.importance_sample(data, n_draws=300)


def test_weights_near_zero() -> None:
    component = cv.Plate("component", 3)
    z = cv.Categorical("z", cv.Dirichlet("w", [0.01, 0.01, 0.01]), plates=OBS)
    location = cv.Normal("location", 0, 0.1, plates=component)
    data = {"x": [-2.1, -1.9, -2.0, 2.0, 2.2, 1.9, 2.1]}
    posterior = cv.Model(cv.Normal("x", location[z], 1.0, plates=OBS)).fit(data, seed=0)
    assert np.isfinite(posterior.evidence(data).value)
    posterior.importance_sample(data, n_draws=300)
    assert "w" in str(posterior.summary())
