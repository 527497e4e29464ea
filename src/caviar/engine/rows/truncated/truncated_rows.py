"""Rows with truncated responsibilities: the label of a row is one of the components of the row's cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ...._errors import ParameterError
from ...._typing import AnyArray, Array
from ...design.backend import Workspace
from ...design.features import FeatureTable
from ...local.categorical import CategoricalFactor, softmax_inplace
from ...local.statistics import Coefficients, LocalState, Rows, Sums
from ..e_step import IndependentRows
from .cells import AnyCells, CellsAtWork, CellTerms, DenseCells
from .neighbours import order_of_neighbours
from .supports import CELL, Supports, allotted, sizes_for

_BLOCK_CELLS = 1024
_RUN = 160_000
"""Numbers that a run of cells takes, which the cache of a core holds."""

_ASKED = 4
"""Of so many rows of a cell one is asked for all components."""

_ORDERED = 4096
"""Rows whose features are written at a time when rows are put in order."""

_MOST_LOSS = 1e6
"""Nats that a row whose components are all left out counts as."""

_NEARLY_ONE = 1.0 - 1e-12


class TruncatedRows(IndependentRows):
    """What a compiled model does with a block of rows, each of which has few responsibilities that are not zero.

    The first passes over a block ask all components for all rows, and find the sets; later ones ask the members of each
    cell's set, and of some cells a few of a neighbour. All are asked again ever more rarely.

    Attributes
    ----------
    n_responsibilities
        Mean number of components of a row.
    """

    n_responsibilities: int
    _label: CategoricalFactor
    _table: FeatureTable
    _cells: CellTerms
    _dense_rows: int

    @classmethod
    def of(cls, rows: IndependentRows, n_responsibilities: int) -> TruncatedRows:
        """Return the same model with so many responsibilities a row.

        Raises
        ------
        ParameterError
            If the rows have other hidden variables than one label each.
        """
        why = why_not_truncated(rows)
        if why:
            raise ParameterError(f"responsibilities= is not possible here: {why}")
        other = cls.__new__(cls)
        vars(other).update(vars(rows))
        (label,) = rows.factors
        assert isinstance(label, CategoricalFactor)
        other.n_responsibilities = min(n_responsibilities, label.n_rows)
        other._label, other._table = label, rows.tables[label]
        dense = not rows.has_centres and not rows.partial.get(label) and not other._table.tallied
        other._cells = DenseCells(label.key, other._table) if dense else AnyCells(label.key, rows.products)
        other.keeps_locals = True
        other._dense_rows, other._block_rows = rows.block_rows, _BLOCK_CELLS * CELL
        return other

    @property
    def operations_a_row(self) -> float:
        return 4.0 * self.n_responsibilities * self._table.n_dense

    @property
    def buffer_rows(self) -> int:
        return 3 * self.n_responsibilities + self._table.n_dense

    def why_not_on_a_device(self) -> str:
        return "a device makes products of all components: leave responsibilities= out there"

    def summarize(
        self,
        rows: Rows,
        coefficients: Coefficients,
        before: LocalState,
        scratch: Workspace,
        given: LocalState | None = None,
    ) -> tuple[Sums, LocalState]:
        """Return the sums over a block with the label of each row at its optimum, and the sets of its cells."""
        matrix = coefficients.matrices[self._label.key]
        block = _Block(self._cells, rows, coefficients, matrix, scratch)
        supports = Supports.from_state(before) if before else self._in_cells(rows, scratch)
        supports = self._found(supports, block) if supports.is_asked_anew else block.renewed(supports)
        total, log_partition = block.sums(supports)
        sums = Sums({self._label.key: total}, {}, {self._label.key: log_partition}, {})
        return sums, supports.as_state()

    def _in_cells(self, rows: Rows, scratch: Workspace) -> Supports:
        """Return cells without members."""
        order = self._order(rows, scratch)
        sizes = np.zeros(len(order) // CELL, dtype=np.int64)
        return Supports(order, rows.n_rows, sizes, np.zeros(0, dtype=np.int64))

    def _found(self, supports: Supports, block: _Block) -> Supports:
        """Return the sets of the components with the most responsibility, all of them asked.

        All are asked for some rows of each cell, and the best of these for all its rows. A cell keeps its set where
        that leaves out less.
        """
        sizes, n_cells = sizes_for(self.n_responsibilities, self._label.n_rows), supports.n_cells
        pools = self._pools(supports, block, sizes[-1])
        ranked, losses = np.empty_like(pools), np.empty((n_cells, len(sizes)))
        length = max(1, _RUN // (CELL * sizes[-1]))
        for start in range(0, n_cells, length):
            cells = np.arange(start, min(start + length, n_cells))
            shares = block.at(supports, cells, pools[cells]).natural
            softmax_inplace(shares)
            counted = supports.counted(cells, block.rows.weights).reshape(-1, CELL)
            places, losses[cells] = _ranked(shares.reshape(-1, *counted.shape), counted, sizes)
            ranked[cells] = np.take_along_axis(pools[cells], places, axis=1)
        found = supports.found(ranked, allotted(losses, sizes, self.n_responsibilities))
        if not supports.age:
            return found
        return found.where(block.log_partitions(found) >= block.log_partitions(supports), supports)

    def _pools(self, supports: Supports, block: _Block, size: int) -> AnyArray:
        """Return the components from which the set of each cell is chosen, (C, size)."""
        n_cells, n_categories = supports.n_cells, self._label.n_rows
        if size == n_categories:
            return np.tile(np.arange(n_categories), (n_cells, 1))
        pools = np.empty((n_cells, size), dtype=np.int64)
        length = max(1, self._dense_rows * _ASKED // CELL)
        for start in range(0, n_cells, length):
            cells = np.arange(start, min(start + length, n_cells))
            some = _rows_at(block.rows, supports.rows_of(cells)[::_ASKED])
            shares = self.apart.natural_of(self._label, some, block.coefficients, block.scratch)
            softmax_inplace(shares)
            # roots, so that what a few rows belong to in part counts beside what all belong to
            scores = np.sqrt(shares, out=shares).reshape(n_categories, len(cells), -1).sum(axis=2).T
            pools[cells] = np.argpartition(-scores, size - 1, axis=1)[:, :size]
        return pools

    def _order(self, rows: Rows, scratch: Workspace) -> AnyArray:
        """Return the rows in cells, the last of which is filled up with its last row."""
        features = zip(self._table.features, self._table.slices, strict=True)
        every = [(own, columns) for own, columns in features if own.source is not None and not own.is_tallied]
        chosen = [columns for own, columns in every if not own.is_square] or [own for _, own in every]
        values = np.zeros((rows.n_rows, sum(own.stop - own.start for own in chosen) or 1))
        for start in range(0, rows.n_rows if chosen else 0, _ORDERED):
            places = np.arange(start, min(start + _ORDERED, rows.n_rows))
            table = scratch.array((self._table, "features to order"), (self._table.n_dense, len(places)))
            self._table.fill(_rows_at(rows, places).columns, table, scratch)
            values[places] = np.concatenate([table[own] for own in chosen]).T
        order = order_of_neighbours(values, CELL)
        return np.concatenate([order, np.full(-len(order) % CELL, order[-1])])


@dataclass(frozen=True)
class _Block:
    """A block of rows in cells, with the coefficients of a pass."""

    terms: CellTerms
    rows: Rows
    coefficients: Coefficients
    matrix: Array
    scratch: Workspace

    def sums(self, supports: Supports) -> tuple[Array, float]:
        """Return the sums over the block, (K, F), and its log-partition."""
        n_categories, n_features = self.matrix.shape
        by_member = self.scratch.array("sums by member", (len(supports.members), n_features))
        labels, done, log_partition = np.empty(len(supports.members), dtype=np.int64), 0, 0.0
        for cells, size in supports.by_size(np.arange(supports.n_cells), n_features * CELL, _RUN):
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
        for cells, size in supports.by_size(np.arange(supports.n_cells), self.matrix.shape[1] * CELL, _RUN):
            run = self.at(supports, cells, supports.members[supports.places(cells, size)])
            weighted = softmax_inplace(run.natural) * supports.counted(cells, self.rows.weights)
            found[cells] = weighted.reshape(-1, CELL).sum(axis=1)
        return found

    def renewed(self, supports: Supports) -> Supports:
        """Return the sets, those of some cells exchanged for better ones of components of theirs and of a neighbour."""
        members = supports.members.copy()
        for cells, size in supports.by_size(supports.asked, self.matrix.shape[1] * CELL, _RUN):
            n_more = max(2, size // 2)
            found, is_new = supports.candidates(cells, size, n_more)
            if not is_new.any():
                continue
            places = supports.places(cells, size)
            every = np.concatenate([members[places], found], axis=1)
            natural = self.at(supports, cells, every).natural.reshape(every.shape[1], -1, CELL)
            natural[size:][~is_new.T] = -np.inf
            counted = supports.counted(cells, self.rows.weights).reshape(-1, CELL)
            kept = _better(natural, counted, size)
            members[places] = np.take_along_axis(every, kept.T, axis=1)
        return supports.replaced(members)

    def at(self, supports: Supports, cells: AnyArray, members: AnyArray) -> CellsAtWork:
        """Return some cells at work with these members."""
        some = _rows_at(self.rows, supports.rows_of(cells))
        return self.terms.at(some, members, self.coefficients, self.scratch)


def _better(natural: Array, counted: Array, size: int) -> AnyArray:
    """Return which ``size`` of the candidates of each cell to keep, (size, C): the first ones unless others are better.

    Parameters
    ----------
    natural
        Of the candidates of the cells' rows, (M, C, CELL); they are overwritten.
    counted
        Weights of the rows, (C, CELL).
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
        Responsibilities of the components of its pool, (P, C, CELL).
    counted
        Weights of the rows, (C, CELL).
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


def _rows_at(rows: Rows, places: AnyArray) -> Rows:
    """Return some rows of a block, without weights."""
    return Rows(
        {key: own.take(places, axis=0, mode="clip") for key, own in rows.columns.items()},
        None,
        len(places),
        rows.where,
    )


def why_not_truncated(rows: IndependentRows) -> str:
    """Return why responsibilities cannot be truncated; nothing if they can."""
    if len(rows.factors) != 1 or type(rows.factors[0]) is not CategoricalFactor:
        return "it is for models whose rows have one hidden label and no other hidden variable"
    (label,) = rows.factors
    table = rows.tables.get(label)
    if not rows.is_fused or table is None:
        return f"'{label.name}' meets the data otherwise than in a matrix product"
    if label.values is None:
        return f"a row has several labels '{label.name}'"
    if label.labelled or label.has_unseen:
        return f"labels of '{label.name}' are known in part, or have nothing observed below them"
    if rows.compiled.zero_terms:
        return f"a known probability in the density of '{rows.compiled.zero_terms[0].owner.name}' is zero"
    if any(feature.is_sparse for feature, _ in table.tallied):
        return "the data are a sparse matrix"
    return ""
