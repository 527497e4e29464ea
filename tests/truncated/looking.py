"""Looks at one block of rows, with few responsibilities and with all of them, at the globals after given labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import caviar as cv
from caviar.engine.ascent.problem import statistics_of
from caviar.engine.ascent.state import ready
from caviar.engine.assemble import with_few
from caviar.engine.design.backend import Workspace
from caviar.engine.local.statistics import Coefficients, Rows, Sums
from caviar.engine.rows.row_map import RowMap
from caviar.engine.rows.tasks import rows_at
from caviar.engine.rows.terms.row_term import BlockWork
from caviar.engine.rows.truncated.block import Block
from caviar.engine.rows.truncated.supports import Supports
from caviar.engine.rows.truncated.truncated_rows import TruncatedRows
from caviar.engine.starts.from_user import given_start
from caviar.execution.threads import Threads
from caviar.fitting.rows import bound_of, rows_of


@dataclass
class Looked:
    """What looks at the same rows with the same globals give."""

    few: Sums
    every: Sums
    supports: Supports
    logits: np.ndarray
    weights: np.ndarray
    columns: Any
    key: str

    @property
    def is_member(self) -> np.ndarray:
        """Which components are in the set of each row, (K, N)."""
        found = np.zeros(self.logits.shape, dtype=bool)
        for cell, (start, size) in enumerate(zip(self.supports.starts, self.supports.sizes, strict=True)):
            rows = self.supports.order.reshape(-1, self.supports.cell)[cell]
            found[np.ix_(self.supports.members[start : start + size], rows)] = True
        return found


@dataclass
class Looking:
    """All rows as one block, before they are looked at."""

    problem: Any
    rows: TruncatedRows
    read: Rows
    coefficients: Coefficients
    scratch: Workspace

    @property
    def block(self) -> Block:
        """The block at work, as in a look at it."""
        (label,) = self.problem.factors
        matrix = self.coefficients.matrices[label.key]
        return self.rows._make_block(self.read, self.coefficients, matrix, self.scratch)

    def looked(self, passes: int) -> tuple[Sums, Any]:
        """Return the sums and the state after some passes."""
        sums, state = self.rows.summarize(BlockWork(self.read, self.coefficients, self.scratch))
        for _ in range(1, passes):
            sums, state = self.rows.summarize(BlockWork(self.read, self.coefficients, self.scratch, state))
        return sums, state

    def supports(self, passes: int) -> Supports:
        """Return the sets after some passes."""
        return Supports.from_state(self.looked(passes)[1])


def looking_at(model: cv.Model, data: Any, labels: Any, n: int, weights: Any = None) -> Looking:
    """Return all rows as one block, with the globals that follow from given labels."""
    met = model._met(data, None)
    bound = bound_of(model, met, weights, None, None, ((), None))
    problem = model._problem(bound, (), None)
    rows = RowMap(problem.rows, rows_of(problem.bound), Threads(1))
    problem, q = given_start(problem, {"z": labels}, rows).start
    problem, q, _, coefficients = ready(problem, q, statistics_of(problem, q), may_return=True)
    few = with_few(problem, n).rows
    assert isinstance(few, TruncatedRows)
    read = rows_at(rows.source, (0, rows.source.n_rows))
    return Looking(problem, few, read, coefficients, Workspace())


def looks(model: cv.Model, data: Any, labels: Any, n: int, weights: Any = None, passes: int = 1) -> Looked:
    """Return looks at all rows as one block; the sets of components are those after some passes."""
    looking = looking_at(model, data, labels, n, weights)
    own, block, coefficients = looking.problem.rows, looking.read, looking.coefficients
    sums, state = looking.looked(passes)
    (label,) = looking.problem.factors
    sums = Sums({label.key: sums.fused[label.key].copy()}, {}, dict(sums.log_partition), {})
    every, _ = own.summarize(BlockWork(block, coefficients, Workspace()))
    logits = own.apart.of[label.key].natural(BlockWork(block, coefficients, looking.scratch)).copy()
    counted = np.ones(block.n_rows) if block.weights is None else block.weights
    supports = Supports.from_state(state)
    return Looked(sums, every, supports, logits, counted, block.columns, label.key)
