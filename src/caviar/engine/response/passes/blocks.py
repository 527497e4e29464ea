"""Directional passes over chunks of rows, wherever these are: sums with an axis of the changes before all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from ...._typing import Array
from ...design.backend import Workspace
from ...design.keys import FactorKey
from ...local.statistics import Coefficients, LocalState, Rows, Sums
from ...rows.row_map import COLD, Look, RowMap
from ...rows.row_model import RowModel
from ...rows.sequences import Over, one_by_one
from ...rows.tasks import SumBlocks, Work
from ...rows.terms.row_term import BlockWork
from .sequences import respond_sequences

_MOST_PAIRS = 4e6
"""Numbers of the changes of all sums with all entries of the matrices that are formed in one pass."""


@dataclass(frozen=True)
class RespondBlocks(SumBlocks):
    """How sums over blocks of rows change with the coefficients, the local factors at their optimum."""

    rows: RowModel
    coefficients: Coefficients
    changes: tuple[Coefficients, ...]
    scratch: Workspace = field(default_factory=Workspace)
    over: Over = one_by_one

    def sums(self, rows: Rows, before: LocalState) -> Iterable[Sums]:
        if not self.rows.chains:
            return (
                self.rows.respond(BlockWork(rows, self.coefficients, self.scratch, before), self.changes),
            )
        found = respond_sequences(
            self.rows, rows, self.coefficients, self.changes, before, self.scratch, self.over
        )
        return (found,)

    def spread(self, over: Over) -> RespondBlocks:
        """Return the same work, the tiles of a long sequence done with the help of others."""
        return replace(self, over=over)

    def task(self) -> Callable[..., Work]:
        wanted = self.rows.parts_of_messages
        changes = tuple(change.of_parts(wanted) for change in self.changes)
        return partial(RespondBlocks, coefficients=self.coefficients.of_parts(wanted), changes=changes)


@dataclass(frozen=True)
class CurveBlocks(SumBlocks):
    """The sums of a pass, and how those of dense products change with every entry of their matrices, all at once."""

    rows: RowModel
    coefficients: Coefficients
    scratch: Workspace = field(default_factory=Workspace)

    def sums(self, rows: Rows, before: LocalState) -> Iterable[Sums]:
        return (self.rows.curvature(BlockWork(rows, self.coefficients, self.scratch)),)

    def task(self) -> Callable[..., Work]:
        return partial(CurveBlocks, coefficients=self.coefficients.of_parts(self.rows.parts_of_messages))


def is_worth_curving(model: RowModel, n_changes: int) -> bool:
    """Return whether one pass that forms the changes of all sums costs less than passes along the directions."""
    if not model.is_dense or not model.n_curved < _MOST_PAIRS:
        return False
    tables = model.tables
    return model.n_curved < sum(2.0 * n_changes * own.n_rows * tables[own].n_rows for own in model.factors)


def look_with_curvature(rows: RowMap, coefficients: Coefficients) -> tuple[Look, dict[FactorKey, Array]]:
    """Return a pass over all rows, and the change of the sums of each local factor with its matrix, (E F, E F)."""
    work, chunks = CurveBlocks(rows.model, coefficients), rows.chunks
    total, _ = rows.executor.sum(work, rows.source, chunks, [None] * len(chunks))
    curvature = rows.model.whole_curvature(total)
    return Look(rows.model.summary(total, rows.fixed, coefficients), COLD), curvature
