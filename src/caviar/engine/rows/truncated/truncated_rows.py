"""Rows with truncated responsibilities: the label of a row is one of the components of the row's cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...._errors import ParameterError
from ...._extras import can_compile
from ...._typing import AnyArray, Array
from ...design.backend import Workspace
from ...design.features import FeatureTable
from ...local.categorical import CategoricalFactor
from ...local.statistics import Coefficients, LocalState, Rows, Sums
from ..e_step import IndependentRows
from ..terms.row_term import BlockWork
from .block import Block, rows_at
from .cells import AnyCells, DenseCells
from .compiled_block import CompiledBlock, Products
from .neighbours import order_of_neighbours
from .supports import Supports, allotted, sizes_for

_BLOCK_ROWS = 65_536
_ORDERED = 4096
"""Rows whose features are written at a time when rows are put in order."""


class TruncatedRows(IndependentRows):
    """What a compiled model does with a block of rows, each of which has few responsibilities that are not zero.

    The first pass over a block searches for the sets; later ones ask the members of each cell's set. Searches come ever
    more rarely.

    Attributes
    ----------
    n_responsibilities
        Mean number of components of a row.
    is_sparing
        Whether there are no searches soon after the first one: in starts, and after passes over some of the rows.
    """

    n_responsibilities: int
    is_sparing: bool
    _label: CategoricalFactor
    _table: FeatureTable
    _make_block: Callable[[Rows, Coefficients, Array, Workspace], Block]
    _cell: int
    _n_kept: int
    _searches: bool
    _renews: bool

    @classmethod
    def of(cls, rows: IndependentRows, n_responsibilities: int, *, is_sparing: bool = False) -> TruncatedRows:
        """Return the same model with another number of responsibilities per row.

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
        other.n_responsibilities, other.is_sparing = min(n_responsibilities, label.n_rows), is_sparing
        other._label, other._table = label, rows.tables[label]
        dense = not rows.has_centres and not rows.partial.get(label) and not other._table.tallied
        terms = DenseCells(label.key, other._table) if dense else AnyCells(label.key, rows.apart.products)
        other._make_block, other._cell = partial(Block, terms), Block.cell
        other._n_kept = _n_values(other._table) if dense else rows.n_kept
        other._searches, other._renews = True, False
        if isinstance(terms, DenseCells) and can_compile():
            products = Products.of(other._table)
            other._make_block, other._cell = partial(CompiledBlock, terms, products), CompiledBlock.cell
            other._n_kept = products.table.n_dense
        other.keeps_locals = True
        other._block_rows = _BLOCK_ROWS
        return other

    @property
    def within_sets(self) -> TruncatedRows:
        """The same rows, whose cells keep the sets that the last pass left."""
        return self._looked_at_otherwise(_searches=False)

    @property
    def with_new_sets(self) -> TruncatedRows:
        """The same rows, whose cells get the sets that a first pass would find: the objective may fall."""
        return self._looked_at_otherwise(_renews=True)

    def _looked_at_otherwise(self, **changes: Any) -> TruncatedRows:
        other = type(self).__new__(type(self))
        vars(other).update({**vars(self), **changes})
        return other

    @property
    def operations_a_row(self) -> float:
        return 4.0 * self.n_responsibilities * self._table.n_dense

    @property
    def n_kept(self) -> int:
        """Numbers of a row that a pass keeps: values in NumPy, and in compiled loops features that are no products."""
        return self._n_kept

    def why_not_on_a_device(self) -> str:
        return "a device makes products of all components: leave responsibilities= out there"

    def summarize(self, work: BlockWork, given: LocalState | None = None) -> tuple[Sums, LocalState]:
        """Return the sums over a block with the label of each row at its optimum, and the sets of its cells."""
        rows, scratch, before = work.rows, work.scratch, work.state
        matrix = work.coefficients.matrices[self._label.key]
        block = self._make_block(rows, work.coefficients, matrix, scratch)
        supports = Supports.from_state(before) if before else self._in_cells(rows, scratch)
        if self._renews:
            supports = self._found(supports.emptied(), block)
        elif supports.is_asked_anew and (self._searches or not before):
            supports = self._found(supports, block)
        else:
            supports = supports.older()
        total, log_partition = block.sums(supports)
        sums = Sums({self._label.key: total}, {}, {self._label.key: log_partition}, {})
        return sums, supports.as_state()

    def _in_cells(self, rows: Rows, scratch: Workspace) -> Supports:
        """Return cells without members."""
        order = self._order(rows, scratch)
        sizes = np.zeros(len(order) // self._cell, dtype=np.int64)
        members = np.zeros(0, dtype=np.int64)
        return Supports(order, rows.n_rows, self._cell, sizes, members, is_sparing=self.is_sparing)

    def _found(self, supports: Supports, block: Block) -> Supports:
        """Return better sets: the best of what a cell has and of a list that suits it, judged by all its rows."""
        sizes = sizes_for(self.n_responsibilities, self._label.n_rows)
        most = min(sizes[-1] * 3 // 2, self._label.n_rows)
        grid = sizes if most == sizes[-1] else [*sizes, most]
        pools, counts = block.pools(supports, block.shortlists(supports, 2 * sizes[-1]), grid)
        ranked, losses, before = block.ranked(supports, pools, counts, sizes)
        known = (before, supports.sizes) if len(supports.members) else ()
        chosen = allotted(losses, sizes, self.n_responsibilities, *known)
        weights = block.rows.weights
        total = float(block.rows.n_rows if weights is None else weights.sum())
        return supports.found(ranked, chosen, float(before.sum()) / total if known else 0.0)

    def _order(self, rows: Rows, scratch: Workspace) -> AnyArray:
        """Return the rows in cells, the last of which is filled up with its last row."""
        features = zip(self._table.features, self._table.slices, strict=True)
        every = [(own, columns) for own, columns in features if own.source is not None and not own.is_tallied]
        chosen = [columns for own, columns in every if not own.is_square] or [own for _, own in every]
        values = np.zeros((rows.n_rows, sum(own.stop - own.start for own in chosen) or 1))
        for start in range(0, rows.n_rows if chosen else 0, _ORDERED):
            places = np.arange(start, min(start + _ORDERED, rows.n_rows))
            table = scratch.array((self._table, "features to order"), (self._table.n_dense, len(places)))
            self._table.fill(rows_at(rows, places).columns, table, scratch)
            values[places] = np.concatenate([table[own] for own in chosen]).T
        order = order_of_neighbours(values, self._cell)
        return np.concatenate([order, np.full(-len(order) % self._cell, order[-1])])


def _n_values(table: FeatureTable) -> int:
    """Return how many values of a row a table of features is made of."""
    sources = {own.source.key: own.source for own in table.features if own.source is not None}
    return sum(math.prod(own.shape) for own in sources.values())


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
