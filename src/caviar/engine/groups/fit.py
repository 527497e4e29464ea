"""A fit of many groups: each from its most probable start, or from several if its labels are unclear."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..._typing import AnyArray, Array
from .ascent import GroupedEnds, GroupedState, ascend
from .problem import GroupedProblem
from .starts import begun, clustered, in_one, points_of, split_by_distance

_CLEAR = 0.1
"""Entropy of the labels, in nats a row, below which other starts would end where the first one did."""

_SEVERAL = 4
"""Categories from which on clusters are looked for from two seeds."""

_STRETCH = 10
"""Steps after which starts are compared."""

_BEHIND = 0.05
"""Nats a row by which a start may then be behind the best end that is known."""

_LEFT = 2
"""Starts that go on from there."""

_A_WHILE = 5
"""Steps after which it is told how many groups have ended."""

_TOGETHER = 2**20
"""Rows of the groups of all starts that ascend side by side, at most about."""


def fit_groups(
    problem: GroupedProblem,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    *,
    n_restarts: int = 1,
    hear: Callable[[int], object] = lambda n_ended: None,
) -> GroupedEnds:
    """Return where the ascents of all groups end.

    Parameters
    ----------
    rng
        Of the starts.
    max_iter, tol
        As of :meth:`Model.fit`.
    n_restarts
        Times that the other starts are made.
    hear
        Called now and then with the number of groups whose first start has ended.
    """
    ends = GroupedEnds.none(problem.size)
    if not problem.has_labels:
        _to_the_end(begun(problem), ends, max_iter, tol, hear)
        return ends
    points, turns = points_of(problem)
    counts, n_categories = problem.groups.counts, problem.n_categories
    n_seeds = 1 if n_categories < _SEVERAL else 2
    first = [clustered(points, turn, counts, n_categories, rng) for turn in turns for _ in range(n_seeds)]
    _to_the_end(begun(problem, *first), ends, max_iter, tol, hear)
    unclear = (~(ends.entropy < _CLEAR) & ends.has_settled).nonzero()[0]
    if unclear.size:
        own = problem.taken(unclear) if unclear.size < problem.size else problem
        for _ in range(n_restarts):
            others = _others(own, points[unclear], [turn[unclear] for turn in turns], rng)
            _race(own, list(others), ends, unclear, max_iter, tol)
            hear(problem.size)
    return ends


def _to_the_end(
    state: GroupedState | None,
    ends: GroupedEnds,
    max_iter: int,
    tol: float,
    hear: Callable[[int], object] = lambda n_ended: None,
) -> None:
    left = ascend(state, ends, min(_A_WHILE, max_iter), tol, foresees=True)
    for n_made in range(_A_WHILE, max_iter, _A_WHILE):
        if left is None:
            return
        hear(int(ends.has_settled.sum()))
        left = ascend(left, ends, min(_A_WHILE, max_iter - n_made), tol, foresees=True)
    if left is not None:
        ends.cut(left)


def _others(
    problem: GroupedProblem, points: Array, turns: list[Array], rng: np.random.Generator
) -> Iterator[AnyArray]:
    """Yield labels of other starts: by column, of other seeds, of a narrow cluster in a wide one, of one, drawn."""
    counts, n_categories = problem.groups.counts, problem.n_categories
    points = points[..., : int(counts.max())]
    for turn in turns:
        yield clustered(points, turn, counts, n_categories, rng)
    yield split_by_distance(turns[1] @ points, counts, n_categories)
    yield in_one(counts, points.shape[-1])
    yield rng.integers(n_categories, size=(len(counts), points.shape[-1]))


def _race(
    problem: GroupedProblem,
    starts: list[AnyArray],
    best: GroupedEnds,
    places: AnyArray,
    max_iter: int,
    tol: float,
) -> None:
    """Let starts ascend side by side, the best of them to their ends, and keep what is better than the best ends.

    Parameters
    ----------
    places
        Of the groups among those of ``best``.
    """
    size, share = problem.size, max(1, _TOGETHER // (problem.size * int(problem.groups.counts.max())))
    known, runs = best.elbo[places], []
    for first in range(0, len(starts), share):
        # starts are as independent as groups: an iteration is one for all of them
        labels = np.concatenate(starts[first : first + share])
        several = problem.taken(np.arange(len(labels)) % size)
        ends = GroupedEnds.none(len(labels))
        left = ascend(begun(several, labels), ends, min(_STRETCH, max_iter), tol, foresees=True)
        elbo = ends.elbo.copy()
        if left is not None:
            elbo[left.places] = np.where(left.goes_on, left.elbo, elbo[left.places])
        runs.append((ends, left, elbo.reshape(-1, size)))
    order = np.argsort(-np.concatenate([elbo for *_, elbo in runs]), axis=0, kind="stable")
    first = 0
    for ends, left, elbo in runs:
        numbers = np.arange(first, first + len(elbo))[:, None, None]
        first += len(elbo)
        is_near = elbo >= known - _BEHIND * problem.groups.counts
        chosen = (is_near & (order[:_LEFT] == numbers).any(axis=1)).ravel()
        if left is not None:
            own = (left.goes_on & chosen[left.places]).nonzero()[0]
            _to_the_end(left.taken(own) if own.size else None, ends, max(0, max_iter - _STRETCH), tol)
        for number in range(len(elbo)):
            best.improve(ends, places, number * size)
