"""Labels: one-hot statistics with many categories, which are looked up and tallied instead of multiplied out.

A word of a vocabulary, the document of a word: one-hot, such a statistic is a row of V numbers, V - 1 of
them zero. The product W @ T with its columns is a choice of columns of W, and U @ T' a tally of U by label. No
array of rows x V exists, and the cost of a pass does not depend on V.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..._typing import AnyArray, Array
from ..design.keys import ColumnKey
from .features import Feature
from .scratch import Scratch

__all__ = ["add_chosen", "tally"]


def add_chosen(
    feature: Feature, matrix: Array, block: Mapping[ColumnKey, AnyArray], out: Array, scratch: Scratch
) -> None:
    """Add ``matrix @ one_hot`` to ``out``: (E, G V) by G labels for each of B rows, to (E, B)."""
    labels, observed = _labels(feature, block)
    chosen = scratch.array("chosen by label", out.shape)
    for group, columns in enumerate(_columns(feature)):
        # labels were checked against the number of categories when the data were bound
        np.take(matrix[:, columns], labels[group], axis=1, out=chosen, mode="clip")
        if observed is not None:
            chosen *= observed[group]
        out += chosen


def tally(feature: Feature, expected: Array, block: Mapping[ColumnKey, AnyArray], out: Array) -> None:
    """Write ``expected @ one_hot'`` to ``out``: sums of the rows of (E, B) by label, shape (E, G V)."""
    labels, observed = _labels(feature, block)
    n_labels = feature.n_labels or 0
    for group, columns in enumerate(_columns(feature)):
        for statistic, values in enumerate(expected):
            weights = values if observed is None else values * observed[group]
            out[statistic, columns] = np.bincount(labels[group], weights, minlength=n_labels)


def _columns(feature: Feature) -> list[slice]:
    """Return the columns of each group of labels: of each point of the plates that a row's labels have."""
    size = feature.n_labels or 0
    return [slice(start, start + size) for start in range(0, feature.n_rows, size)]


def _labels(feature: Feature, block: Mapping[ColumnKey, AnyArray]) -> tuple[AnyArray, AnyArray | None]:
    """Return a block's labels, shape (G, B), and which were observed, or None if all were."""
    source = feature.source
    assert source is not None
    rows = block[source.key]
    labels = rows.reshape(len(rows), -1).T.astype(np.intp)
    if not source.has_missing:
        return labels, None
    return labels, block[source.mask_key].reshape(len(rows), -1).T
