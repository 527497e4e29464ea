"""The matrix product of a local factor with the features of the data: its matrix, and the terms that are columns of it.

A layout says where the coefficients and sums of one local factor lie in its matrix W, and the sums in U T'.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from ....numerics.records import copied
from ....numerics.spread import spread
from ....numerics.sums.by_label import sums_by_label
from ...design.features import Feature, FeatureTable
from ...design.keys import FactorKey
from ...design.look_ups import LookUp, look_up_of
from ...local.local_factor import LocalFactor, Part
from ...local.statistics import Arrays, Coefficients, Sums
from .row_term import BlockWork, RowTerm

_FEW = 16
"""Parts of a matrix that are few: which of them share no place with others, and need not be added, is looked up."""


class _Entry:
    """Where the coefficients and the sums of a part lie: statistics by features."""

    def __init__(self, part: Part, feature: Feature, columns: slice) -> None:
        # how its matrices are packed depends on no point that values are measured from
        self.feature = (
            feature if feature.source is None else feature.of_source(feature.source.without_reference)
        )
        self.rows = rows = part.rows
        self.key, self.shape, self.labels = part.key, part.shape, part.labels
        self.where, self.n_rows, self.columns = (rows, columns), rows.stop - rows.start, columns
        self.is_packed = feature.is_packed and part.labels is None
        self.is_alone = False


class MatrixLayout:
    """The matrix of one local factor, (E, F): E statistics by F features; E is 1 where no local variable enters.

    Parameters
    ----------
    factor
        The local factor; None for what no local variable enters.
    table
        Its features.
    parts
        The sums over rows, those of other factors among them.

    Attributes
    ----------
    table
        Its features.
    n_statistics
        E.
    n_product
        Leading statistics that meet features of the data. Those after them, as the second moments of the factors of a
        linear model, meet the number 1 alone.
    constant
        Place of the number 1 among the features, or None.
    """

    def __init__(self, factor: LocalFactor | None, table: FeatureTable, parts: Iterable[Part]) -> None:
        self.key: FactorKey = "" if factor is None else factor.key
        self.table = table
        self.n_statistics = 1 if factor is None else factor.n_rows
        self._entries: list[_Entry] = [
            _Entry(part, part.feature, table.columns[part.feature.key])
            for part in parts
            if part.feature is not None and part.factor is factor
        ]
        if len(self._entries) <= _FEW:
            starts = [entry.columns.start for entry in self._entries]
            for entry in self._entries:
                entry.is_alone = starts.count(entry.columns.start) == 1
        self.constant = next(
            (
                place.start
                for feature, place in zip(table.features, table.slices, strict=True)
                if feature.source is None
            ),
            None,
        )
        if factor is None or self.constant is None:
            self.n_product = self.n_statistics
        else:
            meeting = (own.rows.stop for own in self._entries if own.feature.source is not None)
            self.n_product = max(meeting, default=0)

    def counted(self, weight: float) -> Sums | None:
        """Return its sums over rows of this total weight where the number 1 is all there is of it; None elsewhere."""
        is_count = self.n_statistics == self.table.n_rows == 1 and self.constant == 0
        return Sums({self.key: np.full((1, 1), float(weight))}, {}, {}, {}) if is_count else None

    def of_table(self, table: FeatureTable) -> MatrixLayout:
        """Return the layout for features that differ in what they are measured from alone."""
        other = copied(self)
        other.table = table
        return other

    def of_statistics(self, n_statistics: int) -> MatrixLayout:
        """Return the layout of rows of the matrix that all belong to features of the data."""
        other = copied(self)
        other.n_statistics = other.n_product = n_statistics
        return other

    def packed(self, coefficients: Mapping[Hashable, Array]) -> Array:
        """Return the matrix of the coefficients by key of their sum, zero where there are none."""
        matrix = np.zeros((self.n_statistics, self.table.n_rows))
        for entry in self._entries:
            value = coefficients.get(entry.key)
            if value is None:
                continue
            full = value if value.shape == entry.shape else np.broadcast_to(value, entry.shape)
            if entry.labels is not None:
                full = full.reshape(-1, entry.shape[-1]).take(entry.labels, axis=1)
            else:
                full = full.reshape(entry.n_rows, -1)
            if entry.is_packed:
                full = entry.feature.pack(full)
            if entry.is_alone:
                matrix[entry.where] = full
            else:
                matrix[entry.where] += full
        return matrix

    def packed_each(self, coefficients: Mapping[Hashable, Array], n: int) -> Array:
        """Return the matrices (n, E, F) of n sets of coefficients, these with an axis of the sets before all others."""
        matrices = np.zeros((n, self.n_statistics, self.table.n_rows))
        for entry in self._entries:
            value = coefficients.get(entry.key)
            if value is not None:
                full = spread(value, (n, *entry.shape))
                if entry.labels is not None:
                    full = full.reshape(-1, entry.shape[-1]).take(entry.labels, axis=1)
                full = entry.feature.pack(full.reshape(n * entry.n_rows, -1)).reshape(n, entry.n_rows, -1)
                if entry.is_alone:
                    matrices[:, *entry.where] = full
                else:
                    matrices[:, *entry.where] += full
        return matrices

    def unpacked(self, sums: Array) -> Arrays:
        """Return the sums of such a matrix by key, each in its own shape."""
        found: Arrays = {}
        for entry in self._entries:
            own = sums[entry.where]
            if entry.labels is not None:
                own = sums_by_label(own, entry.labels, entry.shape[-1])
            elif entry.is_packed:
                own = entry.feature.unpack(own)
            found[entry.key] = own.reshape(entry.shape)
        return found

    def unpacked_each(self, sums: Array) -> Arrays:
        """Return the sums of several matrices, (n, E, F), by key, with an axis of the matrices before all others."""
        found: Arrays = {}
        for entry in self._entries:
            own = sums[:, *entry.where].reshape(len(sums) * entry.n_rows, -1)
            if entry.labels is not None:
                own = sums_by_label(own, entry.labels, entry.shape[-1])
            elif entry.is_packed:
                own = entry.feature.unpack(own)
            found[entry.key] = own.reshape(len(sums), *entry.shape)
        return found


def layouts_of(
    tables: Mapping[LocalFactor | None, FeatureTable], parts: Collection[Part], facts: dict[Hashable, Any]
) -> dict[FactorKey, MatrixLayout]:
    """Return the matrix of each local factor that meets features of the data, and of what no local variable enters.

    Parameters
    ----------
    tables, parts
        The features that each factor meets, and the parts of all terms.
    facts
        What is known of a plan, where layouts without values are kept.
    """
    if "layouts" not in facts:
        own = [(factor, table.without_references) for factor, table in tables.items()]
        facts["layouts"] = [MatrixLayout(*each, parts) for each in own]
    layouts = zip(facts["layouts"], tables.values(), strict=True)
    return {own.key: own.of_table(table) for own, table in layouts}


class MatrixTerm(RowTerm):
    """Some columns of the matrix of a local factor; each kind decides where it applies."""

    writes = False
    """Whether it comes first of the terms of a matrix: it writes, and the others add to what it leaves."""

    _layout: MatrixLayout

    @property
    def targets(self) -> tuple[FactorKey, ...]:
        return (self._layout.key,)

    @classmethod
    @abstractmethod
    def of_matrix(cls, layout: MatrixLayout, others: Sequence[RowTerm]) -> Sequence[MatrixTerm]:
        """Return the terms of this kind that a matrix has; none where this kind does not apply.

        Parameters
        ----------
        layout
            Of the matrix.
        others
            Terms that the model gives the factor besides: centres, and vectors missing in part. Some of them
            :meth:`~caviar.engine.rows.terms.row_term.RowTerm.mask` what they provide themselves.
        """


class DenseProduct(MatrixTerm):
    """All dense features of a local factor: one matrix product forward and one backward.

    Other terms add to what it leaves, and fill in the columns of the sums that are theirs.

    Parameters
    ----------
    layout
        The factor's matrix.
    others
        Terms of which some provide a part of the matrix, which is left out here.
    """

    writes = True

    def __init__(self, layout: MatrixLayout, others: Sequence[RowTerm] = ()) -> None:
        self._layout, self._table = layout, layout.table
        self._others = others

    @classmethod
    def of_matrix(cls, layout: MatrixLayout, others: Sequence[RowTerm]) -> Sequence[MatrixTerm]:
        return (cls(layout, others),)

    def of_categories(self, categories: AnyArray) -> DenseProduct:
        others = [other.of_categories(categories) for other in self._others]
        return DenseProduct(self._layout.of_statistics(len(categories)), others)

    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        matrix = coefficients.matrices[target]
        for other in self._others:
            matrix = other.mask(matrix, work.scratch)
        product, constant = slice(0, self._layout.n_product), self._layout.constant
        features = work.features(self._table)
        work.scratch.backend.project(matrix[product, : self._table.n_dense], features, natural[product, ...])
        if natural.shape[0] > product.stop:
            natural[product.stop :] = 0.0 if constant is None else matrix[product.stop :, constant, None]

    def backward(self, work: BlockWork, sums: Sums) -> None:
        key, backend = self._layout.key, work.scratch.backend
        expected, features = work.weighted(key), work.features(self._table)
        n_product, constant = self._layout.n_product, self._layout.constant
        if n_product == self._layout.n_statistics and not self._table.tallied:
            sums.fused[key] = backend.accumulate(expected, features, work.scratch, self)
            return
        total = work.scratch.array((self, "all sums"), (self._layout.n_statistics, self._table.n_rows))
        if n_product and self._table.n_dense:
            total[:n_product, : self._table.n_dense] = backend.accumulate(
                expected[:n_product], features, work.scratch, self
            )
        total[n_product:] = 0.0
        if constant is not None and n_product < self._layout.n_statistics:
            if key in work.rest:
                total[n_product:, constant] = work.rest[key]
            else:
                np.add.reduce(expected[n_product:], axis=1, out=total[n_product:, constant])
        sums.fused[key] = total


class LookUpProduct(MatrixTerm):
    """One wide feature of a local factor.

    Parameters
    ----------
    layout
        The factor's matrix.
    look_up
        The products with the feature.
    columns
        Its place among the features.
    """

    def __init__(self, layout: MatrixLayout, look_up: LookUp, columns: slice) -> None:
        self._layout = layout
        self._look_up = look_up
        self._columns = columns

    @classmethod
    def of_matrix(cls, layout: MatrixLayout, others: Sequence[RowTerm]) -> Sequence[MatrixTerm]:
        return [cls(layout, look_up_of(feature), columns) for feature, columns in layout.table.tallied]

    def of_categories(self, categories: AnyArray) -> LookUpProduct:
        return LookUpProduct(self._layout.of_statistics(len(categories)), self._look_up, self._columns)

    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        product = slice(0, self._layout.n_product)
        matrix = coefficients.matrices[target][product, self._columns]
        self._look_up.add_product(matrix, work.rows.columns, natural[product], work.scratch)

    def backward(self, work: BlockWork, sums: Sums) -> None:
        product, key = slice(0, self._layout.n_product), self._layout.key
        out = sums.fused[key][product, self._columns]
        self._look_up.sums(work.weighted(key)[product], work.rows.columns, out)
