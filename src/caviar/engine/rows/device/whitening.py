"""Whitening: rows in coordinates of spread one without correlation, for blocks in float32.

What rounding does to a logit is proportional to the sum of the sizes of its terms, |W| |T|. That is least where
locations are measured from their mean in units of their spread and columns are not correlated: with y = A (x - ref)

.. math:: w' (x - ref) + (x - ref)' Q (x - ref) = (A^{-T} w)' y + y' A^{-T} Q A^{-1} y

so that coefficients are turned one way, and sums over rows of y and yy' back the other, both in float64 and without
loss. A is the inverse Cholesky factor of a covariance of the rows for vectors whose moments are all there, and else a
power of two for each entry, or for all where a feature sums over them, which keeps squares inside the range of float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...._typing import AnyArray, Array
from ...design.features import Feature, FeatureTable, known_values
from ...design.keys import ColumnKey

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
