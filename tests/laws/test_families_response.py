"""How expected statistics and means respond to natural parameters, against differences and against draws."""

import numpy as np
import pytest

from caviar.families import Wishart
from caviar.families.base import roots
from caviar.families.base.family import ExponentialFamily
from caviar.families.base.roots import MatrixRoots, NormalRoots

_STEPS = (2e-3, 1e-3)


def _directions(q, rng):
    """Return a random direction for each natural parameter, symmetric where the parameter is a matrix."""
    result = []
    for eta, shape in zip(q.natural, q.statistic_shapes(q.event_shape), strict=True):
        direction = rng.normal(size=eta.shape)
        if len(shape) == 2 and np.array_equal(eta, eta.swapaxes(-1, -2)):
            direction = direction + direction.swapaxes(-1, -2)
        # no step may leave the natural parameter space
        result.append(direction * 0.1)
    return tuple(result)


def _difference(q, change, of):
    """Return the change of what is made of the natural parameters, by differences of the fourth order."""

    def slope(h):
        up, down = (
            of(q.from_natural(tuple(eta + s * h * d for eta, d in zip(q.natural, change, strict=True))))
            for s in (1, -1)
        )
        return [(a - b) / (2 * h) for a, b in zip(up, down, strict=True)]

    wide, narrow = map(slope, _STEPS)
    return [(4 * b - a) / 3 for a, b in zip(wide, narrow, strict=True)]


def _means(q):
    """Return the mean of each part of the value."""
    if hasattr(q, "precision_marginal"):
        return [np.asarray(q.mean), np.asarray(q.precision_marginal.mean)]
    return [np.asarray(q.mean)]


def test_expected_statistics_respond_as_they_change(q):
    rng = np.random.default_rng(11)
    for _ in range(3):
        change = _directions(q, rng)
        wanted = _difference(q, change, lambda other: other.expected_statistics)
        for found, own, expected in zip(q.response(change), wanted, q.expected_statistics, strict=True):
            assert found.shape == expected.shape
            scale = np.abs(own).max() + 1e-3 * np.abs(expected).max()
            np.testing.assert_allclose(found, own, rtol=1e-7, atol=1e-8 * scale)


def test_responses_are_symmetric(q, laws):
    rng = np.random.default_rng(12)
    one, other = _directions(q, rng), _directions(q, rng)
    forth, back = laws.inner(q, one, q.response(other)), laws.inner(q, other, q.response(one))
    np.testing.assert_allclose(forth, back, rtol=1e-10, atol=1e-12)
    assert (laws.inner(q, one, q.response(one)) > -1e-12).all()


def test_means_respond_as_they_change(q):
    rng = np.random.default_rng(13)
    change = _directions(q, rng)
    for found, own in zip(q.response_of_value(change), _difference(q, change, _means), strict=True):
        np.testing.assert_allclose(found, own, rtol=1e-7, atol=1e-8 * np.abs(own).max())


@pytest.mark.thinned(2)
def test_covariance_of_a_value_is_that_of_draws(q, laws):
    draws = laws.draw(q, 10_000, seed=5)
    if type(q).__name__ == "Categorical":
        draws = [np.eye(q.event_shape[0])[draws[0]]]
    batch = q.batch_shape
    flat = np.concatenate([np.asarray(part).reshape(10_000, *batch, -1) for part in draws], axis=-1)
    deviation = flat - flat.mean(axis=0)
    drawn = np.einsum("n...i,n...j->...ij", deviation, deviation) / 10_000
    found = q.covariance_of_value()
    assert found.shape == drawn.shape
    np.testing.assert_allclose(found, np.swapaxes(found, -1, -2), rtol=1e-12, atol=1e-14)
    sd = np.sqrt(np.diagonal(found, axis1=-2, axis2=-1))
    scale = sd[..., :, None] * sd[..., None, :]
    finite = np.isfinite(scale)
    np.testing.assert_array_less(np.abs(drawn - found)[finite] / scale[finite], 0.15)


@pytest.mark.parametrize("df", [3.5, 40.0, 1e5, 1e12])
def test_roots_of_wisharts_are_those_of_their_covariances(df):
    size = 3
    inverse_scale = (
        np.array([[4.0, 1.0, 0.5], [1.0, 2.0, -0.3], [0.5, -0.3, 1.0]]) * np.array([1.0, 7.0])[:, None, None]
    )
    q = Wishart(np.array([df, df + 2.0]), inverse_scale)
    found = q.roots()
    units = np.eye(1 + size * size)
    covariances = np.empty((2, len(units), len(units)))
    for place, unit in enumerate(units):
        matrix = unit[1:].reshape(size, size)
        change = np.full(2, unit[0]), np.broadcast_to(0.5 * (matrix + matrix.T), (2, size, size))
        log_det, x = q.response(change)
        covariances[:, :, place] = np.concatenate([log_det[:, None], x.reshape(2, -1)], axis=1)
    for root, of_values, covariance in zip(found.matrices, found.of_values, covariances, strict=True):
        assert root.shape == (10, 7)
        sd = np.sqrt(np.diagonal(covariance))
        np.testing.assert_allclose(
            root @ root.T / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=1e-13
        )
        np.testing.assert_allclose(
            (root @ of_values)[1:] / np.outer(sd, sd)[1:, 1:],
            covariance[1:, 1:] / np.outer(sd, sd)[1:, 1:],
            atol=1e-13,
        )
    np.testing.assert_allclose(q.covariance_of_value(), ExponentialFamily.covariance_of_value(q), rtol=1e-12)
    # what the entries of the matrix do not tell of its log-determinant: nothing cancels
    left = np.array([root[0, -1] ** 2 for root in found.matrices])
    np.testing.assert_allclose(
        left * q.df**2, 2.0 * size + size * (size - 1), rtol=5.0 / df if df > 5 else 3.0
    )


def test_roots_in_batches_are_those_of_one_matrix_after_the_other():
    rng = np.random.default_rng(0)
    matrices = list(rng.normal(size=(3, 5, 4)))
    batch, uneven = MatrixRoots(matrices, matrices), MatrixRoots([*matrices, rng.normal(size=(2, 1))], [])
    coordinates, natural = rng.normal(size=(13, 6)), rng.normal(size=(17, 6))
    np.testing.assert_allclose(batch.times(coordinates[:12]), uneven.times(coordinates)[:15], rtol=1e-13)
    np.testing.assert_allclose(batch.transposed(natural[:15]), uneven.transposed(natural)[:12], rtol=1e-13)


def test_small_roots_of_normal_vectors_are_those_of_large_ones(monkeypatch):
    rng = np.random.default_rng(0)
    lower = np.tril(rng.normal(size=(4, 3, 3)))
    mean, coordinates, natural = rng.normal(size=(4, 3)), rng.normal(size=(36, 5)), rng.normal(size=(48, 5))
    small = NormalRoots(mean, lower)
    found = small.times(coordinates), small.transposed(natural)
    monkeypatch.setattr(roots, "_MOST_WRITTEN", 0)
    large = NormalRoots(mean, lower)
    np.testing.assert_allclose(found[0], large.times(coordinates), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found[1], large.transposed(natural), rtol=1e-12, atol=1e-13)
