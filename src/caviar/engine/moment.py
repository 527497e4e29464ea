"""Moments: where the loop stands between two iterations, with all that decides what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .acceleration import Memory
from .passes import Kept
from .state import State
from .status import Status

__all__ = ["Moment"]


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
    kept
        What the passes over the rows keep for the next one.
    status
        Why no iteration follows; None if one may.
    """

    state: State
    objectives: Sequence[float]
    n_iter: int
    change: float
    memory: Memory | None
    kept: Kept
    status: Status | None = None

    @property
    def trace(self) -> list[float]:
        """Objective at the start and after each iteration."""
        return list(self.objectives[: self.n_iter + 1])
