"""Rows held in memory (or in a memory map) as NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .._typing import AnyArray, Array

__all__ = ["ArrayRows"]


@dataclass(frozen=True)
class ArrayRows:
    """Named arrays whose first axis runs over the rows of the data plate.

    Attributes
    ----------
    columns
        Name -> array, shape (N, ...), of any numeric type, or a sparse matrix by rows; never copied as a whole.
    n_rows
        N.
    row_weights
        Weight of each row, shape (N,), or None for one each.
    order
        The place of each row among the rows of the user, shape (N,); None if they are in that order.
    rows_together
        Rows that are read at the cost of one.
    """

    columns: Mapping[str, AnyArray]
    n_rows: int
    row_weights: Array | None = None
    order: AnyArray | None = None
    rows_together: int = 1

    def read(self, start: int, stop: int) -> dict[str, AnyArray]:
        """Return the rows from ``start`` to ``stop`` of every column, without copying."""
        return {name: array[start:stop] for name, array in self.columns.items()}

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
        return slice(start, stop) if self.order is None else self.order[start:stop]

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the number of rows where there are none."""
        return float(self.n_rows) if self.row_weights is None else float(np.sum(self.row_weights))
