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
    """Named arrays whose first axis is that of the rows.

    Attributes
    ----------
    columns
        Name or other key -> array of shape (N, ...) and any numeric type, sparse matrix by rows, or lazy rows. They are
        never copied as a whole.
    n_rows
        N.
    row_weights
        Weight of each row, shape (N,); None if all weights are 1.
    order
        Position of each row among the rows of the user, shape (N,); None if they are in this order.
    first
        Position of the first row, if they are in this order.
    """

    columns: Mapping[Any, AnyArray]
    n_rows: int
    row_weights: Array | None = None
    order: AnyArray | None = None
    first: int = 0

    def read(self, start: int, stop: int) -> dict[Any, AnyArray]:
        """Return the rows from ``start`` to ``stop`` of every column, one after another in memory.

        Sums may differ in the last bits for another memory layout. Rows that already have this layout are not copied.
        """
        return {name: _contiguous(array[start:stop]) for name, array in self.columns.items()}

    def between(self, start: int, stop: int) -> ArrayRows:
        """Return the rows from ``start`` to ``stop`` as a separate object that keeps their positions.

        They can be pickled separately: arrays as these rows, tables on disk as their location.
        """
        columns = {name: _between(array, start, stop) for name, array in self.columns.items()}
        weights = None if self.row_weights is None else _between(self.row_weights, start, stop)
        order = None if self.order is None else self.order[start:stop]
        return ArrayRows(columns, stop - start, weights, order, self.first + start)

    def take(self, rows: AnyArray) -> ArrayRows:
        """Return a copy of the given rows as a separate object."""
        weights = None if self.row_weights is None else self.row_weights[rows]
        return ArrayRows({name: array[rows] for name, array in self.columns.items()}, len(rows), weights)

    def in_order(self, order: AnyArray) -> ArrayRows:
        """Return a copy of all rows in another order; it keeps their positions."""
        taken = self.take(order)
        return ArrayRows(taken.columns, taken.n_rows, taken.row_weights, order)

    def weights(self, start: int, stop: int) -> Array | None:
        """Return the weights of the rows from ``start`` to ``stop``, or None if all weights are 1."""
        return None if self.row_weights is None else self.row_weights[start:stop]

    def places(self, start: int, stop: int) -> slice | AnyArray:
        """Return the positions of the rows from ``start`` to ``stop`` among the rows of the user."""
        return slice(self.first + start, self.first + stop) if self.order is None else self.order[start:stop]

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """The columns, and the weights if there are any."""
        weights = () if self.row_weights is None else (self.row_weights,)
        return *self.columns.values(), *weights

    @property
    def has_single(self) -> bool:
        """Whether a column has numbers in fewer digits than float64."""
        return any(column.dtype.kind == "f" and column.dtype.itemsize < 8 for column in self.columns.values())

    @property
    def rows_together(self) -> int:
        """Number of rows that are read together: the size of the largest piece in which a column is stored."""
        return max((rows.together for rows in self.columns.values() if isinstance(rows, LazyRows)), default=1)

    @property
    def total_weight(self) -> float:
        """Sum of the weights, or the number of rows if there are none."""
        return self._total_weight

    @cached_property
    def _total_weight(self) -> float:
        # asked for in every pass, and weights may be read in blocks
        return float(self.n_rows) if self.row_weights is None else total_of(self.row_weights)


def _contiguous(block: Any) -> Any:
    return np.ascontiguousarray(block) if isinstance(block, np.ndarray) and block.ndim else block


def _between(array: Any, start: int, stop: int) -> Any:
    return array.between(start, stop) if isinstance(array, LazyRows) else array[start:stop]
