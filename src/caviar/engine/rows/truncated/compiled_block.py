"""A block of rows in cells at work in compiled loops, where numba is installed: the extra ``caviar[compiled]``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...._typing import AnyArray, Array
from ...design.backend import Workspace
from ...design.features import FeatureTable
from ...local.statistics import Coefficients, Rows
from .block import BESIDE, FAR, Block, rows_at
from .cells import DenseCells
from .supports import ASKED, Supports

_RUN = 40_000
"""Numbers that the features of a run of cells take."""

_PADDED = 8
"""Features are padded by zeros to a multiple of this."""


@dataclass(frozen=True)
class Products:
    """The dense features of a table as some that are written, and products of pairs of them.

    Attributes
    ----------
    table
        Of the features that are written, G rows.
    pairs
        Rows of two of them for each of the others, (F - G, 2).
    columns
        Rows in the whole table, of those that are written and then of the others, (F,).
    """

    table: FeatureTable
    pairs: AnyArray
    columns: AnyArray

    @classmethod
    def of(cls, table: FeatureTable) -> Products:
        """Return the dense features of a table: products of a vector with itself are those of its numbers."""
        written, multiplied, first, n_written = [], [], {}, 0
        pairs = [np.zeros((0, 2), dtype=np.int64)]
        for feature, rows in zip(table.features, table.slices, strict=True):
            source = feature.source
            places = np.arange(rows.start, rows.stop)
            if source is not None and feature.is_packed and source.key in first:
                pairs.append(first[source.key] + np.stack(feature.pairs, axis=1))
                multiplied.append(places)
                continue
            if source is not None and feature.is_plain:
                first[source.key] = n_written
            written.append((feature, places))
            n_written += len(places)
        columns = np.concatenate([*(places for _, places in written), *multiplied])
        return cls(FeatureTable([feature for feature, _ in written]), np.concatenate(pairs), columns)


class CompiledBlock(Block):
    """A block whose rows meet dense features alone, in cells so small that a row has few components.

    Parameters
    ----------
    terms
        The dense features of the label.
    products
        The same, as products.
    rows, coefficients, matrix, scratch
        See :class:`~caviar.engine.rows.truncated.block.Block`.
    """

    cell = 16

    def __init__(
        self,
        terms: DenseCells,
        products: Products,
        rows: Rows,
        coefficients: Coefficients,
        matrix: Array,
        scratch: Workspace,
    ) -> None:
        super().__init__(terms, rows, coefficients, matrix, scratch)
        self._products = products
        n_categories, n_features = matrix.shape
        self._padded = _zeros(n_categories, -(-n_features // _PADDED) * _PADDED)
        np.take(matrix, products.columns, axis=1, out=self._padded[:, :n_features])

    def sums(self, supports: Supports) -> tuple[Array, float]:
        n_categories, n_padded = self._padded.shape
        sums = _zeros(n_categories + 1, n_padded)
        log_partition = self._add(supports, sums)
        total = np.empty_like(self.matrix)
        total[:, self._products.columns] = sums[:n_categories, : total.shape[1]]
        return total, log_partition

    def _add(self, supports: Supports, sums: Array) -> float:
        """Add what the cells have to sums, and return their log-partition."""
        from .kernels import add_cells

        found = np.empty(supports.n_cells)
        for run, given in self._runs(supports):
            add_cells(
                given,
                self._products.pairs,
                supports.starts[run],
                supports.sizes[run],
                supports.members,
                supports.counted(run, self.rows.weights),
                self._padded,
                sums,
                found[run[0] : run[-1] + 1],
            )
        return float(found.sum())

    def shortlists(self, supports: Supports, size: int) -> AnyArray:
        from .search_kernels import shortlist

        if size >= len(self.matrix):
            return super().shortlists(supports, size)
        together, pairs = supports.together, self._products.pairs
        found = np.zeros((-(-supports.n_cells // together), size), dtype=np.int64)
        for run, given in self._runs(supports, together):
            lists = found[run[0] // together : run[-1] // together + 1]
            shortlist(given, pairs, together, supports.asked, self._padded, lists)
        return found

    def pools(
        self, supports: Supports, shortlists: AnyArray, grid: Sequence[int]
    ) -> tuple[AnyArray, AnyArray]:
        from .search_kernels import pool

        pools = np.zeros((supports.n_cells, grid[-1]), dtype=np.int64)
        counts = np.empty(supports.n_cells, dtype=np.int64)
        pairs, numbers, together = self._products.pairs, np.asarray(grid), supports.together
        for run, given in self._runs(supports, together):
            own, lists = slice(run[0], run[-1] + 1), shortlists[run[0] // together :]
            known = supports.starts[own], supports.sizes[own], supports.members
            asked, found = supports.asked % ASKED, (pools[own], counts[own])
            pool(given, pairs, lists, together, asked, *known, self._padded, numbers, FAR, BESIDE, *found)
        return pools, counts

    def ranked(
        self, supports: Supports, pools: AnyArray, counts: AnyArray, sizes: Sequence[int]
    ) -> tuple[AnyArray, Array, Array]:
        from .search_kernels import rank

        ranked, before = pools.copy(), np.full(len(pools), np.inf)
        losses, numbers = np.full((len(pools), len(sizes)), np.inf), np.asarray(sizes)
        for run, given in self._runs(supports):
            own, counted = slice(run[0], run[-1] + 1), supports.counted(run, self.rows.weights)
            known, found = (counts[own], supports.sizes[own]), (losses[own], before[own])
            rank(given, self._products.pairs, ranked[own], *known, counted, self._padded, numbers, *found)
        return ranked, losses, before

    def _runs(self, supports: Supports, together: int = 1) -> Iterator[tuple[AnyArray, Array]]:
        """Yield runs of cells, so many together, and the features of their rows that are written, (C, G, cell).

        If those of all rows are few, they are kept from pass to pass, and there is one run.
        """
        cells = np.arange(supports.n_cells)
        if self.rows.tables is not None:
            yield cells, self.kept("kept features", supports, lambda: self._given(supports, cells))
            return
        length = max(1, _RUN // (self._products.table.n_dense * supports.cell * together)) * together
        for start in range(0, len(cells), length):
            run = cells[start : start + length]
            yield run, self._given(supports, run)

    def _given(self, supports: Supports, cells: AnyArray) -> Array:
        """Return the features of the rows of some cells that are written, (C, G, cell)."""
        table = self._products.table
        some = rows_at(self.rows, supports.rows_of(cells))
        given = self.scratch.array((table, "features of cells"), (table.n_dense, some.n_rows))
        table.fill(some.columns, given, self.scratch)
        return np.ascontiguousarray(given.reshape(table.n_dense, len(cells), -1).transpose(1, 0, 2))


def _zeros(n_rows: int, n_columns: int) -> Array:
    """Return zeros that compiled loops read and write as vectors."""
    from .kernels import aligned

    return aligned(n_rows * n_columns).reshape(n_rows, n_columns)
