"""Auto: the default schedule of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..problem import Problem
from ..schedule import Ascent, StatedSchedule
from .batch import Batch
from .incremental import Incremental, most_batches

_OPERATIONS_A_BATCH = 3e8
"""Of the matrix products of a batch, that make the update of the globals after it worth its time."""

_FEWEST, _MOST = 4, 32
"""Batches."""


@dataclass(frozen=True)
class Auto(StatedSchedule):
    """Incremental where a pass over the rows costs much more than the updates of the globals, else batch."""

    def resolved(self, problem: Problem, n_rows: int, *, accelerate: bool) -> Ascent[Any]:
        """Return the schedule for a number of rows; without moves beyond the updates, it is plain coordinate ascent."""
        wanted = int(n_rows * problem.rows.operations_a_row / _OPERATIONS_A_BATCH) if accelerate else 0
        wanted = wanted if problem.rows.maximises else 0
        n_batches = min(wanted, _MOST, most_batches(problem, n_rows)) if wanted >= _FEWEST else 0
        stated = Incremental(n_batches) if n_batches >= _FEWEST else Batch()
        return stated.resolved(problem, n_rows, accelerate=accelerate)
