"""How the statistics of a shared Gaussian factor respond: against differences, and the dense covariance."""

import numpy as np
import pytest

from caviar.families import _arrow
from caviar.families._coupled_response import responded
from caviar.families.coupled_normals import CoupledLayout, Cross, Member


def _factor(rng):
    """Return a factor of a level, groups with two effects each, and crossed groups."""
    members = (Member("level", (), None), Member("a", (7,), 2), Member("b", (4,), None))
    g, h = rng.integers(0, 7, 30), rng.integers(0, 4, 30)
    pairs = np.unique(np.stack([g, h]), axis=1)
    one = np.zeros(14, dtype=np.intp), np.arange(14)
    crosses = (
        Cross("level*a", (0, 1), *one, (14,)),
        Cross("level*b", (0, 2), np.zeros(4, dtype=np.intp), np.arange(4), (4,)),
        Cross("a*b", (1, 2), 2 * pairs[0], pairs[1], (pairs.shape[1],)),
    )
    layout = CoupledLayout(members, crosses)
    square = rng.normal(size=(7, 2, 2))
    natural = (
        rng.normal(size=()),
        np.array(-9.0),
        rng.normal(size=(7, 2)),
        -0.5 * (square @ square.swapaxes(1, 2) + 8.0 * np.eye(2)),
        rng.normal(size=4),
        np.full(4, -9.0),
        *(-0.5 * rng.normal(size=cross.shape) for cross in crosses),
    )
    return layout, natural


@pytest.mark.parametrize("dense", [0, 300])
def test_the_response_is_the_difference_of_expected_statistics(dense, monkeypatch):
    monkeypatch.setattr(_arrow, "_DENSE", dense)
    rng = np.random.default_rng(0)
    layout, natural = _factor(rng)
    factor = layout.from_natural(natural)
    assert bool(factor.precision.pattern.eliminated) == (dense == 0)
    change = [rng.normal(size=np.shape(eta)) for eta in natural]
    change[3] = change[3] + change[3].swapaxes(1, 2)

    def at(h):
        return layout.from_natural(
            tuple(eta + h * own for eta, own in zip(natural, change, strict=True))
        ).expected_statistics

    h = 1e-5
    for above, below, own in zip(at(h), at(-h), responded(factor, tuple(change)), strict=True):
        np.testing.assert_allclose(own, (above - below) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dense", [0, 300])
def test_the_response_is_the_covariance_of_the_statistics(dense, monkeypatch):
    monkeypatch.setattr(_arrow, "_DENSE", dense)
    rng = np.random.default_rng(1)
    layout, natural = _factor(rng)
    factor = layout.from_natural(natural)
    covariance, _, _ = factor.covariance_of_statistics()
    change = [rng.normal(size=np.shape(eta)) for eta in natural]
    change[3] = change[3] + change[3].swapaxes(1, 2)
    flat = np.concatenate([np.ravel(own) for own in change])
    told = np.concatenate([np.ravel(own) for own in responded(factor, tuple(change))])
    np.testing.assert_allclose(told, covariance @ flat, rtol=1e-9, atol=1e-11)
