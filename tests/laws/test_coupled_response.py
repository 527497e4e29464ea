"""How the statistics of a shared Gaussian factor respond: against differences, and the dense covariance."""

import numpy as np
import pytest

from caviar.families.shared import arrow
from caviar.families.shared.coupled_member import Cross, Member
from caviar.families.shared.coupled_normals import CoupledLayout
from caviar.families.shared.coupled_response import responded
from caviar.families.shared.gaussian_products import covariance_of_products, roots_of_products


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
    monkeypatch.setattr(arrow, "_DENSE", dense)
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
    monkeypatch.setattr(arrow, "_DENSE", dense)
    rng = np.random.default_rng(1)
    layout, natural = _factor(rng)
    factor = layout.from_natural(natural)
    covariance, _, _ = factor.covariance_of_statistics()
    change = [rng.normal(size=np.shape(eta)) for eta in natural]
    change[3] = change[3] + change[3].swapaxes(1, 2)
    flat = np.concatenate([np.ravel(own) for own in change])
    told = np.concatenate([np.ravel(own) for own in responded(factor, tuple(change))])
    np.testing.assert_allclose(told, covariance @ flat, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dense", [0, 300])
def test_roots_of_covariances_of_statistics(dense, monkeypatch):
    monkeypatch.setattr(arrow, "_DENSE", dense)
    layout, natural = _factor(np.random.default_rng(2))
    factor = layout.from_natural(natural)
    covariance, crossed, own = factor.covariance_of_statistics()
    lower = factor.precision.drawn(np.eye(factor.precision.pattern.size))
    np.testing.assert_allclose(lower @ lower.T, own, atol=1e-14)
    root, values = roots_of_products(factor.mean_of_all, lower, layout.pairs_of_statistics())
    assert np.linalg.matrix_rank(root) == root.shape[1]
    np.testing.assert_allclose(root @ root.T, covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(root @ values, crossed, rtol=1e-9, atol=1e-12)
    # numbers that are nearly independent have no need of them
    assert factor.roots() is None


def test_roots_keep_digits_of_numbers_that_nearly_determine_each_other():
    """The intercept at 0 and the slope of a covariate about c: from its root follows that of the level at c."""
    c, mean, lower = 1e4, np.array([1.0, 0.5]), np.array([[0.1, 0.0], [0.002, 0.03]])
    zero = np.zeros(1, dtype=np.intp)
    members = (Member("a", (), None), Member("b", (), None))
    layout = CoupledLayout(members, (Cross("a*b", (0, 1), zero, zero, ()),))
    moved = np.array([[1.0, -c], [0.0, 1.0]])
    far, _ = roots_of_products(moved @ mean, moved @ lower, layout.pairs_of_statistics())
    # of a, aa, b, bb, ab those at c are
    back = np.array(
        [[1, 0, c, 0, 0], [0, 1, 0, c * c, 2 * c], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, c, 1]]
    )
    near = covariance_of_products(mean, lower @ lower.T, layout.pairs_of_statistics())[0]
    np.testing.assert_allclose((back @ far) @ (back @ far).T, near, rtol=1e-6)
    whole = covariance_of_products(
        moved @ mean, moved @ lower @ lower.T @ moved.T, layout.pairs_of_statistics()
    )
    assert not np.allclose(back @ whole[0] @ back.T, near, rtol=0.01)


@pytest.mark.parametrize("strip", [1, 40, 1 << 22])
def test_covariances_of_some_pairs_are_computed_from_their_rows_alone(strip, monkeypatch):
    """In strips of any length, for pairs in any order; three new rows need no product of all groups."""
    monkeypatch.setattr(arrow, "_DENSE", 0)
    monkeypatch.setattr(arrow, "_STRIP", strip)
    layout, natural = _factor(np.random.default_rng(4))
    precision = layout.from_natural(natural).precision
    dense = np.linalg.inv(
        [precision.pattern.times(precision.blocks, precision.entries, unit) for unit in np.eye(19)]
    )
    i, j = np.array([1, 17, 1, 14, 2, 0, 16]), np.array([15, 1, 18, 2, 2, 13, 15])
    monkeypatch.setattr(type(precision), "_strips", None)
    np.testing.assert_allclose(precision.covariance(i, j), dense[i, j], rtol=1e-11, atol=1e-15)
