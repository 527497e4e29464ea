"""Rows of counts that are read on demand, each block a sparse array."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from .._typing import AnyArray
from .rows import LazyRows, blocks_of


class SparseRows(LazyRows):
    """A table of counts (N, V) that need not be in memory: a slice of rows is a sparse array by rows.

    Counts are finite and above zero, and a row has each column at most once, in order.

    Attributes
    ----------
    total
        Sum of all counts.
    column_names
        Names of the columns; None if they have none.
    """

    dtype = np.dtype(np.float64)
    total: float
    column_names: tuple[str, ...] | None = None

    @property
    @abstractmethod
    def n_counts(self) -> int:
        """Number of counts."""

    @property
    @abstractmethod
    def n_counts_of_rows(self) -> AnyArray:
        """Number of counts of each row, shape (N,)."""

    def to_numpy(self) -> Any:
        """Return all rows in memory, as one sparse array."""
        blocks = [block for _, block in self.blocks()]
        return csr_array(vstack(blocks, format="csr")) if blocks else csr_array(self.shape)

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """Yield the place of the first row, and the counts, of one block after another."""
        return blocks_of(self)

    def sum(self) -> float:
        """Return the sum of all counts."""
        return self.total
