"""Weighted k-means, of points that fit into memory."""

from __future__ import annotations

import numpy as np

from ...._typing import AnyArray, Array
from ....numerics.sums.by_label import sums_by_label

_DISTANCES = 1 << 18
"""Distances that are held at a time: 2 MB."""


def kmeans(
    points: Array,
    weights: Array,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    max_iter: int = 100,
    most_points: int = 4_096,
) -> AnyArray:
    """Return the labels (n,) of Lloyd's algorithm from greedy k-means++ seeds.

    Parameters
    ----------
    points
        Shape (n, d).
    weights
        Shape (n,), positive.
    max_iter
        Largest number of iterations; it ends earlier where no label changes.
    most_points
        Of more points only every second, third, ... moves the centres.

    Notes
    -----
    O(n d k) each iteration. Clusters that lose all their points stay empty. Sources: Lloyd, "Least squares quantization
    in PCM" (1982); Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding" (SODA 2007), section 2, and
    the greedy choice among several draws that they mention at its end.

    Examples
    --------
    >>> kmeans(np.array([[0.0], [0.1], [5.0], [5.2]]), np.ones(4), 2, np.random.default_rng(0))
    array([1, 1, 0, 0])
    """
    some = slice(None, None, -(-len(points) // most_points))
    centres = _centres(points[some], weights[some], n_clusters, rng, max_iter)
    return _nearest(points, centres)


def _centres(
    points: Array, weights: Array, n_clusters: int, rng: np.random.Generator, max_iter: int
) -> Array:
    centres = _seeds(points, weights, n_clusters, rng)
    columns = np.ascontiguousarray((points * weights[:, None]).T)
    labels = _nearest(points, centres)
    for _ in range(max_iter):
        counts = np.bincount(labels, weights, n_clusters)
        sums = sums_by_label(columns, labels, n_clusters).T
        if counts.all():
            np.divide(sums, counts[:, None], out=centres)
        else:
            kept = counts > 0
            centres[kept] = sums[kept] / counts[kept, None]
        before, labels = labels, _nearest(points, centres)
        if (before == labels).all():
            break
    return centres


def _nearest(points: Array, centres: Array) -> AnyArray:
    """Return the nearest centre of each point: as many points at a time as the cache holds distances of."""
    # |x - c|^2 without |x|^2, which all centres share
    turned, squares = -2.0 * centres.T, np.einsum("ij,ij->i", centres, centres)
    length = max(1, _DISTANCES // len(centres))
    if length >= len(points):
        distances = points @ turned
        distances += squares
        return distances.argmin(axis=1)
    found, room = np.empty(len(points), dtype=np.int64), np.empty((length, len(centres)))
    for start in range(0, len(points), length):
        some = points[start : start + length]
        distances = np.matmul(some, turned, out=room[: len(some)])
        distances += squares
        distances.argmin(axis=1, out=found[start : start + length])
    return found


def _seeds(points: Array, weights: Array, n_clusters: int, rng: np.random.Generator) -> Array:
    """Return points (k, d), each drawn in proportion to its squared distance from those before; the best of a few."""
    n_draws = 2 + int(np.log(n_clusters))
    squares, twice = np.einsum("ij,ij->i", points, points), -2.0 * points.T
    nearest = np.full(len(points), np.inf)
    chosen: list[int] = []
    shares = weights
    for _ in range(n_clusters):
        cumulated = shares.cumsum()
        if not cumulated[-1] > 0:
            # every point is a seed already
            chosen.append(chosen[-1])
            continue
        drawn = cumulated.searchsorted(rng.random(n_draws) * cumulated[-1], side="right")
        drawn = np.minimum(drawn, len(points) - 1)
        distances = points[drawn] @ twice
        distances += squares
        distances += squares[drawn, None]
        np.minimum(np.maximum(distances, 0.0, out=distances), nearest, out=distances)
        best = int((distances @ weights).argmin())
        chosen.append(int(drawn[best]))
        nearest = distances[best]
        shares = nearest * weights
    return points[chosen].copy()
