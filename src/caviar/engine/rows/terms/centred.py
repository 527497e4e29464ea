"""Centres: the columns of a component that is measured from a separate point.

Its features are written out a second time, from that point, and take the place of the common ones in both products:
slower, for such components only, and exact. :mod:`~caviar.engine.rows.recentring` decides when a component needs a
point of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Variable
from ...design.backend import Workspace
from ...design.features import Feature, FeatureTable
from ...design.keys import ColumnKey, FactorKey
from ...local.statistics import Coefficients, Sums
from .row_term import BlockWork, RowTerm


class Centres(RowTerm):
    """The centres of the categories of one local Categorical in one group of locations.

    Parameters
    ----------
    key
        Of the Categorical's factor.
    leaves
        The observed variables of the group.
    table
        The features of the Categorical's factor.
    offsets
        Of each category's point from the common one, shape (K, point shape...); None where all are at that.
    """

    def __init__(
        self, key: FactorKey, leaves: Sequence[Variable], table: FeatureTable, offsets: Array | None
    ) -> None:
        self._key = key
        self._leaves = tuple(leaves)
        self._table = table
        self._own: dict[int, tuple[FeatureTable, list[tuple[slice, slice]]]] = {}
        if offsets is not None:
            for k in np.flatnonzero(np.any(offsets != 0, axis=tuple(range(1, offsets.ndim)))):
                self._own[int(k)] = self._own_table(offsets[k])

    def of_categories(self, categories: AnyArray) -> Centres:
        other = copy(self)
        other._own = {place: self._own[int(k)] for place, k in enumerate(categories) if int(k) in self._own}
        return other

    @property
    def features(self) -> list[tuple[Feature, slice]]:
        """The common features of the leaves, each with its columns."""
        every = zip(self._table.features, self._table.slices, strict=True)
        return [
            (f, columns) for f, columns in every if f.source is not None and f.source.node in self._leaves
        ]

    def _own_table(self, offset: Array) -> tuple[FeatureTable, list[tuple[slice, slice]]]:
        """Return the features of the leaves from a category's own point, and runs of rows and of common columns."""
        features, columns = [], []
        for feature, common in self.features:
            source = feature.source
            assert source is not None
            assert source.reference is not None
            moved = replace(source, reference=source.reference + offset)
            features.append(replace(feature, source=moved))
            columns.append(common)
        return FeatureTable(features), _runs(columns)

    @property
    def is_used(self) -> bool:
        """Whether any category has a separate point."""
        return bool(self._own)

    def mask(self, matrix: Array, scratch: Workspace) -> Array:
        """Return the matrix W without what the own features of the categories provide."""
        masked = scratch.backend.copy(matrix)
        for k, (_, runs) in self._own.items():
            for _, columns in runs:
                masked[k, columns] = 0.0
        return masked

    @property
    def targets(self) -> tuple[FactorKey, ...]:
        return (self._key,)

    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        """Add to the natural parameters (K, B) what the own features of the categories provide."""
        matrix = coefficients.matrices[target]
        for k, (table, runs) in self._own.items():
            features = self._fill(table, work.rows.columns, work.rows.n_rows, work.scratch)
            for own, common in runs:
                natural[k, ...] += matrix[k, common] @ features[own, ...]

    def backward(self, work: BlockWork, sums: Sums) -> None:
        """Overwrite the sums (K, F) of the categories with own features by sums of these."""
        expected, total = work.weighted(self._key), sums.fused[self._key]
        for k, (table, runs) in self._own.items():
            features = self._fill(table, work.rows.columns, work.rows.n_rows, work.scratch)
            for own, common in runs:
                total[k, common] = expected[k, ...] @ features[own, ...].T

    def holds(self, leaf: Variable) -> bool:
        """Whether these are centres of a leaf's location."""
        return leaf in self._leaves

    def own_features(
        self, category: int, columns: Mapping[ColumnKey, AnyArray], n_rows: int, scratch: Workspace
    ) -> tuple[FeatureTable, Array] | None:
        """Return the features of the leaves from a category's own point, valid until the next; None if it has none."""
        if category not in self._own:
            return None
        table = self._own[category][0]
        return table, self._fill(table, columns, n_rows, scratch)

    def _fill(
        self, table: FeatureTable, columns: Mapping[ColumnKey, AnyArray], n_rows: int, scratch: Workspace
    ) -> Array:
        features = scratch.array((self, "own"), (table.n_rows, n_rows))
        scratch.backend.fill(table, columns, features, scratch)
        return features


def _runs(columns: Sequence[slice]) -> list[tuple[slice, slice]]:
    """Return slices one after the other (own), and where they are (common); adjoining ones as one."""
    runs: list[tuple[slice, slice]] = []
    stop = 0
    for common in columns:
        start, stop = stop, stop + common.stop - common.start
        if runs and runs[-1][1].stop == common.start:
            own, before = runs.pop()
            runs.append((slice(own.start, stop), slice(before.start, common.stop)))
        else:
            runs.append((slice(start, stop), common))
    return runs
