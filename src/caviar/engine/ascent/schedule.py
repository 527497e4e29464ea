"""Schedules say when the globals are updated, and from which rows. The driver knows only this interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from ...language import Variable
from ...numerics.records import replaced
from ..rows.row_map import RowMap
from .problem import Factors, Problem
from .state import AscentState, FitState, begin
from .status import Status

S = TypeVar("S", bound=FitState)
A = TypeVar("A", bound=AscentState)


@dataclass(frozen=True)
class Beginning(Generic[S]):
    """Where a fit begins.

    Attributes
    ----------
    problem, q
        Global factors, and their problem.
    rows
        The map over all rows.
    rng
        Returns the generator of what a schedule draws.
    given
        Variables whose factors a user gave.
    raced
        Where a race of starts over all rows has brought the factors, from which a schedule may go on as it is; None if
        a first pass over the rows has to be made.
    rows_raced
        Rows that all passes of the race have gone through together.
    is_from_clusters
        Whether the globals follow from clusters so plain that no other start was made.
    is_settled
        Whether ``raced`` is the end of iterations that were made beside those of other starts.
    """

    problem: Problem
    q: Factors
    rows: RowMap
    rng: Callable[[], np.random.Generator] | None = None
    given: Collection[Variable] = ()
    raced: S | None = None
    rows_raced: int = 0
    is_from_clusters: bool = False
    is_settled: bool = False


class StatedSchedule(ABC):
    """A schedule as a user states it, before the model and the data are known."""

    most_iterations: ClassVar[int] = 500
    """Iterations of each start where a user does not say."""

    settles: ClassVar[bool] = True
    """Whether a fit goes on until its objective has settled, however long that takes."""

    @abstractmethod
    def resolved(self, problem: Problem, n_rows: int, *, accelerate: bool) -> Schedule[Any]:
        """Return the schedule for a fit to data with this number of rows.

        Parameters
        ----------
        accelerate
            Whether moves beyond the updates of the globals are allowed.
        """


class Schedule(StatedSchedule, Generic[S]):
    """Definition of a step of a fit. A schedule has no memory: everything that changes is a field of its states."""

    def resolved(self, problem: Problem, n_rows: int, *, accelerate: bool) -> Schedule[Any]:
        """Return the schedule of a fit: this one."""
        return self

    @property
    def batch_moves(self) -> bool | None:
        """Whether globals are moved beyond their updates; None unless iterations are those of batch ascent.

        They must be so until the objective has settled. Several starts can then make them side by side.
        """
        return None

    @abstractmethod
    def init(self, beginning: Beginning[S]) -> S:
        """Return the state before the first step."""

    @abstractmethod
    def step(self, state: S) -> S:
        """Return the state after the smallest step after which a fit can be resumed.

        Its trace has one more entry if the step ends an iteration. Its status says why the fit ends, if it ends.
        """

    @abstractmethod
    def judged(self, before: S, after: S, tol: float) -> S:
        """Return the state after an iteration, CONVERGED if the objective changed by less than ``tol`` per row."""

    @abstractmethod
    def finish(self, state: S) -> AscentState:
        """Return the end of a fit: the local factors at their optimum, and the objective there."""

    @abstractmethod
    def to_plain(self, state: S) -> dict[str, Any]:
        """Return a state as values for a checkpoint: texts, numbers, arrays, keys, factors, and lists of these.

        Raises
        ------
        ParameterError
            If a part of it cannot be stored.
        """

    @abstractmethod
    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> S:
        """Return the state from the values of :meth:`to_plain`, for the same model and data.

        Raises
        ------
        ValueError, LookupError, TypeError, AttributeError
            If the values are not those of a state.
        """


class Ascent(Schedule[A]):
    """A schedule whose states have the objective of all rows; it can continue from any such state."""

    @abstractmethod
    def at(self, place: AscentState) -> A:
        """Return the state of this schedule where another way has led to: it remembers nothing yet."""

    def init(self, beginning: Beginning[A]) -> A:
        """Return the state after a pass over the rows with the global factors of a start."""
        return self.at(begin(beginning.problem, beginning.q, beginning.rows))

    def finish(self, state: A) -> AscentState:
        """Return the end of a fit: a state whose local factors are at their optimum already."""
        return state


@dataclass(frozen=True)
class Around(Schedule[S]):
    """Another schedule with something added. What a subclass does not define is that of the other one.

    Attributes
    ----------
    own
        The other schedule.
    """

    own: Schedule[S]

    def init(self, beginning: Beginning[S]) -> S:
        return self.own.init(beginning)

    def step(self, state: S) -> S:
        return self.own.step(state)

    def judged(self, before: S, after: S, tol: float) -> S:
        return self.own.judged(before, after, tol)

    def finish(self, state: S) -> AscentState:
        return self.own.finish(state)

    def to_plain(self, state: S) -> dict[str, Any]:
        return self.own.to_plain(state)

    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> S:
        return self.own.from_plain(document, problem, rows)


@dataclass(frozen=True)
class AscentAround(Around[A], Ascent[A]):
    """Another schedule that knows the objective of all rows, with something added."""

    own: Ascent[A]

    def at(self, place: AscentState) -> A:
        """Return the state of the other schedule."""
        return self.own.at(place)


def settled(state: A) -> A:
    """Return a state whose objective changes no more: converged, unless local factors restart from scratch.

    Such ones stop short of their optimum alike in each pass over the rows, so they go on from their last ones now.
    """
    return replaced(state, is_fresh=False, status=None if state.restarts_cold else Status.CONVERGED)
