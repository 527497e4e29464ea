"""Labels that a start may be made from: partitions of the observed values whose location a Categorical chooses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Label, Variable
from ...ascent.problem import Problem
from ...local.local_factor import LocalFactor
from ...rows.subsample import Sample
from .agglomeration import agglomerated
from .kmeans import kmeans

_PIECES = 10
"""Pieces for each cluster that they are merged into."""

_FEW_NUMBERS = 200_000
"""Points times their columns times clusters up to which small clusters are made in both units."""

_PIECE_ITERATIONS = 10
_MOST_OPERATIONS = 1e9
"""Of an agglomeration, about a second's worth: fewer pieces where there are many columns."""

_MOST_COLUMNS = 1_000
"""Columns beyond which pieces would be too few for any number of clusters, and D x D numbers too many."""

_FLAT = 1e-9
"""Variance of a direction, in units of the columns' spread, below which it counts as none."""

_GRID = 2.0**-32
"""Step, in units of the columns' spread, that points are multiples of: further digits depend on the order of the rows
and on units, and may decide on which side of a bound something is."""

_ALIKE = 0.95
"""Share of the rows on which two partitions agree that makes the second one superfluous."""

_SAME = 0.99
"""That share for two runs of k-means, whose ends may differ in little and lead to different optima; and for clusters so
plain that no third way to them is tried."""

_MOST_RUNS, _PATIENCE = 6, 2
"""Further runs of k-means, and after how many that find nothing new they end."""


def location_points(
    problem: Problem, labels: Sequence[Variable], sample: Sample, apart_from: Sequence[Variable] = ()
) -> Array | None:
    """Return the observed values (n, d), in units of their spread, whose location one of some labels chooses.

    Parameters
    ----------
    apart_from
        Labels that choose the location of none of these values.
    """
    if not isinstance(labels[0], Label) or labels[0].plates != (problem.bound.data_plate,):
        return None
    values = _locations(problem, labels, sample, apart_from)
    points = [in_units(own, sample.row_weights) for own in values]
    return np.concatenate(points, axis=1) if points else None


def in_original_units(problem: Problem, factor: LocalFactor, sample: Sample, points: Array) -> Array | None:
    """Return location points, in units of their spread, in their original units, up to a common factor.

    None if the points are others, such as those in fewer coordinates.
    """
    labels = factor.labels or factor.variables[:1]
    halves = [
        values.max(axis=0) / 2 - values.min(axis=0) / 2 for values in _locations(problem, labels, sample)
    ]
    if sum(map(len, halves)) != points.shape[1]:
        return None
    half, own = np.concatenate(halves), np.ptp(points, axis=0) / 2
    varies = own > 0
    spread = np.where(varies, half / half.max(initial=np.finfo(float).tiny), 0.0) / np.where(varies, own, 1.0)
    return points * spread


def _locations(
    problem: Problem, labels: Sequence[Variable], sample: Sample, apart_from: Sequence[Variable] = ()
) -> list[AnyArray]:
    """Return the observed values (n, d) of each leaf whose location one of some labels chooses, and none of others."""
    found: list[AnyArray] = []
    for group in problem.coordinates.groups:
        slots = [slot for v in group.variables for slot in v.slots.values() if slot.role.moves]
        if not any(slot.chosen_by(label) is not None for slot in slots for label in labels):
            continue
        if apart_from and any(slot.chosen_by(label) is not None for slot in slots for label in apart_from):
            continue
        for leaf in group.variables:
            if leaf in problem.compiled.sources:
                # missing entries of a vector hold the means of their columns
                values = problem.compiled.sources[leaf].values(sample.columns)
                found.append(np.moveaxis(values, -1, 0).reshape(sample.n_rows, -1))
    return found


def in_units(values: AnyArray, weights: Array) -> Array:
    """Return columns with mean 0 and variance 1; constant columns become 0. Safe at any scale."""
    largest = np.max(np.abs(values), axis=0)
    scaled = values / np.where(largest > 0, largest, 1.0)
    share = weights / weights.sum()
    centred = scaled - share @ scaled
    spread = np.sqrt(share @ centred**2)
    return np.rint(centred / np.where(spread > 1e-12, spread * _GRID, np.inf)) * _GRID


def partition(points: Array, weights: Array, n_clusters: int, rng: np.random.Generator) -> AnyArray:
    """Return k-means labels of weighted points."""
    if n_clusters == 1:
        return np.zeros(len(points), dtype=np.int64)
    distinct = len(np.unique(points, axis=0)) if len(points) <= 4 * n_clusters else n_clusters + 1
    if distinct <= n_clusters:
        return np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
    return kmeans(points, weights, n_clusters, rng)


def partitions(
    points: Array, weights: Array, n_clusters: int, rng: np.random.Generator, *, many: bool
) -> Iterator[AnyArray]:
    """Yield labels of weighted points that differ: of k-means, and of many small clusters merged into few.

    The small clusters are those of k-means on whitened columns.

    Parameters
    ----------
    many
        Whether to add more: of small clusters on columns in units of their spread (which are there anyway where there
        are few points), of the nearest of k points, and random ones.
    """
    found = [partition(points, weights, n_clusters, rng)]
    yield found[0]
    if n_clusters == 1:
        return
    both = many or points.size * n_clusters <= _FEW_NUMBERS
    for is_white in () if points.shape[1] == 1 else (True, False) if both else (True,):
        labels = merged(points, weights, n_clusters, rng, is_white=is_white)
        if labels is None:
            continue
        if not many and alike(labels, found[0], weights, _SAME):
            # two independent searches found the same clusters; a third would find them as well
            break
        if not any(alike(labels, other, weights) for other in found):
            found.append(labels)
            yield labels
    if many:
        for _ in range(2):
            yield kmeans(points, weights, n_clusters, rng, max_iter=0)
        yield rng.integers(0, n_clusters, len(points))


def merged(
    points: Array, weights: Array, n_clusters: int, rng: np.random.Generator, *, is_white: bool
) -> AnyArray | None:
    """Return labels of many small clusters merged into few, or None where there are too few points for that.

    Parameters
    ----------
    is_white
        Whether the small clusters are those of whitened columns; otherwise of columns as they are. Both are merged by
        what a Gaussian for each loses.
    """
    if not may_merge(points, n_clusters):
        return None
    n_points, size = points.shape
    white = points if size == 1 else whitened(points, weights)
    if not white.size:
        return None
    if size == 1:
        pieces = partition(points, weights, min(_PIECES * n_clusters, n_points // 2), rng)
    else:
        n_pieces = _n_pieces(n_points, size, n_clusters)
        pieces = kmeans(white if is_white else points, weights, n_pieces, rng, max_iter=_PIECE_ITERATIONS)
    pieces = np.unique(pieces, return_inverse=True)[1]
    return agglomerated(white, weights, pieces, n_clusters) if pieces.max() >= n_clusters else None


def may_merge(points: Array, n_clusters: int) -> bool:
    """Whether there are enough points for small clusters, of which more than one are merged into each cluster."""
    size = points.shape[1]
    if n_clusters == 1 or size > _MOST_COLUMNS:
        return False
    return (len(points) // 2 if size == 1 else _n_pieces(len(points), size, n_clusters)) > n_clusters


def further_kmeans(
    found: Sequence[AnyArray],
    several: Sequence[Array],
    weights: Array,
    n_clusters: int,
    rng: np.random.Generator,
) -> list[AnyArray]:
    """Return labels of further runs of k-means that differ from those found, and from each other.

    Parameters
    ----------
    found
        Labels that are there already.
    several
        The points in several units: runs take them in turn.

    Notes
    -----
    There are few where the clusters are plain: runs end after a few that find nothing new.
    """
    fresh: list[AnyArray] = []
    n_repeated = 0
    for points in itertools.islice(itertools.cycle(several), _MOST_RUNS if n_clusters > 1 else 0):
        labels = partition(points, weights, n_clusters, rng)
        if any(alike(labels, other, weights, _SAME) for other in (*found, *fresh)):
            n_repeated += 1
            if n_repeated == _PATIENCE:
                break
        else:
            fresh.append(labels)
    return fresh


def _n_pieces(n_points: int, size: int, n_clusters: int) -> int:
    """Return the number of small clusters, given the number of columns."""
    most = int(np.sqrt(_MOST_OPERATIONS / max(size, 1) ** 3))
    return min(_PIECES * n_clusters, n_points // (2 * (size + 1)), most)


def whitened(points: Array, weights: Array) -> Array:
    """Return the points in the directions in which they vary, with mean 0 and covariance I."""
    share = weights / weights.sum()
    variances, directions = np.linalg.eigh((points * share[:, None]).T @ points)
    kept = variances > _FLAT
    return points @ (directions[:, kept] / np.sqrt(variances[kept]))


def alike(one: AnyArray, other: AnyArray, weights: Array, share: float = _ALIKE) -> bool:
    """Whether two partitions agree on more than a share of the rows, up to the names of their labels."""
    shape = (int(one.max()) + 1, int(other.max()) + 1)
    table = np.bincount(np.ravel_multi_index((one, other), shape), weights, shape[0] * shape[1]).reshape(
        shape
    )
    return bool(min(table.max(axis=0).sum(), table.max(axis=1).sum()) > share * weights.sum())
