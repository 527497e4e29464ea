"""Layout: what of a block is moved to a device, and in which coordinates.

Whitening: rows in coordinates of spread one without correlation, for blocks in float32.

What rounding does to a logit is proportional to the sum of the sizes of its terms, |W| |T|. That is least where
locations are measured from their mean in units of their spread and columns are not correlated: with y = A (x - ref)

.. math:: w' (x - ref) + (x - ref)' Q (x - ref) = (A^{-T} w)' y + y' A^{-T} Q A^{-1} y

so that coefficients are turned one way, and sums over rows of y and yy' back the other, both in float64 and without
loss. A is the inverse Cholesky factor of a covariance of the rows for vectors whose moments are all there, and else a
power of two for each entry, or for all where a feature sums over them, which keeps squares inside the range of float32.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
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


_RIDGE = 1e-6
"""Share of a variance that is added to it, so that collinear columns do not blow up rounding."""


@dataclass(frozen=True)
class Whitening:
    """How values of one source are turned.

    Attributes
    ----------
    root
        Lower triangular L with x - ref = L y, (D, D); None where entries are scaled only.
    scale
        Powers of two s with x - ref = s y, of the shape of a value or one for all, where there is no root.
    """

    root: Array | None
    scale: Array

    def values(self, values: Array) -> Array:
        """Return values (shape..., B), measured from their reference, in the new coordinates."""
        if self.root is not None:
            # one inverse for all blocks: solving would not be more exact for what is rounded to float32
            return np.linalg.inv(self.root) @ values
        return values / self.scale[..., None]

    def coefficients(self, feature: Feature, packed: Array) -> Array:
        """Return coefficients (E, rows) of a feature of the values as those of the turned values."""
        if self.root is None:
            return packed * self._sizes(feature)
        if feature.statistic == "x":
            return packed @ self.root
        # off-diagonal pairs are summed into one
        full = feature.unpack(packed)
        diagonal = np.arange(full.shape[-1])
        full[:, diagonal, diagonal] *= 2.0
        return feature.pack((0.5 * (self.root.T @ full @ self.root)).reshape(len(full), -1))

    def sums(self, feature: Feature, packed: Array) -> Array:
        """Return sums (E, rows) of a feature of the turned values as those of the values."""
        if self.root is None:
            return packed * self._sizes(feature)
        if feature.statistic == "x":
            return packed @ self.root.T
        i, j = feature.pairs
        return (self.root @ feature.unpack(packed) @ self.root.T)[:, i, j]

    def _sizes(self, feature: Feature) -> Array:
        """Return the size of each row of T in units of the turned one."""
        power = 1 if feature.statistic == "x" else 2
        if self.scale.size == 1:
            return np.full(feature.n_rows, float(self.scale.ravel()[0]) ** power)
        return self.scale.ravel() ** power


def whitening_of(
    tables: Sequence[FeatureTable], columns: Mapping[ColumnKey, AnyArray]
) -> dict[ColumnKey, Whitening]:
    """Return how the values of each source are turned, by its column, from some rows of it."""
    features: dict[ColumnKey, list[Feature]] = {}
    for feature in (feature for table in tables for feature in table.features):
        if feature.is_computed and feature.source is not None:
            features.setdefault(feature.source.key, []).append(feature)
    return {name: _whitening(own, known_values(own[0].source, columns)) for name, own in features.items()}


def _whitening(features: Sequence[Feature], values: Array) -> Whitening:
    shape = values.shape[:-1]
    is_vector = len(shape) == 1 and any(f.is_packed for f in features)
    if is_vector and all(f.is_packed or (f.statistic == "x" and not f.summed) for f in features):
        return Whitening(_root(values), np.ones(1))
    spread = _spread(values)
    if any(f.summed or f.is_outer for f in features):
        spread = np.full((1,) * len(shape), np.max(spread, initial=0.0))
    return Whitening(None, np.exp2(np.round(np.log2(np.where(spread > 0, spread, 1.0)))))


def _root(values: Array) -> Array:
    """Return the Cholesky factor of the second moments of values (D, B) about their reference."""
    spread = _spread(values)
    spread = np.where(spread > 0, spread, 1.0)
    scaled = values / spread[:, None]
    correlation = scaled @ scaled.T / values.shape[1] + _RIDGE * np.eye(len(values))
    return spread[:, None] * np.linalg.cholesky(correlation)


def _spread(values: Array) -> Array:
    """Return the root of the mean square of values (shape..., B), without overflow."""
    unit = float(np.max(np.abs(values), initial=0.0)) or 1.0
    return np.sqrt(np.mean(np.square(values / unit), axis=-1)) * unit
