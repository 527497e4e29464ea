"""Where groups begin: labels by k-means in all of them at once, and globals that follow from these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._typing import AnyArray, Array, Statistics
from ...numerics.linalg import cholesky, inverse
from ...numerics.records import replaced
from ..ascent.problem import Factors, statistics_of
from ..starts.factors.prior import prior_start
from ..starts.factors.swept import sweep
from .ascent import GroupedState, looked
from .problem import GroupedProblem

_ROUNDS = 4
"""Rounds of k-means, which the ascent brings to rest."""

_SEEN = 32
"""Rows for each cluster that k-means looks at, at least: of many rows every second, every third, ..."""

_BLOCK = 2**17
"""Numbers of the groups that are clustered together: they stay in the cache."""

_SHARE = 0.05
"""Share of each row that all components get where one has too few rows of its own."""


@np.errstate(all="ignore")
def begun(problem: GroupedProblem, *several: Array | None) -> GroupedState:
    """Return the state whose globals follow from sums over the rows by their own updates, locations first.

    Parameters
    ----------
    several
        Sums R T' of labels, (G, K, F), of which each group begins at those with the highest objective; None where
        nothing is hidden in the rows.
    """
    state, *others = [swept(problem, sums) for sums in several]
    for other in others:
        state = better(state, other)
    return looked(state)


def swept(problem: GroupedProblem, sums: Array | None) -> GroupedState:
    """Return the state whose globals follow from sums, beginning at their priors, and its objective with these.

    The entropy of the labels is left out.
    """
    own, q = problem.problem, dict(prior_start(problem.problem))
    arrays = {**statistics_of(own, q), **problem.parts(sums)}
    sweep(own, q, arrays, frozenset())
    size, none = problem.size, np.full(problem.size, None, dtype=object)
    zero, far, entropy = np.zeros(size), np.full(size, np.inf), problem.own_entropy(q, arrays)
    elbo = problem.objective(arrays, zero) + entropy
    places, no = np.arange(size), np.zeros(size, dtype=np.intp)
    return GroupedState(problem, places, {}, arrays, entropy, sums, zero, elbo, far, None, none, no)


@np.errstate(all="ignore")
def at_factors(problem: GroupedProblem, starts: Sequence[Factors], n_plain: float) -> GroupedState:
    """Return the state with given global factors in each group, after a pass over the rows.

    Parameters
    ----------
    starts
        Global factors of each group, which share their rows.
    n_plain
        Steps at first in which globals are not moved beyond their updates.
    """
    own, size, natural, arrays = problem.problem, problem.size, {}, {}
    entropy = np.array(
        [sum(problem.one.own_entropy(node, q[node]) for node in problem.one.order) for q in starts]
    )
    for variable, node in zip(own.order, problem.one.order, strict=True):
        shapes = [fixed.shape[1:] for fixed in own.updates[variable].fixed]
        factors = [q[node] for q in starts]
        expected = [factor.expected_statistics for factor in factors]
        arrays |= zip(own.keys[variable], _stacked(expected, shapes), strict=True)
        made_of = [() if factor.learnt is None else tuple(factor.learnt.natural) for factor in factors]
        if all([eta.shape for eta in several] == shapes for several in made_of):
            natural[variable] = _stacked(made_of, shapes)
    if len(natural) < len(own.order):
        natural = {}
    zero, far, none = np.zeros(size), np.full(size, np.inf), np.full(size, None, dtype=object)
    places, no = np.arange(size), np.zeros(size, dtype=np.intp)
    state = GroupedState(
        problem, places, natural, arrays, entropy, None, zero, zero, far, None, none, no, n_plain
    )
    return looked(state)


def _stacked(several: Sequence[Statistics], shapes: Sequence[tuple[int, ...]]) -> Statistics:
    """Return the statistics of several groups, (G, ...) each."""
    parts = zip(*several, strict=True)
    return tuple(
        [
            np.stack([np.broadcast_to(one, shape) for one in part])
            for part, shape in zip(parts, shapes, strict=True)
        ]
    )


def better(state: GroupedState, other: GroupedState) -> GroupedState:
    """Return of two states that follow from labels the one with the higher objective, group by group."""
    is_other = other.elbo > state.elbo

    def chosen(one: Array, another: Array) -> Array:
        # what is the same in all groups has no axis for them
        if one.shape != another.shape or not one.ndim or len(one) != len(is_other):
            return one
        return np.where(is_other.reshape(-1, *[1] * (one.ndim - 1)), another, one)

    assert state.sums is not None
    assert other.sums is not None
    return replaced(
        state,
        arrays={key: chosen(own, other.arrays[key]) for key, own in state.arrays.items()},
        own_entropy=chosen(state.own_entropy, other.own_entropy),
        sums=chosen(state.sums, other.sums),
        elbo=chosen(state.elbo, other.elbo),
    )


def sums_of(problem: GroupedProblem, labels: AnyArray) -> Array:
    """Return the sums R T' of labels, (G, K, F)."""
    found, size = [], max(1, _BLOCK // (labels.shape[1] * problem.n_categories))
    for first in range(0, len(labels), size):
        own = slice(first, first + size)
        shares = _responsibilities(labels[own], problem.n_categories, problem.groups.counts[own])
        found.append(problem.rows.sums_of(shares, own))
    return np.concatenate(found)


def _responsibilities(labels: AnyArray, n_categories: int, counts: AnyArray) -> Array:
    """Return those of labels, (G, K, N), softened in groups in which a component has few rows."""
    found = (labels[:, None] == np.arange(n_categories)[:, None]).astype(np.float64)
    if counts.min() < labels.shape[1]:
        found *= np.arange(labels.shape[1]) < counts[:, None, None]
    own = found.sum(axis=-1)
    few = (own.min(axis=-1) < 2.0).nonzero()[0]
    share = np.maximum(own[few] / counts[few, None], 1 / n_categories)
    found[few] = (1 - _SHARE) * found[few] + _SHARE * share[..., None]
    return found


def clustered(
    points: Array, turn: Array, counts: AnyArray, n_clusters: int, rng: np.random.Generator
) -> AnyArray:
    """Return labels of k-means in each group, (G, N).

    Parameters
    ----------
    points
        Shape (G, D, N).
    turn
        What the points of each group are multiplied by, (G, D, D).
    counts
        Rows of each group; those behind them count nothing.
    rng
        Of the rows that clusters begin at, each chosen in proportion to its squared distance from those before.
    """
    n_groups, _, n_rows = points.shape
    labels = np.zeros((n_groups, n_rows), dtype=np.int16)
    if n_clusters == 1:
        return labels
    size = max(1, _BLOCK // (points.shape[1] * n_rows))
    step = max(1, int(counts.min()) // (_SEEN * n_clusters))
    for first in range(0, n_groups, size):
        own = slice(first, first + size)
        few = turn[own] @ points[own, :, ::step]
        counted = (np.arange(0, n_rows, step) < counts[own, None]).astype(np.float64)
        centres = _centres(few, counted, _seeds(few, counted, n_clusters, rng))
        labels[own] = _nearest(points[own], centres, turn[own])
    return labels


def _centres(points: Array, counted: Array, centres: Array) -> Array:
    """Return the centres of clusters, (G, K, D), after some rounds from others."""
    # a row of ones counts the points
    table = np.concatenate([points, np.ones_like(points[:, :1])], axis=1)
    others = np.arange(centres.shape[1] - 1, dtype=np.int16)[:, None]
    turned = (table * counted[:, None] if counted.min() < 1 else table).swapaxes(1, 2)
    total = turned.sum(axis=1)
    for _ in range(_ROUNDS):
        # the last cluster has what the others leave
        is_in = (_nearest(points, centres)[:, None] == others).astype(np.float64)
        sums = is_in @ turned
        sums = np.concatenate([sums, (total - sums.sum(axis=1))[:, None]], axis=1)
        n_rows = sums[..., -1:]
        centres = np.where(n_rows > 0, sums[..., :-1] / np.maximum(n_rows, 1.0), centres)
    return centres


def _nearest(points: Array, centres: Array, turn: Array | None = None) -> AnyArray:
    """Return the number of the centre that is nearest to each point, (G, N), once the points are turned."""
    lengths, turned = np.einsum("gkd,gkd->gk", centres, centres), centres if turn is None else centres @ turn
    # squared distances less that from the first centre
    away = 2.0 * (turned[:, :1] - turned[:, 1:]) @ points
    bounds = lengths[:, :1] - lengths[:, 1:]
    if centres.shape[1] == 2:
        return (away[:, 0] < bounds).view(np.int8)
    away -= bounds[..., None]
    labels, nearest = np.zeros((len(points), points.shape[-1]), dtype=np.int16), np.zeros(away[:, 0].shape)
    for k in range(1, centres.shape[1]):
        np.putmask(labels, away[:, k - 1] < nearest, k)
        nearest = np.minimum(nearest, away[:, k - 1])
    return labels


def _seeds(points: Array, counted: Array, n_clusters: int, rng: np.random.Generator) -> Array:
    """Return rows of each group to begin with, (G, K, D)."""
    groups, last, weights = np.arange(len(points)), counted.shape[1] - 1, None
    drawn = (rng.random(len(points)) * counted.sum(axis=1)).astype(np.intp)
    chosen = [points[groups, :, np.minimum(drawn, last)]]
    while len(chosen) < n_clusters:
        away = _squares(points - chosen[-1][..., None]) * counted
        weights = away if weights is None else np.minimum(weights, away)
        total = weights.cumsum(axis=1)
        drawn = (total < rng.random((len(points), 1)) * total[:, -1:]).sum(axis=1)
        chosen.append(points[groups, :, np.minimum(drawn, last)])
    return np.stack(chosen, axis=1)


def _squares(points: Array) -> Array:
    """Return the squared lengths of points, (G, D, N): few columns are added up one by one."""
    found = np.square(points[:, 0])
    for column in range(1, points.shape[1]):
        found += np.square(points[:, column])
    return found


def split_by_distance(points: Array, counts: AnyArray, n_categories: int) -> AnyArray:
    """Return labels by the distance of rows from the mean of their group, as many rows of each label, (G, N)."""
    away = np.where(np.arange(points.shape[-1]) < counts[:, None], np.square(points).sum(axis=1), np.inf)
    ranks = away.argsort(axis=1).argsort(axis=1)
    return np.minimum(ranks * n_categories // counts[:, None], n_categories - 1)


def in_one(counts: AnyArray, n_rows: int) -> AnyArray:
    """Return the labels of one cluster, (G, N)."""
    return np.zeros((len(counts), n_rows), dtype=np.intp)


def points_of(problem: GroupedProblem) -> tuple[Array, list[Array]]:
    """Return the rows of each group as points, (G, D, N), and what brings them to one size, (G, D, D) each.

    The first divides each column by its spread, the second whitens the points of a group.
    """
    counts = problem.groups.counts
    values = [(leaf, np.asarray(own, dtype=np.float64)) for leaf, own in problem.observed]
    width = sum(int(np.prod(own.shape[2:])) for _, own in values)
    points = np.empty((len(counts), width, values[0][1].shape[1]))
    covariance = np.empty((len(counts), width, width))
    size = max(1, _BLOCK // max(1, points[0].size))
    for first in range(0, len(counts), size):
        own = slice(first, first + size)
        some, start = points[own], 0
        for leaf, value in values:
            columns = np.asarray(leaf.evened(value[own])).reshape(*some.shape[::2], -1)
            some[:, start : start + columns.shape[-1]] = columns.swapaxes(1, 2)
            start += columns.shape[-1]
        covariance[own] = _centred(some, counts[own, None, None])
    return points, _turns(covariance)


def _centred(points: Array, counts: AnyArray) -> Array:
    """Return the covariance of the rows of some groups, (G, D, D), from points (G, D, N) that are centred in place."""
    is_row = np.arange(points.shape[-1]) < counts
    where = True if counts.min() == points.shape[-1] else is_row
    points -= np.add.reduce(points, axis=-1, keepdims=True, where=where) / counts
    if where is not True:
        points *= is_row
    return points @ points.swapaxes(1, 2) / counts


def _turns(covariance: Array) -> list[Array]:
    """Return what gives each column the unit of its own spread, and what whitens, (G, D, D) each."""
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    scale = 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0))
    alone = scale[:, None] * np.eye(variance.shape[1])
    if variance.shape[1] == 1:
        return [alone, alone]
    correlation = covariance * scale[:, None] * scale[..., None] + 1e-6 * np.eye(variance.shape[1])
    return [alone, inverse(cholesky(correlation), is_lower=True) @ alone]
