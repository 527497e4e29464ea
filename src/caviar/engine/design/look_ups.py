"""Look-ups: wide statistics, almost all zero, whose two products are made without writing them out.

Labels: a word of a vocabulary, the document of a word. One-hot, such a statistic is a row of V numbers, V - 1 of them
zero. The product W @ T with its columns is a choice of columns of W, and U @ T' a tally of U by label; the cost of a
pass does not depend on V.

Sparse counts: a document uses few words of a vocabulary. With the rows of a block as a sparse matrix S (B, V), what
they tell a local factor is S @ W', and what the globals need of them is U @ S: the cost is that of the entries which
are not zero times the number of local statistics.

No array of rows x V exists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from ..._typing import AnyArray, Array
from ...numerics.sums.by_label import sums_by_label
from .features import Feature, Source
from .keys import ColumnKey
from .scratch import Scratch


class LookUp(ABC):
    """The two products with the rows of a wide feature, F of them."""

    def __init__(self, feature: Feature) -> None:
        assert feature.source is not None
        self.feature = feature
        self.source: Source = feature.source

    @abstractmethod
    def add_product(
        self, matrix: Array, columns: Mapping[ColumnKey, AnyArray], out: Array, scratch: Scratch
    ) -> None:
        """Add ``matrix @ T``, (E, F) by (F, B), to ``out``."""

    @abstractmethod
    def sums(self, expected: Array, columns: Mapping[ColumnKey, AnyArray], out: Array) -> None:
        """Write ``expected @ T'``, (E, B) by (B, F), to ``out``."""


class _Labels(LookUp):
    """One-hot labels, G groups of them in a row: of each point of the plates that a row's labels have."""

    def add_product(
        self, matrix: Array, columns: Mapping[ColumnKey, AnyArray], out: Array, scratch: Scratch
    ) -> None:
        labels, observed = self._labels(columns)
        chosen = scratch.array("chosen by label", out.shape)
        for group, own in enumerate(self._groups):
            # labels were checked against the number of categories when the data were bound
            np.take(matrix[:, own], labels[group], axis=1, out=chosen, mode="clip")
            if observed is not None:
                chosen *= observed[group]
            out += chosen

    def sums(self, expected: Array, columns: Mapping[ColumnKey, AnyArray], out: Array) -> None:
        labels, observed = self._labels(columns)
        n_labels = self.feature.n_labels or 0
        for group, own in enumerate(self._groups):
            values = expected if observed is None else expected * observed[group]
            sums_by_label(values, labels[group], n_labels, out[:, own])

    @property
    def _groups(self) -> list[slice]:
        """The columns of each group of labels."""
        size = self.feature.n_labels or 0
        return [slice(start, start + size) for start in range(0, self.feature.n_rows, size)]

    def _labels(self, columns: Mapping[ColumnKey, AnyArray]) -> tuple[AnyArray, AnyArray | None]:
        """Return a block's labels, shape (G, B), and which were observed, or None if all were."""
        rows = columns[self.source.key]
        labels = rows.reshape(len(rows), -1).T.astype(np.intp, copy=False)
        if not self.source.has_missing:
            return labels, None
        return labels, columns[self.source.mask_key].reshape(len(rows), -1).T


class _SparseCounts(LookUp):
    """Rows of which only the entries that are not zero are held."""

    def add_product(
        self, matrix: Array, columns: Mapping[ColumnKey, AnyArray], out: Array, scratch: Scratch
    ) -> None:
        out += (columns[self.source.key] @ matrix.T).T

    def sums(self, expected: Array, columns: Mapping[ColumnKey, AnyArray], out: Array) -> None:
        out[...] = (columns[self.source.key].T @ expected.T).T


def look_up_of(feature: Feature) -> LookUp:
    """Return the products with a wide feature."""
    return _SparseCounts(feature) if feature.is_sparse else _Labels(feature)
