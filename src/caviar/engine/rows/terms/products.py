"""The matrix products of a local factor with the features of the data: dense ones, and look-ups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...._typing import AnyArray, Array
from ...design.keys import FactorKey
from ...design.look_ups import LookUp, look_up_of
from ...local.statistics import Coefficients, Sums
from .matrix_layout import MatrixLayout
from .matrix_term import MatrixTerm
from .row_term import BlockWork, RowTerm


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

    @property
    def targets(self) -> tuple[FactorKey, ...]:
        return (self._layout.key,)

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

    @property
    def targets(self) -> tuple[FactorKey, ...]:
        return (self._layout.key,)

    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        product = slice(0, self._layout.n_product)
        matrix = coefficients.matrices[target][product, self._columns]
        self._look_up.add_product(matrix, work.rows.columns, natural[product], work.scratch)

    def backward(self, work: BlockWork, sums: Sums) -> None:
        product, key = slice(0, self._layout.n_product), self._layout.key
        out = sums.fused[key][product, self._columns]
        self._look_up.sums(work.weighted(key)[product], work.rows.columns, out)
