"""Where the coefficients and sums of one local factor lie in its matrix W, and the sums in U T'."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from typing import NamedTuple

import numpy as np

from ...._typing import Array
from ....numerics.spread import spread
from ....numerics.sums_by_label import sums_by_label
from ...design.features import Feature, FeatureTable
from ...design.keys import FactorKey
from ...local.local_factor import LocalFactor, Part
from ...local.statistics import Arrays


class _Entry(NamedTuple):
    """Where the coefficients and the sums of a part lie: statistics by features."""

    part: Part
    feature: Feature
    rows: slice
    columns: slice


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
            _Entry(part, part.feature, part.rows, table.columns[part.feature.key])
            for part in parts
            if part.feature is not None and part.factor is factor
        ]
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

    def of_statistics(self, n_statistics: int) -> MatrixLayout:
        """Return the layout of so many rows of the matrix, all of which meet features of the data."""
        other = copy(self)
        other.n_statistics = other.n_product = n_statistics
        return other

    def packed(self, coefficients: Mapping[Hashable, Array]) -> Array:
        """Return the matrix of the coefficients by key of their sum, zero where there are none."""
        matrix = np.zeros((self.n_statistics, self.table.n_rows))
        for part, feature, rows, columns in self._entries:
            value = coefficients.get(part.key)
            if value is not None:
                full = spread(value, part.shape)
                if part.labels is not None:
                    full = full.reshape(-1, part.shape[-1]).take(part.labels, axis=1)
                else:
                    full = full.reshape(rows.stop - rows.start, -1)
                matrix[rows, columns] += feature.pack(full) if feature.is_packed else full
        return matrix

    def packed_each(self, coefficients: Mapping[Hashable, Array], n: int) -> Array:
        """Return the matrices (n, E, F) of n sets of coefficients, these with an axis of the sets before all others."""
        matrices = np.zeros((n, self.n_statistics, self.table.n_rows))
        for part, feature, rows, columns in self._entries:
            value = coefficients.get(part.key)
            if value is not None:
                full = spread(value, (n, *part.shape))
                n_own = n * (rows.stop - rows.start)
                if part.labels is not None:
                    full = full.reshape(-1, part.shape[-1]).take(part.labels, axis=1)
                full = feature.pack(full.reshape(n_own, -1))
                matrices[:, rows, columns] += full.reshape(n, rows.stop - rows.start, -1)
        return matrices

    def unpacked(self, sums: Array) -> Arrays:
        """Return the sums of such a matrix by key, each in its own shape."""
        found: Arrays = {}
        for part, feature, rows, columns in self._entries:
            own = sums[rows, columns]
            if part.labels is not None:
                own = sums_by_label(own, part.labels, part.shape[-1])
            elif feature.is_packed:
                own = feature.unpack(own)
            found[part.key] = own.reshape(part.shape)
        return found

    def unpacked_each(self, sums: Array) -> Arrays:
        """Return the sums of several matrices, (n, E, F), by key, with an axis of the matrices before all others."""
        found: Arrays = {}
        for part, feature, rows, columns in self._entries:
            own = sums[:, rows, columns].reshape(len(sums) * (rows.stop - rows.start), -1)
            if part.labels is not None:
                own = sums_by_label(own, part.labels, part.shape[-1])
            elif feature.is_packed:
                own = feature.unpack(own)
            found[part.key] = own.reshape(len(sums), *part.shape)
        return found
