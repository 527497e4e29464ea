"""A fit of many groups: each from its most probable start, or from several if its labels are unclear.

Groups of several states as those of one: few that go on share the calls of an iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array, Statistics
from .ascent import GroupedEnds, GroupedState, ascend
from .merging import merged
from .moves import GroupedMemory
from .problem import GroupedProblem, Share
from .starts import begun, clustered, in_one, points_of, split_by_distance, sums_of

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


_FEW = 1 / 16
"""Share of the groups of a part at which those that go on are left to be joined by those of other parts."""


@dataclass(frozen=True, eq=False)
class Ended:
    """Groups that have ended at an optimum, or after the largest number of steps.

    Attributes
    ----------
    groups
        Their numbers, (g,).
    places
        Their places in the ends, (g,).
    factors
        Name of a global variable -> its factors, along a first axis of the groups.
    ends
        Where they have ended, among others.
    """

    groups: AnyArray
    places: AnyArray
    factors: Mapping[str, Any]
    ends: GroupedEnds

    @classmethod
    def of(cls, problem: GroupedProblem, groups: AnyArray, ends: GroupedEnds) -> list[Ended]:
        """Return those of the groups of a problem, (G,), that have ended; none if none has."""
        places = ends.has_settled.nonzero()[0]
        return (
            [cls(groups[places], places, problem.factors(ends.vector, places), ends)] if places.size else []
        )


@dataclass(frozen=True, eq=False)
class Unclear:
    """Groups whose labels are unclear at their ends: other starts may end higher.

    Attributes
    ----------
    share
        Their data.
    groups
        Their numbers, (g,).
    elbo
        Their objectives, (g,).
    sums
        Their sums over rows, (g, K, F), with components merged that promise more together.
    """

    share: Share
    groups: AnyArray
    elbo: Array
    sums: Array


@dataclass(frozen=True, eq=False)
class Part:
    """Groups whose ascents were begun together, once few of them go on.

    Attributes
    ----------
    groups
        Their numbers, (G,).
    ended, unclear
        Those that have ended, and of these those whose labels are unclear, if other starts are still to be made.
    left
        Those that go on; None if none does.
    """

    groups: AnyArray
    ended: list[Ended]
    unclear: list[Unclear]
    left: Left | None

    @property
    def n_ended(self) -> int:
        """Number of the groups that have ended."""
        return len(last_ends(self.ended)[0])


def begin_groups(
    problem: GroupedProblem,
    groups: AnyArray,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    *,
    n_restarts: int = 1,
    is_alone: bool = True,
    hear: Callable[[int], object] = lambda n_ended: None,
) -> Part:
    """Return the groups of a problem after ascents from their first starts.

    Parameters
    ----------
    groups
        Numbers of the groups, (G,).
    rng
        Of the starts.
    max_iter, tol
        As of :meth:`Model.fit`.
    n_restarts
        Times that other starts are made of groups whose labels are unclear.
    is_alone
        Whether all ascend to their ends. Otherwise those that go on are left where few do, and few whose labels are
        unclear.
    hear
        Called now and then with the number of groups that have ended.
    """
    ends, few = GroupedEnds.none(problem.size), 0 if is_alone else int(_FEW * problem.size)
    state = _onward(begun(problem, *_clusters(problem, rng)), ends, max_iter, tol, few=few, hear=hear)
    left = None if state is None else Left.of(state, ends)
    ended, unclear = Ended.of(problem, groups, ends), []
    own, fewer = _unclear(problem, ends)
    if own.size > few:
        several = problem.taken(own) if own.size < problem.size else problem
        ended += _raced(several, groups[own], ends.elbo[own], fewer, rng, max_iter, tol, n_restarts)
    elif own.size:
        unclear = [Unclear(problem.share(own), groups[own], ends.elbo[own], fewer)]
    return Part(groups, ended, unclear, left)


def _clusters(problem: GroupedProblem, rng: np.random.Generator) -> list[Array | None]:
    """Return sums of first starts, (G, K, F) each: by k-means of the columns, and of whitened rows."""
    if not problem.has_labels:
        return [None]
    points, turns = points_of(problem)
    counts, n_categories = problem.groups.counts, problem.n_categories
    n_seeds = 1 if n_categories < _SEVERAL else 2
    return [
        sums_of(problem, clustered(points, turn, counts, n_categories, rng))
        for turn in turns
        for _ in range(n_seeds)
    ]


def end_groups(
    parts: Sequence[Part], rng: np.random.Generator, max_iter: int, tol: float, *, n_restarts: int = 1
) -> list[Ended]:
    """Return where the groups of several parts have ended; the last end of a group is its best.

    Parameters
    ----------
    rng
        Of other starts.
    max_iter, tol, n_restarts
        As of :func:`begin_groups`.
    """
    ended = [own for part in parts for own in part.ended]
    unclear = [own for part in parts for own in part.unclear]
    left = [(part.groups[part.left.places], part.left) for part in parts if part.left is not None]
    if left:
        groups = np.concatenate([own for own, _ in left])
        state, ends = joined([own for _, own in left])
        problem = state.problem
        _onward(state, ends, max_iter, tol)
        ended += Ended.of(problem, groups, ends)
        own, fewer = _unclear(problem, ends)
        unclear += [Unclear(problem.share(own), groups[own], ends.elbo[own], fewer)] if own.size else []
    if unclear:
        problem = GroupedProblem.joined([own.share for own in unclear])
        groups, elbo, sums = (
            np.concatenate(own)
            for own in zip(*[(own.groups, own.elbo, own.sums) for own in unclear], strict=True)
        )
        ended += _raced(problem, groups, elbo, sums, rng, max_iter, tol, n_restarts)
    return ended


def _unclear(problem: GroupedProblem, ends: GroupedEnds) -> tuple[AnyArray, Array]:
    """Return the places of the groups of which other starts may end higher, (g,), and sums to begin at, (g, K, F).

    Their labels are unclear, or some of their components promise more together.
    """
    settled = ends.has_settled.nonzero()[0]
    if not (problem.has_labels and settled.size):
        return np.empty(0, dtype=np.intp), np.empty((0, 0, 0))
    # a group that has not ended is looked at as if it were one that has, and is left out below
    stand_ins = np.where(ends.has_settled, np.arange(problem.size), settled[0])
    sums, is_merged = merged(problem, ends.sums[stand_ins])
    own = ((is_merged | ~(ends.entropy < _CLEAR)) & ends.has_settled).nonzero()[0]
    return own, sums[own]


def _raced(
    problem: GroupedProblem,
    groups: AnyArray,
    elbo: Array,
    sums: Array,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    n_restarts: int,
) -> list[Ended]:
    """Return the ends of other starts that are higher than the objectives that groups have, (G,)."""
    points, turns = points_of(problem)
    best = GroupedEnds.none(problem.size)
    best.elbo = elbo.copy()
    for _ in range(n_restarts):
        others = [sums_of(problem, labels) for labels in _others(problem, points, turns, rng)]
        _race(problem, [sums, *others], best, max_iter, tol)
    return Ended.of(problem, groups, best)


def last_ends(ended: Sequence[Ended]) -> tuple[AnyArray, Array]:
    """Return the numbers of the groups that have ended, and the objectives of the last end of each, (g,) both."""
    groups = np.concatenate([own.groups for own in reversed(ended)] or [np.empty(0, dtype=np.intp)])
    elbo = np.concatenate([own.ends.elbo[own.places] for own in reversed(ended)] or [np.empty(0)])
    found, first = np.unique(groups, return_index=True)
    return found, elbo[first]


def _onward(
    state: GroupedState | None,
    ends: GroupedEnds,
    max_iter: int,
    tol: float,
    *,
    few: int = 0,
    hear: Callable[[int], object] = lambda n_ended: None,
) -> GroupedState | None:
    """Return the state of the groups that go on once no more than ``few`` do, None where all have ended."""
    n_made = 0
    while state is not None:
        going = state.goes_on
        if n_made and going.sum() <= few:
            return state
        n_steps = min(1 if few else _A_WHILE, max_iter - int(state.n_iter[going].max()))
        if n_steps <= 0:
            ends.cut(state, max_iter)
            state = state if state.goes_on.any() else None
            continue
        state = ascend(state, ends, n_steps, tol, foresees=True)
        n_made += n_steps
        if state is not None and n_made % _A_WHILE == 0:
            hear(int(ends.has_settled.sum()))
    return None


def _others(
    problem: GroupedProblem, points: Array, turns: list[Array], rng: np.random.Generator
) -> Iterator[AnyArray]:
    """Yield labels of other starts: of other seeds, of fewer clusters, of a narrow one in a wide one, of one, drawn."""
    counts, n_categories = problem.groups.counts, problem.n_categories
    for turn in turns:
        yield clustered(points, turn, counts, n_categories, rng)
    for fewer in _fewer(n_categories):
        yield clustered(points, turns[-1], counts, fewer, rng)
    yield split_by_distance(turns[1] @ points, counts, n_categories)
    yield in_one(counts, points.shape[-1])
    yield rng.integers(n_categories, size=(len(counts), points.shape[-1]))


def _fewer(n_categories: int) -> list[int]:
    """Return numbers of clusters between two and that of the categories: one less, and halves of halves."""
    halves = {n_categories >> halvings for halvings in range(1, n_categories.bit_length())}
    return [number for number in sorted({n_categories - 1, *halves}, reverse=True) if number > 1]


def _race(
    problem: GroupedProblem,
    starts: list[Array],
    best: GroupedEnds,
    max_iter: int,
    tol: float,
) -> None:
    """Let starts ascend side by side, the best of them to their ends, and keep what is better than the best ends."""
    size, share = problem.size, max(1, _TOGETHER // (problem.size * int(problem.groups.counts.max())))
    known, runs = best.elbo.copy(), []
    for first in range(0, len(starts), share):
        # starts are as independent as groups: an iteration is one for all of them
        sums = np.concatenate(starts[first : first + share])
        several = problem.taken(np.arange(len(sums)) % size)
        ends = GroupedEnds.none(len(sums))
        left = ascend(begun(several, sums), ends, min(_STRETCH, max_iter), tol, foresees=True)
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
            _onward(left.taken(own) if own.size else None, ends, max_iter, tol)
        for number in range(len(elbo)):
            best.improve(ends, number * size)


_OWN = "own_entropy", "entropy", "elbo", "change", "ended", "n_iter"
"""What a state has of each group, (G,)."""


@dataclass(frozen=True, eq=False)
class Left:
    """The groups of a state that go on, after a step or more; nothing of the others is kept.

    Attributes
    ----------
    share
        Their data.
    places
        Which groups they are, (g,).
    natural, expected
        Natural parameters and expected statistics of the global factors, in the order of the problem.
    sums
        Sums over rows, (g, K, F); None where nothing is hidden in the rows.
    memory
        Of their moves; None where they have made none yet.
    own
        Name of what else a state has of each group -> that, (g,).
    traces
        Places among them, from 0, and objectives of each step so far.
    """

    share: Share
    places: AnyArray
    natural: Sequence[Statistics]
    expected: Sequence[Statistics]
    sums: Array | None
    memory: GroupedMemory | None
    own: Mapping[str, AnyArray]
    traces: list[tuple[AnyArray, Array]]

    @classmethod
    def of(cls, state: GroupedState, ends: GroupedEnds) -> Left:
        """Return the groups of a state that go on; the traces are those of the ends."""
        groups = state.goes_on.nonzero()[0]
        places, order = state.places[groups], state.problem.problem.order
        traces = []
        for there, elbo in ends.traces:
            is_in = np.isin(there, places)
            traces.append((np.searchsorted(places, there[is_in]), elbo[is_in]))
        return cls(
            state.problem.share(groups),
            places,
            [_some(state.natural[variable], groups) for variable in order],
            [_some(state.expected[variable], groups) for variable in order],
            None if state.sums is None else state.sums[groups],
            None if state.memory is None else state.memory.taken(groups),
            {name: getattr(state, name)[groups] for name in _OWN},
            traces,
        )


def joined(several: Sequence[Left]) -> tuple[GroupedState, GroupedEnds]:
    """Return the state of the groups of several, one after another, and their ends, which have their traces so far."""
    problem = GroupedProblem.joined([own.share for own in several])
    naturals = [_one_after_another(parts) for parts in zip(*[own.natural for own in several], strict=True)]
    expected = [_one_after_another(parts) for parts in zip(*[own.expected for own in several], strict=True)]
    order, arrays = problem.problem.order, {}
    for variable, statistics in zip(order, expected, strict=True):
        arrays |= zip(problem.problem.keys[variable], statistics, strict=True)
    looked_at = [own.sums for own in several if own.sums is not None]
    sums = np.concatenate(looked_at) if looked_at else None
    memories = [own.memory for own in several if own.memory is not None]
    each: dict[str, Any] = {name: np.concatenate([own.own[name] for own in several]) for name in _OWN}
    state = GroupedState(
        problem=problem,
        places=np.arange(problem.size),
        natural=dict(zip(order, naturals, strict=True)),
        arrays={**arrays, **problem.parts(sums)},
        sums=sums,
        memory=GroupedMemory.joined(memories) if memories else None,
        **each,
    )
    ends, first = GroupedEnds.none(problem.size), 0
    for own in several:
        ends.traces += [(first + places, elbo) for places, elbo in own.traces]
        first += len(own.places)
    return state, ends


def _some(arrays: Statistics, groups: AnyArray) -> Statistics:
    return tuple([array[groups] for array in arrays])


def _one_after_another(several: Sequence[Statistics]) -> Statistics:
    return tuple([np.concatenate(arrays) for arrays in zip(*several, strict=True)])
