"""Cells at work: natural parameters of the members of a run of cells, and their share of the sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...._typing import AnyArray, Array
from ...design.backend import Workspace
from ...design.features import FeatureTable
from ...design.keys import FactorKey
from ...local.statistics import Coefficients, Rows, Sums
from ..terms.row_term import BlockWork, RowTerm


class CellsAtWork(ABC):
    """A run of C cells with M members each.

    Attributes
    ----------
    natural
        Natural parameters of the members of the cells' rows, (M, B), to be overwritten.
    """

    natural: Array

    @abstractmethod
    def sums(self, expected: Array, out: Array) -> None:
        """Write the sums of each member of each cell, (C * M, F), for weighted expected statistics (M, B)."""


class CellTerms(ABC):
    """What the rows of cells add to the label's natural parameters, for the members of each cell alone."""

    @abstractmethod
    def at(
        self, rows: Rows, members: AnyArray, coefficients: Coefficients, scratch: Workspace
    ) -> CellsAtWork:
        """Return a run of cells at work, which share the scratch of the thread.

        Parameters
        ----------
        rows
            Of the cells, as many of each, one cell after the other.
        members
            Components of each, (C, M).
        """


class DenseCells(CellTerms):
    """The dense features of a label: a small matrix product for each cell, forward and backward."""

    def __init__(self, key: FactorKey, table: FeatureTable) -> None:
        self._key, self._table = key, table

    def at(
        self, rows: Rows, members: AnyArray, coefficients: Coefficients, scratch: Workspace
    ) -> CellsAtWork:
        return _DenseCellsAtWork(self._table, rows, members, coefficients.matrices[self._key], scratch)


class _DenseCellsAtWork(CellsAtWork):
    def __init__(
        self, table: FeatureTable, rows: Rows, members: AnyArray, matrix: Array, scratch: Workspace
    ) -> None:
        (n_cells, size), n_features = members.shape, table.n_dense
        features = scratch.array((table, "features of cells"), (n_features, rows.n_rows))
        table.fill(rows.columns, features, scratch)
        self._features = features.reshape(n_features, n_cells, -1).transpose(1, 0, 2)
        self._shape = n_cells, n_features, size
        chosen = scratch.array("rows of members", (n_cells, size, n_features))
        np.take(matrix, members, axis=0, out=chosen, mode="clip")
        self.natural = scratch.array("natural of cells", (size, rows.n_rows))
        np.matmul(chosen, self._features, out=self.natural.reshape(size, n_cells, -1).transpose(1, 0, 2))

    def sums(self, expected: Array, out: Array) -> None:
        n_cells, n_features, size = self._shape
        shares = expected.reshape(size, n_cells, -1).transpose(1, 0, 2)
        np.matmul(shares, self._features.transpose(0, 2, 1), out=out.reshape(n_cells, size, n_features))


class AnyCells(CellTerms):
    """Any terms that meet the data in the matrix of a label, one cell after the other."""

    def __init__(self, key: FactorKey, terms: Sequence[RowTerm]) -> None:
        self._key, self._terms = key, terms

    def at(
        self, rows: Rows, members: AnyArray, coefficients: Coefficients, scratch: Workspace
    ) -> CellsAtWork:
        return _AnyCellsAtWork(self._key, self._terms, rows, members, coefficients, scratch)


class _AnyCellsAtWork(CellsAtWork):
    def __init__(
        self,
        key: FactorKey,
        terms: Sequence[RowTerm],
        rows: Rows,
        members: AnyArray,
        coefficients: Coefficients,
        scratch: Workspace,
    ) -> None:
        (n_cells, size), self._key = members.shape, key
        length = self._length = rows.n_rows // n_cells
        self._own: list[tuple[list[RowTerm], BlockWork]] = []
        self.natural = np.zeros((size, rows.n_rows))
        for cell, own in enumerate(members):
            columns = slice(cell * length, (cell + 1) * length)
            values = {name: column[columns] for name, column in rows.columns.items()}
            some = Rows(values, None, length, rows.where, {})
            matrices = {**coefficients.matrices, key: coefficients.matrices[key][own]}
            # buffers are found by the terms, which are those of this cell alone
            work = BlockWork(some, replace(coefficients, matrices=matrices), Workspace(scratch.backend))
            own_terms = [term.of_categories(own) for term in terms]
            natural = np.zeros((size, length))
            for term in own_terms:
                term.forward(key, work, work.coefficients, natural)
            self.natural[:, columns] = natural
            self._own.append((own_terms, work))

    def sums(self, expected: Array, out: Array) -> None:
        size, key, length = len(expected), self._key, self._length
        for cell, (terms, work) in enumerate(self._own):
            sums = Sums({}, {}, {key: 0.0}, {})
            work.counted[key] = expected[:, cell * length : (cell + 1) * length].copy()
            work.weigh(in_place=True)
            for term in terms:
                term.backward(work, sums)
            out[cell * size : (cell + 1) * size] = sums.fused[key]
