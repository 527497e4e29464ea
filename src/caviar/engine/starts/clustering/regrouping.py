"""Regrouping: clusters that have settled with two of them merged, or one split, or both.

A fit that has two components in one cluster and one component in two does not get away from there by small steps, and
other guesses of all clusters at once find other such ends. So pairs that lose little by being merged, and clusters that
gain much by being split, are found by what a Gaussian for each of them loses or gains.

Source: Ueda, Nakano, Ghahramani and Hinton, "SMEM algorithm for mixture models" (Neural Computation, 2000).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...._typing import AnyArray, Array
from .agglomeration import gains_of, prior_of
from .kmeans import kmeans

_MOST = 4
"""Partitions that are returned where no other number is asked for."""

_MOST_LOST = 0.1
"""Nats a point that a partition may lose where no other number is asked for."""

_FEWEST = 4
"""Members of a cluster that may be split."""


def regrouped(
    points: Array,
    weights: Array,
    labels: AnyArray,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    most: int = _MOST,
    most_lost: float = _MOST_LOST,
) -> list[AnyArray]:
    """Return labels (n,) in which two clusters are merged, or one is split, or both, the most promising first.

    Parameters
    ----------
    points
        Shape (n, d), whitened: mean 0 and covariance I.
    weights
        Shape (n,); only their proportions matter.
    labels
        Shape (n,), from 0 to ``n_clusters`` - 1; some of these may have no points, and clusters are split into them.
    most
        Partitions that are returned at the most.
    most_lost
        Nats a point that a partition may lose: the components may be no Gaussians with a covariance each.

    Examples
    --------
    >>> points = (
    ...     np.repeat([[-2.0], [-1.0], [1.0], [2.0]], 5, axis=0) + np.tile(np.linspace(0, 0.1, 5), 4)[:, None]
    ... )
    >>> labels = np.repeat([0, 1, 2, 2], 5)
    >>> found = regrouped(points, np.ones(20), labels, 4, np.random.default_rng(0))[0]
    >>> found[:10], sorted({int(found[10]), int(found[15])})
    (array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]), [2, 3])
    """
    weights = weights * (len(weights) / weights.sum())
    prior = prior_of(points.shape[1], n_clusters)
    names, empty = np.unique(labels), np.setdiff1d(np.arange(n_clusters), labels)
    sums = np.stack([_sums(points[labels == name], weights[labels == name]) for name in names])
    gains = gains_of(sums, prior)
    one, other = np.triu_indices(len(names), 1)
    losses = gains[one] + gains[other] - gains_of(sums[one] + sums[other], prior)
    merges = [(loss, names[a], names[b]) for loss, a, b in zip(losses, one, other, strict=True)]
    splits = [
        (float(gains_of(parts, prior).sum() - gain), name, leaves)
        for name, gain in zip(names, gains, strict=True)
        for leaves, parts in _halves(points, weights, labels, name, rng)
    ]
    found = [(-loss, np.where(labels == b, a, labels)) for loss, a, b in merges]
    if len(empty):
        found += [(gain, np.where(leaves, empty[0], labels)) for gain, _, leaves in splits]
    found += [
        (gain - loss, np.where(leaves, b, np.where(labels == b, a, labels)))
        for gain, name, leaves in splits
        for loss, a, b in merges
        if name not in (a, b)
    ]
    found.sort(key=lambda move: -move[0])
    return [own for gain, own in found[:most] if gain > -most_lost * len(labels)]


def _halves(
    points: Array, weights: Array, labels: AnyArray, name: int, rng: np.random.Generator
) -> Iterator[tuple[AnyArray, Array]]:
    """Yield the points (n,) that leave a cluster, and the sums of its parts: side by side, and far from near."""
    members = np.flatnonzero(labels == name)
    if len(members) < _FEWEST:
        return
    inside, own = points[members], weights[members]
    squares = np.square(inside - own @ inside / own.sum()).sum(axis=1)
    for half in (kmeans(inside, own, 2, rng) == 1, squares > np.median(squares)):
        if half.any() and not half.all():
            leaves = np.zeros(len(labels), dtype=bool)
            leaves[members[half]] = True
            yield leaves, np.stack([_sums(inside[part], own[part]) for part in (half, ~half)])


def _sums(points: Array, weights: Array) -> Array:
    """Return the weighted sums of 1, x and xx', (1 + d + d^2,)."""
    weighted = points * weights[:, None]
    return np.concatenate([[weights.sum()], weighted.sum(axis=0), (weighted.T @ points).ravel()])
