"""Moments: where a fit stands between two iterations, with all that decides what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..._typing import Statistics
from ...language import Variable
from ..rows.row_map import RowMap
from .acceleration import Memory
from .problem import Factors, Problem
from .state import HalfStep, State, Visit
from .status import Status

__all__ = ["Moment", "Visits", "Walk"]


@dataclass(frozen=True)
class Visits:
    """What the incremental schedule remembers from batch to batch.

    Attributes
    ----------
    now
        What a look at the rows needs of the state, whose globals are updated; None before the first visit.
    last_time
        Number of a batch -> the last visit to it, where moves beyond the updates are tried.
    """

    now: HalfStep | None = None
    last_time: Mapping[int, Visit] = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """Where the loop stands between two iterations: from here it goes on to the same bits.

    Attributes
    ----------
    state
        The global factors, the local ones at their optimum, and the objective.
    objectives
        Objective at the start and after each iteration; those after iteration ``n_iter`` may follow it, and are none of
        this moment's.
    n_iter
        Iterations made.
    change
        By how much the last iteration raised the objective, in nats a row.
    memory
        Of the moves beyond the updates; None where the next sweep is a plain one.
    visits
        Of the incremental schedule to its batches.
    status
        Why no iteration follows; None if one may.
    saddles
        Saddle points that were left behind.
    """

    state: State
    objectives: Sequence[float]
    n_iter: int
    change: float
    memory: Memory | None
    visits: Visits = field(default_factory=Visits)
    status: Status | None = None
    saddles: int = 0

    def over(self, rows: RowMap, *, moves: bool) -> Moment:
        """Return the same over the same rows of another source, with or without the memory of the moves."""
        state = replace(self.state, rows=rows.at(self.state.problem.rows))
        return replace(self, state=state, memory=self.memory if moves else None)

    @property
    def trace(self) -> list[float]:
        """Objective at the start and after each iteration."""
        return list(self.objectives[: self.n_iter + 1])


@dataclass(frozen=True)
class Walk:
    """Where the stochastic schedule stands between two steps.

    Attributes
    ----------
    problem, q
        The global factors, and the problem whose reference points they are measured from.
    rows
        The map over the rows.
    natural
        The natural parameters that the factors were made of.
    objectives
        Estimates of the objective: of the start, and of each pass that is over. Others may follow, and are none of this
        walk's.
    n_iter
        Passes that are over.
    step
        Steps made.
    change
        By how much the estimate rose in the last pass that is over, in nats a row.
    random_state
        State of the generator that the batches of the present pass are drawn with.
    estimates
        What each batch of the present pass said of the objective, so far.
    status
        Why no step follows; None if one may.
    """

    problem: Problem
    rows: RowMap
    q: Factors
    natural: Mapping[Variable, Statistics]
    objectives: Sequence[float]
    n_iter: int
    step: int
    change: float
    random_state: Mapping[str, Any]
    estimates: tuple[float, ...] = ()
    status: Status | None = None

    @property
    def trace(self) -> list[float]:
        """Estimates of the objective of the start, and of each pass that is over."""
        return list(self.objectives[: self.n_iter + 1])
