"""Where the coefficients and sums of one local factor lie in its matrix W, and the sums in U T'."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np

from ...._typing import Array
from ....numerics.spread import spread
from ....numerics.sums.by_label import sums_by_label
from ...design.features import Feature, FeatureTable
from ...design.keys import FactorKey
from ...local.local_factor import LocalFactor, Part
from ...local.statistics import Arrays, Sums

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
        other = copy(self)
        other.table = table
        return other

    def of_statistics(self, n_statistics: int) -> MatrixLayout:
        """Return the layout of rows of the matrix that all belong to features of the data."""
        other = copy(self)
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
