"""Tallied features: wide statistics, almost all zero, whose products are made without writing them out.

There are two kinds: one-hot labels (``labels.py``) and sparse counts (``sparse.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..._typing import AnyArray, Array
from ..design.keys import ColumnKey
from . import labels, sparse
from .features import Feature
from .scratch import Scratch

__all__ = ["add_tallied", "tally"]


def add_tallied(
    feature: Feature, matrix: Array, block: Mapping[ColumnKey, AnyArray], out: Array, scratch: Scratch
) -> None:
    """Add ``matrix @ T`` to ``out``: (E, F) by the F rows of a feature for each of B rows of data, to (E, B)."""
    if feature.is_sparse:
        sparse.add_product(feature, matrix, block, out)
    else:
        labels.add_chosen(feature, matrix, block, out, scratch)


def tally(feature: Feature, expected: Array, block: Mapping[ColumnKey, AnyArray], out: Array) -> None:
    """Write ``expected @ T'`` to ``out``: (E, B) by the F rows of a feature, shape (E, F)."""
    if feature.is_sparse:
        sparse.sum_products(feature, expected, block, out)
    else:
        labels.tally(feature, expected, block, out)
