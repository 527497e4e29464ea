"""Transforms of values with constraints: there and back, and volumes and slopes against differences."""

import numpy as np
import pytest

from caviar.families.base.transforms import (
    LogCholesky,
    LogOdds,
    LogRatios,
    LogScale,
    SpreadsAndCorrelations,
    Unconstrained,
)

RNG = np.random.default_rng(0)
CASES = {
    "unconstrained": (Unconstrained(), RNG.normal(size=4)),
    "scales": (LogScale(), RNG.gamma(2.0, size=4)),
    "probabilities": (LogOdds(), RNG.beta(2, 3, size=4)),
    "weights": (LogRatios(), RNG.dirichlet([2.0, 1.0, 3.0], size=4)),
    "precisions": (SpreadsAndCorrelations(), np.array([own @ own.T for own in RNG.normal(size=(4, 3, 5))])),
    "matrices": (LogCholesky(), np.array([own @ own.T for own in RNG.normal(size=(4, 3, 5))])),
}


def _free(transform, value):
    """Return the entries that densities are about: the first K - 1 weights, the lower triangle of a matrix."""
    if transform.event_ndim == 0:
        return value[..., None]
    return value[..., :-1] if transform.event_ndim == 1 else value[(..., *np.tril_indices(value.shape[-1]))]


@pytest.mark.parametrize("name", CASES)
def test_there_and_back(name):
    transform, value = CASES[name]
    np.testing.assert_allclose(transform.inverse(transform.forward(value)), value, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_volumes_are_determinants(name):
    transform, value = CASES[name]
    vectors, step = transform.forward(value), 1e-5
    columns = [
        (
            _free(transform, transform.inverse(vectors + step * unit))
            - _free(transform, transform.inverse(vectors - step * unit))
        )
        / (2 * step)
        for unit in np.eye(vectors.shape[-1])
    ]
    logs = np.linalg.slogdet(np.stack(columns, axis=-1))[1]
    np.testing.assert_allclose(transform.log_volume(vectors), logs, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_slopes_are_those_of_differences(name):
    transform, value = CASES[name]
    vectors = transform.forward(value)
    slopes = transform.slopes(value)
    # along changes of vectors, so that values stay where they are allowed
    for unit in np.eye(vectors.shape[-1]):
        moved = transform.inverse(vectors + 1e-6 * unit) - transform.inverse(vectors - 1e-6 * unit)
        told = (slopes @ (moved.reshape(len(value), -1)[..., None] / 2e-6))[..., 0]
        np.testing.assert_allclose(told, np.broadcast_to(unit, told.shape), atol=1e-7)
