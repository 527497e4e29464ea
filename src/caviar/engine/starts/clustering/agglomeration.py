r"""Agglomeration: many small clusters merged into few, by what a Gaussian for each of them loses.

Clusters a and b with weights n and covariances S lose

.. math:: \Delta_{ab} = \ell_a + \ell_b - \ell_{a \cup b}, \qquad \ell = -\tfrac n2 \log|S| + n \log n

of the classification likelihood when they are merged. Pieces of one elongated cluster lose little, neighbouring pieces
of two parallel ones much, so clusters of any orientation and width come out whole where k-means cuts across them.

Source: Fraley, "Algorithms for model-based Gaussian hierarchical clustering" (SIAM J. Sci. Comput., 1998), section 2.
"""

from __future__ import annotations

import numpy as np

from ...._typing import AnyArray, Array

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
    sums = _sums(points, weights * (n_points / weights.sum()), labels, n_pieces)
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


def prior_of(size: int, n_pieces: int) -> Array:
    """Return the inverse scale of the Wishart prior of pieces, (d, d)."""
    return (size + 2) * _PRIOR_VARIANCE * n_pieces ** (-2.0 / size) * np.eye(size)


def _sums(points: Array, weights: Array, labels: AnyArray, n_pieces: int) -> Array:
    """Return the weighted sums of 1, x and xx' over pieces, (m, 1 + d + d^2), a row of xx' at a time."""
    size = points.shape[1]
    sums = np.empty((n_pieces, 1 + size + size**2))
    sums[:, 0] = np.bincount(labels, weights, n_pieces)
    for row in range(size + 1):
        # the first is x itself, each further one that times a column
        features = points if row == 0 else points[:, row - 1 : row] * points
        for column in range(size):
            sums[:, 1 + row * size + column] = np.bincount(labels, features[:, column] * weights, n_pieces)
    return sums


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
    size = len(prior)
    count, total = sums[..., 0], sums[..., 1 : size + 1]
    scatter = sums[..., size + 1 :].reshape(*sums.shape[:-1], size, size)
    products = total[..., :, None] * total[..., None, :]
    products /= count[..., None, None]
    covariance = scatter - products
    covariance += prior
    covariance /= (count + size + 2)[..., None, None]
    return count * (np.log(count) - 0.5 * np.linalg.slogdet(covariance)[1])
