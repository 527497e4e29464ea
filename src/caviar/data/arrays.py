"""Named rows: NumPy arrays, and rows that are read in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import AnyArray, Array
from ..lazy.block_map import total_of
from ..lazy.rows import LazyRows


@dataclass(frozen=True)
class ArrayRows:
    """Named arrays whose first axis runs over the rows of the data plate.

    Attributes
    ----------
    columns
        Name, or another key -> array, shape (N, ...), of any numeric type, or a sparse matrix by rows, or lazy rows;
        never copied as a whole.
    n_rows
        N.
    row_weights
        Weight of each row, shape (N,), or None for one each.
    order
        The place of each row among the rows of the user, shape (N,); None if they are in that order.
    first
        The place of the first row, where they are in that order.
    """

    columns: Mapping[Any, AnyArray]
    n_rows: int
    row_weights: Array | None = None
    order: AnyArray | None = None
    first: int = 0

    def read(self, start: int, stop: int) -> dict[Any, AnyArray]:
        """Return the rows from ``start`` to ``stop`` of every column, one after another in memory.

        Sums over another layout may be other bits. Rows in memory that lie so are not copied.
        """
        return {name: _contiguous(array[start:stop]) for name, array in self.columns.items()}

    def between(self, start: int, stop: int) -> ArrayRows:
        """Return the rows from ``start`` to ``stop`` as rows of their own, whose places stay known.

        They can be pickled by themselves: of arrays these rows travel, of tables on disk where they are.
        """
        columns = {name: _between(array, start, stop) for name, array in self.columns.items()}
        weights = None if self.row_weights is None else _between(self.row_weights, start, stop)
        order = None if self.order is None else self.order[start:stop]
        return ArrayRows(columns, stop - start, weights, order, self.first + start)

    def take(self, rows: AnyArray) -> ArrayRows:
        """Return the given rows, copied, as rows of their own."""
        weights = None if self.row_weights is None else self.row_weights[rows]
        return ArrayRows({name: array[rows] for name, array in self.columns.items()}, len(rows), weights)

    def in_order(self, order: AnyArray) -> ArrayRows:
        """Return all rows in another order, copied; their places stay known."""
        taken = self.take(order)
        return ArrayRows(taken.columns, taken.n_rows, taken.row_weights, order)

    def weights(self, start: int, stop: int) -> Array | None:
        """Return the weights of the rows from ``start`` to ``stop``, or None where every row counts once."""
        return None if self.row_weights is None else self.row_weights[start:stop]

    def places(self, start: int, stop: int) -> slice | AnyArray:
        """Return the places of the rows from ``start`` to ``stop`` among the rows of the user."""
        return slice(self.first + start, self.first + stop) if self.order is None else self.order[start:stop]

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """The columns, and the weights where there are any."""
        weights = () if self.row_weights is None else (self.row_weights,)
        return *self.columns.values(), *weights

    @property
    def rows_together(self) -> int:
        """Rows that are read at the cost of one: those of the largest piece that a column is stored in."""
        return max((rows.together for rows in self.columns.values() if isinstance(rows, LazyRows)), default=1)

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the number of rows where there are none."""
        return self._total_weight

    @cached_property
    def _total_weight(self) -> float:
        # asked for in every pass, and weights may be read in blocks
        return float(self.n_rows) if self.row_weights is None else total_of(self.row_weights)


def _contiguous(block: Any) -> Any:
    return np.ascontiguousarray(block) if isinstance(block, np.ndarray) and block.ndim else block


def _between(array: Any, start: int, stop: int) -> Any:
    return array.between(start, stop) if isinstance(array, LazyRows) else array[start:stop]
