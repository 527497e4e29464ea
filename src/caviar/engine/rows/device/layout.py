"""Layout: what of a block is moved to a device, and in which coordinates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from ...design.features import Feature, FeatureTable, Source, known_values
from ...design.keys import ColumnKey
from ...local.local_factor import LocalFactor
from ...local.statistics import Rows
from ..row_model import RowModel
from .array_kernels import ArrayLibrary
from .whitening import Whitening, whitening_of


@dataclass(frozen=True)
class BlockOnDevice:
    """A prepared block on a device, and the weights of its rows."""

    columns: Mapping[Hashable, Any]
    weights: Any
    n_rows: int
    n_bytes: int


@dataclass(frozen=True)
class Layout:
    """How blocks are prepared on the host: once for all passes.

    Values that features are computed from go feature-major, as they are given, and whitened if in float32. Rows of T
    that are not powers of a value (one-hot labels, log x!) are computed here.

    Attributes
    ----------
    tables
        Features of the local factors.
    whitening
        Column of a source -> how its values are turned; None where blocks are in float64.
    """

    tables: dict[LocalFactor, FeatureTable]
    whitening: Mapping[ColumnKey, Whitening] | None

    @property
    def single(self) -> bool:
        """Whether blocks are in float32."""
        return self.whitening is not None

    def serves(self, rows: RowModel) -> bool:
        """Whether blocks that were prepared so have what another problem's pass needs."""
        others = dict(rows.tables)
        if self.single:
            return all(table is self.tables.get(factor) for factor, table in others.items())
        return self.keys() == Layout(others, None).keys()

    def keys(self) -> set[Hashable]:
        """Return the names of the arrays of a block."""
        keys: set[Hashable] = set()
        for feature in (feature for table in self.tables.values() for feature in table.features):
            source = feature.source
            if source is not None:
                keys.add(source.key if feature.is_computed else feature.key)
                if feature.is_computed and source.has_missing and not self.single:
                    keys.add(source.mask_key)
        return keys

    def move(self, rows: Rows, library: ArrayLibrary) -> BlockOnDevice:
        """Return a block on a device."""
        prepared = self.prepare(rows)
        columns = {key: library.move(array, single=self.single) for key, array in prepared.items()}
        weights = None if rows.weights is None else library.move(rows.weights, single=self.single)
        n_numbers = sum(array.size for array in prepared.values()) + (0 if weights is None else rows.n_rows)
        return BlockOnDevice(columns, weights, rows.n_rows, (4 if self.single else 8) * n_numbers)

    def prepare(self, rows: Rows) -> dict[Hashable, Array]:
        """Return the arrays of a block on the host, the rows last."""
        prepared: dict[Hashable, Array] = {}
        for feature in (feature for table in self.tables.values() for feature in table.features):
            source = feature.source
            if source is None:
                continue
            if not feature.is_computed:
                if feature.key not in prepared:
                    prepared[feature.key] = feature.written(rows.columns, rows.n_rows)
            elif source.key not in prepared:
                prepared[source.key] = self._values(source, rows.columns)
                if source.has_missing and not self.single:
                    prepared[source.mask_key] = source.observed(rows.columns, len(source.shape) + 1)
        return prepared

    def _values(self, source: Source, columns: Mapping[ColumnKey, AnyArray]) -> AnyArray:
        if self.whitening is None:
            return np.moveaxis(columns[source.key], 0, -1)
        return self.whitening[source.key].values(known_values(source, columns))

    def coefficients(self, factor: LocalFactor, matrix: Array) -> Array:
        """Return W (E, F) for the prepared blocks, in float64."""
        return self._turned(factor, matrix, Whitening.coefficients)

    def sums(self, factor: LocalFactor, total: Array) -> Array:
        """Return sums (E, F) over prepared blocks as those over the rows."""
        return self._turned(factor, total, Whitening.sums)

    def _turned(
        self, factor: LocalFactor, matrix: Array, turn: Callable[[Whitening, Feature, Array], Array]
    ) -> Array:
        if self.whitening is None:
            return matrix
        turned, table = matrix.copy(), self.tables[factor]
        for feature, columns in zip(table.features, table.slices, strict=True):
            if feature.is_computed and feature.source is not None:
                turned[:, columns] = turn(self.whitening[feature.source.key], feature, matrix[:, columns])
        return turned


def layout_of(rows: RowModel, sample: Rows | None) -> Layout:
    """Return the layout of blocks for a pass: in float32, whitened by a ``sample``, or in float64 without."""
    tables = dict(rows.tables)
    if sample is None:
        return Layout(tables, None)
    return Layout(tables, whitening_of(list(tables.values()), sample.columns))
