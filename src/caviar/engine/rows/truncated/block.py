"""A block of rows in cells at work: its sums, and better sets of components for its cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ...._typing import AnyArray, Array
from ...design.backend import Workspace
from ...design.keys import ColumnKey
from ...local.categorical import softmax_inplace
from ...local.statistics import Coefficients, Rows
from .cells import CellsAtWork, CellTerms
from .supports import ASKED, LISTED, Supports

RUN = 160_000
"""Numbers that a run of cells takes, which the cache of a core holds."""

FAR = 12.0
"""Nats by which a component is behind the best one of each row asked, from which on no row of the cell is for it."""

BESIDE = 4.0
"""Nats by which a component counts as further away that comes close to rows of the cells beside a cell, not its own."""

_NUMBERS = 1 << 17
"""Natural parameters of rows that are asked for all components that are held at a time."""

_MOST_LOSS = 1e6
"""Nats that a row whose components are all left out counts as."""


class Block:
    """A block of rows in cells, with the coefficients of a pass.

    Parameters
    ----------
    terms
        What the rows of cells add to the label's natural parameters.
    rows
        Of the block.
    coefficients
        Of the pass.
    matrix
        Those of the label, (K, F).
    scratch
        Of the thread.
    """

    cell: ClassVar[int] = 64
    """Rows of a cell."""

    def __init__(
        self, terms: CellTerms, rows: Rows, coefficients: Coefficients, matrix: Array, scratch: Workspace
    ) -> None:
        self.terms, self.rows, self.coefficients = terms, rows, coefficients
        self.matrix, self.scratch = matrix, scratch

    def sums(self, supports: Supports) -> tuple[Array, float]:
        """Return the sums over the block, (K, F), and its log-partition."""
        n_categories, n_features = self.matrix.shape
        by_member = self.scratch.array("sums by member", (len(supports.members), n_features))
        labels, done, log_partition = np.empty(len(supports.members), dtype=np.int64), 0, 0.0
        for cells, size in supports.by_size(np.arange(supports.n_cells), n_features * supports.cell, RUN):
            members = supports.members[supports.places(cells, size)]
            run = self.at(supports, cells, members)
            counted = supports.counted(cells, self.rows.weights)
            log_partition += float(softmax_inplace(run.natural) @ counted)
            run.natural *= counted
            after = done + members.size
            run.sums(run.natural, by_member[done:after])
            labels[done:after], done = members.ravel(), after
        ones, places = np.ones(done), np.arange(done + 1)
        chosen = sparse.csc_array((ones, labels, places), shape=(n_categories, done))
        return np.ascontiguousarray(chosen @ by_member), log_partition

    def shortlists(self, supports: Supports, size: int) -> AnyArray:
        """Return the components of which one may suit some cells that follow each other, (G, size).

        All are asked for one row of each 8, for others than in the last search.
        """
        n_categories, n_rows = len(self.matrix), supports.together * supports.cell
        n_lists = -(-supports.n_cells // supports.together)
        every = np.arange(n_categories)
        if size >= n_categories:
            return np.tile(every, (n_lists, 1))
        found = np.empty((n_lists, size), dtype=np.int64)
        asked = np.arange(supports.asked, n_rows, LISTED)
        length = max(1, _NUMBERS // (n_categories * len(asked)))
        for start in range(0, n_lists, length):
            lists = np.arange(start, min(start + length, n_lists))
            # the first of the rows of each list, then the second ones
            places = np.minimum(lists * n_rows + asked[:, None], len(supports.order) - 1)
            some = rows_at(self.rows, supports.order[places.ravel()])
            natural = self.terms.at(some, every[None], self.coefficients, self.scratch).natural
            # a component counts as much as it does for the row that it matters most for
            natural -= natural.max(axis=0)
            scores = natural.reshape(n_categories, len(asked), -1).max(axis=1).T
            found[lists] = np.argpartition(-scores, size - 1, axis=1)[:, :size]
        return found

    def pools(
        self, supports: Supports, shortlists: AnyArray, grid: Sequence[int]
    ) -> tuple[AnyArray, AnyArray]:
        """Return the components among which the set of each cell is chosen, (C, P), and their number, (C,).

        They are those of the cell, and the best of a list, asked for some rows of the cell.

        Parameters
        ----------
        shortlists
            Components of which one may suit some cells that follow each other, at least P, (G, S).
        grid
            Numbers that there may be, ascending, the last of them P: enough for all that may matter.
        """
        pools = np.zeros((supports.n_cells, grid[-1]), dtype=np.int64)
        counts = np.empty(supports.n_cells, dtype=np.int64)
        together, numbers = supports.together, np.asarray(grid)
        asked_rows = together * supports.cell // ASKED
        length = max(1, RUN // (asked_rows * (self.matrix.shape[1] + shortlists.shape[1])))
        for start in range(0, len(shortlists), length):
            lists = shortlists[start : start + length]
            cells = np.arange(start * together, (start + len(lists)) * together)
            n = min(len(cells), supports.n_cells - cells[0])
            every = supports.rows_of(np.minimum(cells, supports.n_cells - 1)).reshape(len(cells), -1)
            some = rows_at(self.rows, every[:, supports.asked % ASKED :: ASKED].ravel())
            natural = self.terms.at(some, lists, self.coefficients, self.scratch).natural
            natural -= natural.max(axis=0)
            scores = natural.reshape(len(natural), len(cells), -1).max(axis=2).T
            beside = scores.reshape(-1, min(ASKED, together), len(natural))
            np.maximum(beside, beside.max(axis=1, keepdims=True) - BESIDE, out=beside)
            scores = beside.reshape(scores.shape)[:n]
            own = slice(cells[0], cells[0] + n)
            known = supports.members[supports.starts[own][0] :][: supports.sizes[own].sum()]
            candidates = np.repeat(lists, together, axis=0)[:n]
            pools[own], counts[own] = _pooled(
                scores, candidates, known, supports.sizes[own], numbers, len(self.matrix)
            )
        return pools, counts

    def ranked(
        self, supports: Supports, pools: AnyArray, counts: AnyArray, sizes: Sequence[int]
    ) -> tuple[AnyArray, Array, Array]:
        """Return the components of the pool of each cell by their responsibility, and what sets of the first ones lose.

        Parameters
        ----------
        pools, counts
            Components, those that the cell has first, (C, P), and their number.
        sizes
            Sizes of sets, ascending, (S,).

        Returns
        -------
        tuple
            The components, (C, P), by how much the log-partition of each cell falls with each size, (C, S), infinite
            beyond its pool, and by how much with the set that it has, (C,).
        """
        ranked, before = np.zeros_like(pools), np.full(len(pools), np.inf)
        losses = np.full((len(pools), len(sizes)), np.inf)
        for size in np.unique(counts):
            every, own = np.flatnonzero(counts == size), [number for number in sizes if number <= size]
            length = max(1, RUN // (supports.cell * int(size)))
            for start in range(0, len(every), length):
                cells = every[start : start + length]
                shares = self.at(supports, cells, pools[cells, :size]).natural
                softmax_inplace(shares)
                shares = shares.reshape(size, len(cells), supports.cell)
                counted = supports.counted(cells, self.rows.weights).reshape(len(cells), -1)
                places, lost = _ranked(shares, counted, own, supports.sizes[cells])
                losses[cells, : len(own)], before[cells] = lost[:, :-1], lost[:, -1]
                ranked[cells, :size] = np.take_along_axis(pools[cells, :size], places, axis=1)
        return ranked, losses, before

    def at(self, supports: Supports, cells: AnyArray, members: AnyArray) -> CellsAtWork:
        """Return some cells at work with these members."""
        return self.terms.at(self._rows_of(supports, cells), members, self.coefficients, self.scratch)

    def _rows_of(self, supports: Supports, cells: AnyArray) -> Rows:
        """Return the rows of some cells, of few values from those that are kept in the order of the cells."""
        if self.rows.tables is None:
            return rows_at(self.rows, supports.rows_of(cells))
        kept = self.kept("kept columns", supports, lambda: _in_cells(self.rows.columns, supports))
        n_rows = len(cells) * supports.cell
        columns = {
            key: own.take(cells, axis=-2).reshape(*own.shape[:-2], n_rows).transpose(-1, *range(own.ndim - 2))
            for key, own in kept.items()
        }
        return Rows(columns, None, n_rows, self.rows.where)

    def kept(self, name: str, supports: Supports, make: Callable[[], Any]) -> Any:
        """Return what is made of the rows in the order of the cells, and kept from pass to pass."""
        where = self.rows.where
        first = where.start if isinstance(where, slice) else int(where[0])
        return self.scratch.kept((self.terms, name, first), (supports.order,), make, shared=True)


def _pooled(
    scores: Array, candidates: AnyArray, known: AnyArray, sizes: AnyArray, grid: AnyArray, n_categories: int
) -> tuple[AnyArray, AnyArray]:
    """Return the known components of each cell and then the best candidates, (C, P), and the number of them, (C,)."""
    n_cells, columns = len(sizes), np.arange(grid[-1])
    is_known = np.zeros((n_cells, n_categories), dtype=bool)
    is_known[np.repeat(np.arange(n_cells), sizes), known] = True
    scores[np.take_along_axis(is_known, candidates, axis=1)] = -np.inf
    wanted = sizes + (scores > -FAR).sum(axis=1)
    counts = grid[np.searchsorted(grid, np.minimum(wanted, grid[-1]))]
    best = np.take_along_axis(candidates, np.argsort(-scores, axis=1, kind="stable"), axis=1)
    pools = np.zeros((n_cells, grid[-1]), dtype=np.int64)
    pools[columns < sizes[:, None]] = known
    is_more = (columns >= sizes[:, None]) & (columns < counts[:, None])
    pools[is_more] = best[np.arange(best.shape[1]) < (counts - sizes)[:, None]]
    return pools, counts


def _ranked(shares: Array, counted: Array, sizes: Sequence[int], n_known: AnyArray) -> tuple[AnyArray, Array]:
    """Return the places in the pool of each cell by responsibility, (C, P), and the loss of sets of each size, (C, S).

    The last loss is that of the first components of the pool, infinite where there are none.

    Parameters
    ----------
    shares
        Responsibilities of the components of its pool, (P, C, cell).
    counted
        Weights of the rows, (C, cell).
    n_known
        Number of the first components, (C,).
    """
    by_cell = shares.transpose(1, 0, 2)
    ranked = np.argsort(-(by_cell @ counted[:, :, None])[:, :, 0], axis=1, kind="stable")
    rank = np.argsort(ranked, axis=1)[:, None, :]
    chosen = np.empty((len(ranked), len(sizes) + 1, len(shares)))
    np.less(rank, np.asarray(sizes)[:, None], out=chosen[:, :-1], casting="unsafe")
    np.less(np.arange(len(shares)), n_known[:, None], out=chosen[:, -1], casting="unsafe")
    left = chosen @ by_cell
    logs = np.log(left, out=np.full_like(left, -_MOST_LOSS), where=left > 0)
    losses = -(logs @ counted[:, :, None])[:, :, 0]
    losses[n_known == 0, -1] = np.inf
    return ranked, losses


def _in_cells(columns: Mapping[ColumnKey, AnyArray], supports: Supports) -> dict[ColumnKey, AnyArray]:
    """Return columns in the order of the cells: (shape..., C, cell), so that values of many rows lie side by side."""
    return {
        key: np.ascontiguousarray(np.moveaxis(own[supports.order], 0, -1)).reshape(
            *own.shape[1:], supports.n_cells, supports.cell
        )
        for key, own in columns.items()
    }


def rows_at(rows: Rows, places: AnyArray) -> Rows:
    """Return some rows of a block, without weights."""
    return Rows(
        {key: own.take(places, axis=0, mode="clip") for key, own in rows.columns.items()},
        None,
        len(places),
        rows.where,
    )
