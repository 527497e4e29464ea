"""Searching: partitions reached by merging and splitting, starting from the better ends.

A partition with two clusters in one place and one cluster in two cannot be left by small steps, and guesses of all
clusters at once end at similar ones. Sometimes two moves are needed and the first lowers the objective, so the search
continues from several ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...._typing import AnyArray, Array
from .improving import Likely
from .regrouping import regrouped

_SAME = 1e-5
"""Nats a point by which the bounds of ends may differ that count as one."""

_MOST_LOST = 0.05
"""Nats a point below the best end from which on ends are not left by further moves."""

_HALVING = ((3, 24), (5, 12), (8, 12))
"""Iterations that partitions are improved by in turn, and how many of the best are kept each time."""


@dataclass(frozen=True, eq=False)
class End:
    """A partition that was improved.

    Attributes
    ----------
    labels
        Shape (n,).
    bound
        Of the likely model.
    is_left
        Whether moves from it have been tried.
    """

    labels: AnyArray
    bound: float
    is_left: bool = False


@dataclass(frozen=True)
class Effort:
    """How long a search takes.

    Attributes
    ----------
    moves
        Partitions that are made from each end in each view.
    ends
        Ends that are left in each step.
    steps
        Moves that may follow each other.
    """

    moves: int
    ends: int
    steps: int


def improved_ends(likely: Likely, labels: AnyArray) -> list[End]:
    """Return where partitions (m, n) lead, the best first."""
    bounds = np.empty(0)
    for n_iter, n_kept in _HALVING:
        if not len(labels):
            break
        labels, bounds = likely.improved(labels, n_iter)
        labels, bounds = labels[:n_kept], bounds[:n_kept]
    return [End(own, float(bound)) for own, bound in zip(labels, bounds, strict=True)]


def searched(
    likely: Likely,
    views: Sequence[Array],
    found: Sequence[End],
    effort: Effort,
) -> list[End]:
    """Return ends with those to which merging and splitting leads from the best of them, the best first.

    Parameters
    ----------
    views
        Sets of points (n, d), whitened, by each of which clusters are merged and split.
    found
        Ends that are known; none if no improved candidate has a finite bound.
    """
    known = sorted(found, key=lambda end: -end.bound)
    for _ in range(effort.steps if known else 0):
        least = known[0].bound - _MOST_LOST * likely.weights.sum()
        front = [end for end in known[: effort.ends] if not end.is_left and end.bound > least]
        moved = [
            labels
            for end in front
            for points in views
            for labels in regrouped(
                points, likely.weights, end.labels, likely.size, most=effort.moves, most_lost=np.inf
            )
        ]
        if not moved:
            break
        known = [replace(end, is_left=True) if end in front else end for end in known]
        known = distinct([*known, *improved_ends(likely, np.stack(moved))], likely)
    return known


def distinct(ends: Sequence[End], likely: Likely) -> list[End]:
    """Return the ends, the best first, the first of those that have the same bound."""
    kept: list[End] = []
    for end in ends:
        if is_new(end, kept, likely):
            kept.append(end)
    return sorted(kept, key=lambda end: -end.bound)


def is_new(end: End, ends: Sequence[End], likely: Likely) -> bool:
    """Whether an end has another bound than each of some ends."""
    step = _SAME * likely.weights.sum()
    return all(abs(end.bound - other.bound) > step for other in ends)
