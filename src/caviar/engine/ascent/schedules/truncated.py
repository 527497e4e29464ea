"""Truncated: a fit with few responsibilities for each row, and a last pass with all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ....numerics.records import replaced
from ...rows.row_map import RowMap
from ..problem import Problem
from ..schedule import Around, AscentAround, Beginning
from ..state import AscentState, FitState, retold, with_optimal_locals
from ..status import Status

A = TypeVar("A", bound=AscentState)
S = TypeVar("S", bound=FitState)

VERY_MANY = 200
"""Components from which on fits have few responsibilities and a start without a race where nobody says otherwise."""


@dataclass(frozen=True)
class Looks:
    """The two ways to look at the rows of a problem.

    Attributes
    ----------
    few, sparing, every
        Return a problem whose rows have few responsibilities; one with fewer searches for these, for starts and for
        fits that passes over some of the rows have brought near; and one whose rows have all.
    is_few
        Whether the rows of a problem have few.
    """

    few: Callable[[Problem], Problem]
    sparing: Callable[[Problem], Problem]
    every: Callable[[Problem], Problem]
    is_few: Callable[[Problem], bool]

    def before(self, beginning: Beginning[Any]) -> Problem:
        """Return the problem of a fit that is about to begin, whose rows have few responsibilities."""
        return (self.sparing if beginning.rows_raced else self.few)(beginning.problem)


@dataclass(frozen=True)
class Truncated(AscentAround[A]):
    """Another schedule with few responsibilities a row, until it has settled; then one look with all of them.

    Attributes
    ----------
    own
        The other schedule.
    looks
        How the rows are looked at.
    """

    looks: Looks

    def init(self, beginning: Beginning[A]) -> A:
        """Return the state after a pass over the rows, which finds the components that each may belong to."""
        state = self.own.init(replace(beginning, problem=self.looks.before(beginning), raced=None))
        return replaced(state, rows_raced=beginning.rows_raced)

    def judged(self, before: A, after: A, tol: float) -> A:
        """Return the state after an iteration, with all responsibilities where it has settled."""
        state = self.own.judged(before, after, tol)
        return self._closed(state) if state.status is Status.CONVERGED else state

    def finish(self, state: A) -> AscentState:
        """Return the end of a fit, with all responsibilities."""
        return self.own.finish(self._closed(state))

    def _closed(self, state: A) -> A:
        """Return a state with all responsibilities, whose objective ends the trace; unchanged if it has them."""
        if not self.looks.is_few(state.problem):
            return state
        problem = self.looks.every(state.problem)
        place = replace(state, problem=problem, rows=state.rows.at(problem.rows), warm={}, by_batch=None)
        closed = retold(with_optimal_locals(replace(place, status=None)))
        return replace(self.own.at(closed), status=state.status)

    def to_plain(self, state: A) -> dict[str, Any]:
        """Return a state as values that a checkpoint holds."""
        return {**self.own.to_plain(state), "is_few": self.looks.is_few(state.problem)}

    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> A:
        """Return the state from these values."""
        return self.own.from_plain(document, self.looks.few(problem) if document["is_few"] else problem, rows)


@dataclass(frozen=True)
class TruncatedSteps(Around[S]):
    """A schedule that keeps nothing of the rows, with few responsibilities a row in each of its steps.

    Attributes
    ----------
    own
        The schedule.
    looks
        How the rows are looked at.
    """

    looks: Looks

    def init(self, beginning: Beginning[S]) -> S:
        """Return the state before the first step."""
        return self.own.init(replace(beginning, problem=self.looks.before(beginning), raced=None))

    def finish(self, state: S) -> AscentState:
        """Return the end of a fit, whose last pass has all responsibilities."""
        problem = self.looks.every(state.problem)
        return self.own.finish(replace(state, problem=problem, rows=state.rows.at(problem.rows)))

    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> S:
        """Return the state from these values."""
        return self.own.from_plain(document, self.looks.few(problem), rows)
