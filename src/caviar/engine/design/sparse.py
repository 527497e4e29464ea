"""Sparse counts: rows of which only the entries that are not zero are held, multiplied and summed as such.

A document uses few words of a vocabulary of V. With the rows of a block as a sparse matrix S (B, V), what they tell
a local factor is S @ W', and what the globals need of them is U @ S: the cost is that of the entries which are not
zero times the number of local statistics. No array of rows x V exists.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..._typing import AnyArray, Array
from ..design.keys import ColumnKey
from .features import Feature

__all__ = ["add_product", "sum_products"]


def add_product(feature: Feature, matrix: Array, block: Mapping[ColumnKey, AnyArray], out: Array) -> None:
    """Add ``matrix @ rows'`` to ``out``: (E, V) by B sparse rows, to (E, B)."""
    assert feature.source is not None
    rows = block[feature.source.key]
    out += (rows @ matrix.T).T


def sum_products(feature: Feature, expected: Array, block: Mapping[ColumnKey, AnyArray], out: Array) -> None:
    """Write ``expected @ rows`` to ``out``: (E, B) by B sparse rows, shape (E, V)."""
    assert feature.source is not None
    rows = block[feature.source.key]
    out[...] = (rows.T @ expected.T).T
