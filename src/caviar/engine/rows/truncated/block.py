"""A block of rows in cells at work: its sums, and better sets of components for its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from ...._typing import AnyArray, Array
from ...design.backend import Workspace
from ...local.categorical import softmax_inplace
from ...local.statistics import Coefficients, Rows
from .cells import CellsAtWork, CellTerms
from .supports import Supports

RUN = 160_000
"""Numbers that a run of cells takes, which the cache of a core holds."""

_NEARLY_ONE = 1.0 - 1e-12

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

    def log_partitions(self, supports: Supports) -> Array:
        """Return the log-partition of each cell, (C,)."""
        found = np.empty(supports.n_cells)
        for cells, size in supports.by_size(
            np.arange(supports.n_cells), self.matrix.shape[1] * supports.cell, RUN
        ):
            run = self.at(supports, cells, supports.members[supports.places(cells, size)])
            weighted = softmax_inplace(run.natural) * supports.counted(cells, self.rows.weights)
            found[cells] = weighted.reshape(-1, supports.cell).sum(axis=1)
        return found

    def ranked(
        self, supports: Supports, pools: AnyArray, sizes: Sequence[int]
    ) -> tuple[AnyArray, Array, Array]:
        """Return the components of the pool of each cell by their responsibility, and what sets of the first ones lose.

        Parameters
        ----------
        pools
            Components, (C, P).
        sizes
            Sizes of sets, ascending, the last of them P, (S,).

        Returns
        -------
        tuple
            The components, (C, P), by how much the log-partition of each cell falls with each size, (C, S), and that
            of the whole pool, (C,).
        """
        ranked, losses, wholes = (
            np.empty_like(pools),
            np.empty((len(pools), len(sizes))),
            np.empty(len(pools)),
        )
        length = max(1, RUN // (supports.cell * pools.shape[1]))
        for start in range(0, len(pools), length):
            cells = np.arange(start, min(start + length, len(pools)))
            shares = self.at(supports, cells, pools[cells]).natural
            logs = softmax_inplace(shares)
            counted = supports.counted(cells, self.rows.weights).reshape(-1, supports.cell)
            wholes[cells] = np.einsum("cb,cb->c", logs.reshape(counted.shape), counted)
            places, losses[cells] = _ranked(shares.reshape(-1, *counted.shape), counted, sizes)
            ranked[cells] = np.take_along_axis(pools[cells], places, axis=1)
        return ranked, losses, wholes

    def renewed(self, supports: Supports) -> Supports:
        """Return the sets, those of some cells exchanged for better ones of components of theirs and of a neighbour."""
        members = supports.members.copy()
        for cells, size in supports.by_size(supports.asked, self.matrix.shape[1] * supports.cell, RUN):
            n_more = max(2, size // 2)
            found, is_new = supports.candidates(cells, size, n_more)
            if not is_new.any():
                continue
            self.exchange(supports, cells, members, found, is_new)
        return supports.replaced(members)

    def exchange(
        self, supports: Supports, cells: AnyArray, members: AnyArray, found: AnyArray, is_new: AnyArray
    ) -> None:
        """Exchange members of cells of one size for candidates where that is better for all of a cell's rows together.

        Parameters
        ----------
        members
            Of all cells, to be overwritten.
        found, is_new
            Candidates, and which of them count, (cells, X).
        """
        size = int(supports.sizes[cells[0]])
        places = supports.places(cells, size)
        every = np.concatenate([members[places], found], axis=1)
        natural = self.at(supports, cells, every).natural.reshape(every.shape[1], -1, supports.cell)
        natural[size:][~is_new.T] = -np.inf
        counted = supports.counted(cells, self.rows.weights).reshape(-1, supports.cell)
        kept = _better(natural, counted, size)
        members[places] = np.take_along_axis(every, kept.T, axis=1)

    def at(self, supports: Supports, cells: AnyArray, members: AnyArray) -> CellsAtWork:
        """Return some cells at work with these members."""
        some = rows_at(self.rows, supports.rows_of(cells))
        return self.terms.at(some, members, self.coefficients, self.scratch)


def _better(natural: Array, counted: Array, size: int) -> AnyArray:
    """Return which ``size`` of the candidates of each cell to keep, (size, C): the first ones unless others are better.

    Parameters
    ----------
    natural
        Of the candidates of the cells' rows, (M, C, cell); they are overwritten.
    counted
        Weights of the rows, (C, cell).
    """
    natural -= natural.max(axis=0)
    weights = np.exp(natural, out=natural)
    before = weights[:size].sum(axis=0)
    shares = np.minimum(weights / weights.sum(axis=0), _NEARLY_ONE)
    # by so much the log-normaliser of a row falls if a candidate alone is left out
    scores = -(np.log1p(-shares) * counted).sum(axis=2)
    kept = np.argsort(-scores, axis=0, kind="stable")[:size]
    after = np.take_along_axis(weights, kept[:, :, None], axis=0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(counted > 0, np.log(after / before) * counted, 0.0).sum(axis=1)
    return np.where(gain >= 0, kept, np.arange(size)[:, None])


def _ranked(shares: Array, counted: Array, sizes: Sequence[int]) -> tuple[AnyArray, Array]:
    """Return the places in the pool of each cell by responsibility, (C, P), and the loss of sets of each size, (C, S).

    Parameters
    ----------
    shares
        Responsibilities of the components of its pool, (P, C, cell).
    counted
        Weights of the rows, (C, cell).
    """
    most = sizes[-1]
    total = np.einsum("kcb,cb->ck", shares, counted)
    best = np.argpartition(-total, most - 1, axis=1)[:, :most]
    ranked = np.take_along_axis(best, np.argsort(-np.take_along_axis(total, best, axis=1), axis=1), axis=1)
    steps, left = np.split(ranked, sizes[:-1], axis=1), np.zeros_like(counted)
    losses = np.empty((len(ranked), len(sizes)))
    for number, step in enumerate(steps):
        left += np.take_along_axis(shares, step.T[:, :, None], axis=0).sum(axis=0)
        losses[:, number] = _loss(left, counted)
    return ranked, losses


def _loss(left: Array, counted: Array) -> Array:
    """Return by how much log-normalisers fall with sets that have so much of the responsibility of each row, (C,)."""
    logs = np.log(left, out=np.full_like(left, -_MOST_LOSS), where=left > 0)
    return -(logs * counted).sum(axis=1)


def rows_at(rows: Rows, places: AnyArray) -> Rows:
    """Return some rows of a block, without weights."""
    return Rows(
        {key: own.take(places, axis=0, mode="clip") for key, own in rows.columns.items()},
        None,
        len(places),
        rows.where,
    )
