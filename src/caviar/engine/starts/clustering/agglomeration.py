r"""Agglomeration: many small clusters merged into few, by what a Gaussian for each of them loses.

Clusters a and b with weights n and covariances S lose

.. math:: \Delta_{ab} = \ell_a + \ell_b - \ell_{a \cup b}, \qquad \ell = -\tfrac n2 \log|S| + n \log n

of the classification likelihood when they are merged. Pieces of one elongated cluster lose little, neighbouring pieces
of two parallel ones much, so clusters of any orientation and width come out whole where k-means cuts across them.

Source: Fraley, "Algorithms for model-based Gaussian hierarchical clustering" (SIAM J. Sci. Comput., 1998), section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ...._typing import AnyArray, Array

_MOST_NUMBERS = 1_000_000
"""Products of columns that are there at once."""

LogDeterminants: TypeAlias = Callable[[Array], Array]
"""The logarithms of the determinants of covariances (..., d, d) as a kind of Gaussian has them."""


def _of_matrices(covariances: Array) -> Array:
    return np.asarray(np.linalg.slogdet(covariances)[1])


def _of_variances(covariances: Array) -> Array:
    return np.log(np.diagonal(covariances, axis1=-2, axis2=-1)).sum(axis=-1)


def _of_spheres(covariances: Array) -> Array:
    return covariances.shape[-1] * np.log(np.diagonal(covariances, axis1=-2, axis2=-1).mean(axis=-1))


LOG_DETERMINANTS: tuple[LogDeterminants, ...] = (_of_matrices, _of_variances, _of_spheres)
"""Of Gaussians with a covariance each, with variances, and with one variance."""

_PRIOR_VARIANCE = 0.3
"""Variance that the prior of a piece expects, in units of what a piece has where all are of equal size."""


_NEIGHBOURS = 24
"""Pieces near a piece with which it may be merged at first; a cluster of several may be merged with any other."""


def agglomerated(points: Array, weights: Array, labels: AnyArray, n_clusters: int) -> AnyArray:
    """Return the labels (n,) after merging clusters pair by pair, each time the pair that loses least.

    Parameters
    ----------
    points
        Shape (n, d), whitened: mean 0 and covariance I.
    weights
        Shape (n,); only their proportions matter.
    labels
        Shape (n,), of m clusters that are not empty.

    Notes
    -----
    Covariances are those under a Wishart prior that is worth d + 2 points. O(m^2 d^3), most of it for what merged
    clusters lose with others.
    """
    n_points, size = points.shape
    n_pieces = int(labels.max()) + 1
    members = labels == np.arange(n_pieces)[:, None]
    sums = sums_of(points, weights * (n_points / weights.sum()), members)
    prior = prior_of(size, n_pieces)
    gains = gains_of(sums, prior)
    losses = np.full((n_pieces, n_pieces), np.inf)
    a, b = _neighbours(sums[:, 1 : size + 1] / sums[:, :1])
    losses[a, b] = gains[a] + gains[b] - gains_of(sums[a] + sums[b], prior)
    parent, left = np.arange(n_pieces), list(range(n_pieces))
    for _ in range(n_pieces - n_clusters):
        a, b = divmod(int(losses.argmin()), n_pieces)
        gains[a] += gains[b] - losses[a, b]
        sums[a] += sums[b]
        parent[parent == b] = a
        losses[b], losses[:, b] = np.inf, np.inf
        left.remove(b)
        before = left.index(a)
        others = np.array(left[:before] + left[before + 1 :], dtype=np.intp)
        lost = gains[a] + gains[others] - gains_of(sums[a] + sums[others], prior)
        losses[others[:before], a], losses[a, others[before:]] = lost[:before], lost[before:]
    return np.unique(parent[labels], return_inverse=True)[1]


def sums_of(points: Array, weights: Array, members: AnyArray) -> Array:
    """Return the weighted sums of 1, x and xx' over sets of points, (m, 1 + d + d^2).

    Parameters
    ----------
    members
        Whether each point is in each set, (m, n).
    """
    n_points, size = points.shape
    n_features = 1 + size + size * size
    step = max(_MOST_NUMBERS // n_features, 1)
    total = np.zeros((len(members), n_features))
    for start in range(0, n_points if len(members) else 0, step):
        some = slice(start, start + step)
        own = points[some]
        squares = (own[:, :, None] * own[:, None, :]).reshape(len(own), -1)
        features = np.concatenate([np.ones((len(own), 1)), own, squares], axis=1)
        total += (members[:, some] * weights[some]) @ features
    return total


def prior_of(size: int, n_pieces: int) -> Array:
    """Return the inverse scale of the Wishart prior of pieces, (d, d)."""
    return (size + 2) * _PRIOR_VARIANCE * n_pieces ** (-2.0 / size) * np.eye(size)


def _neighbours(means: Array) -> tuple[AnyArray, AnyArray]:
    """Return pairs a < b of pieces of which one is among the nearest of the other: no others are merged first."""
    n_pieces = len(means)
    squares = (means**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * means @ means.T
    nearest = np.argsort(distances, axis=1, kind="stable")[:, : _NEIGHBOURS + 1]
    is_near = np.zeros((n_pieces, n_pieces), dtype=bool)
    is_near[np.arange(n_pieces)[:, None], nearest] = True
    a, b = np.nonzero(np.triu(is_near | is_near.T, 1))
    return a, b


def gains_of(sums: Array, prior: Array) -> Array:
    """Return l of clusters from their sums of 1, x and xx', (..., 1 + d + d^2), up to a constant."""
    return gains_by(sums, prior, (_of_matrices,))[0]


def gains_by(sums: Array, prior: Array, kinds: Sequence[LogDeterminants] = LOG_DETERMINANTS) -> list[Array]:
    """Return the same by several kinds of Gaussians."""
    size = len(prior)
    count, total = sums[..., 0], sums[..., 1 : size + 1]
    scatter = sums[..., size + 1 :].reshape(*sums.shape[:-1], size, size)
    products = total[..., :, None] * total[..., None, :]
    products /= count[..., None, None]
    covariance = scatter - products
    covariance += prior
    covariance /= (count + size + 2)[..., None, None]
    return [count * (np.log(count) - 0.5 * kind(covariance)) for kind in kinds]
