"""The subsample that a start is made from.

It depends on the weighted empirical distribution only, not on the order of the rows nor on whether a row of
weight 2 stands there once or twice: rows are told apart by a hash of their values, the subsample is the
rows with the smallest hashes, equal rows are merged, and sorted by value. So other units of the columns give the same
start, as long as all rows are in the sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from .._typing import AnyArray, Array
from .gaps import entries_name, order_of_patterns
from .missing import is_mask_name
from .work import RowSource

__all__ = ["Sample", "sample_of"]

_SAMPLE_ROWS = 10_000
_HASH_ROWS = 8_192
_SORT_KEYS = 4
"""Columns by which the sample is sorted; rows that agree in all of them stay in the order of their hashes."""


@dataclass(frozen=True)
class Sample:
    """Distinct rows in an order that follows from their values; a source of rows itself.

    Attributes
    ----------
    columns
        Name -> rows.
    row_weights
        Total weight of each distinct row, scaled so that they sum to the weight of all rows.
    is_part
        Whether there are other rows than these.
    rows_together
        Rows that are read at the cost of one.
    """

    columns: Mapping[str, AnyArray]
    row_weights: Array
    is_part: bool = False
    rows_together: int = 1

    @property
    def n_rows(self) -> int:
        """Distinct rows."""
        return len(self.row_weights)

    @property
    def total_weight(self) -> float:
        """Weight of all rows, sampled or not."""
        return float(self.row_weights.sum())

    def read(self, start: int, stop: int) -> dict[str, AnyArray]:
        """Return the named columns from row ``start`` to ``stop``."""
        return {name: rows[start:stop] for name, rows in self.columns.items()}

    def weights(self, start: int, stop: int) -> Array:
        """Return the weights of these rows."""
        return self.row_weights[start:stop]

    def places(self, start: int, stop: int) -> slice:
        """Return the places of these rows in the sample."""
        return slice(start, stop)


def sample_of(source: RowSource, largest: int = _SAMPLE_ROWS) -> Sample:
    """Return up to ``largest`` distinct rows: those with the smallest hashes. One pass, O(``largest``) memory."""
    hashes = np.empty(0, dtype=np.uint64)
    places = np.empty(0, dtype=np.int64)
    weights: Array = np.empty(0)
    is_part = False
    for start in range(0, source.n_rows, _HASH_ROWS):
        stop = min(start + _HASH_ROWS, source.n_rows)
        own = source.weights(start, stop)
        block_weights = np.ones(stop - start) if own is None else own
        block = _hash_rows(source.read(start, stop))
        # rows beyond the present largest hash can never be among the smallest
        small = block <= hashes[-1] if len(hashes) == largest else np.ones(len(block), dtype=bool)
        kept = (block_weights > 0) & small
        is_part = is_part or bool(np.any((block_weights > 0) & ~small))
        hashes = np.concatenate([hashes, block[kept]])
        places = np.concatenate([places, np.arange(start, stop)[kept]])
        weights = np.concatenate([weights, block_weights[kept]])
        hashes, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        merged = np.zeros(len(hashes))
        np.add.at(merged, group, weights)
        is_part = is_part or len(hashes) > largest
        weights = merged[:largest]
        hashes, places = hashes[:largest], places[first][:largest]
    columns = _gather(source, places)
    order = _order_of_values(columns)
    columns, weights = {name: rows[order] for name, rows in columns.items()}, weights[order]
    scale = source.total_weight / float(weights.sum())
    return Sample(columns, weights if scale == 1.0 else weights * scale, is_part)


def _order_of_values(columns: Mapping[str, AnyArray]) -> AnyArray:
    """Return the lexicographic order of the rows, which other units of the columns do not change."""
    keys = [key for name in _values_first(columns) for key in _first_columns(columns[name])]
    order = np.lexsort(keys[_SORT_KEYS - 1 :: -1])
    partial = [columns[entries_name(name)][order] for name in columns if entries_name(name) in columns]
    return order[order_of_patterns(partial)] if partial else order


def _first_columns(rows: Any) -> AnyArray:
    first = rows[:, :_SORT_KEYS].toarray() if issparse(rows) else rows.reshape(len(rows), -1)
    return first.T[:_SORT_KEYS]


def _gather(source: RowSource, places: AnyArray) -> dict[str, AnyArray]:
    """Return the rows at ``places``, read one by one: a subsample is small."""
    order = np.argsort(places, kind="stable")
    found: dict[str, list[AnyArray]] = {}
    for start in range(0, source.n_rows, _HASH_ROWS):
        stop = min(start + _HASH_ROWS, source.n_rows)
        inside = order[np.searchsorted(places[order], start) : np.searchsorted(places[order], stop)]
        if len(inside):
            for name, rows in source.read(start, stop).items():
                found.setdefault(name, []).append(rows[places[inside] - start])
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return {name: _stacked(rows)[back] for name, rows in found.items()}


def _stacked(parts: list[AnyArray]) -> AnyArray:
    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)


def _hash_rows(columns: Mapping[str, AnyArray]) -> AnyArray:
    """Return a 64-bit hash of each row's values; equal values of any type hash alike, and -0 like 0.

    It is a sum over the entries that are not zero (of masks, those that were not observed), each mixed with its place:
    so rows hash alike whether they are sparse or not, and whether a column has a mask or not.
    """
    total: AnyArray = np.zeros(1, dtype=np.uint64)
    place = 0
    for name in _values_first(columns):
        rows: Any = columns[name]
        entries = columns.get(entries_name(name))
        if entries is not None:
            # what stands in the place of a missing entry is no value of the row
            rows = np.where(entries, rows, 0)
        if issparse(rows):
            # differences of a running sum modulo 2^64 are exact, and right for empty rows
            sums = np.cumsum(np.append(np.uint64(0), _hash_entries(place + rows.indices, rows.data)))
            total = total + (sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
            place += rows.shape[1]
            continue
        entries = rows.reshape(len(rows), -1).T
        for entry in ~entries if is_mask_name(name) else entries:
            total = total + _hash_entries(place, entry)
            place += 1
    return total


def _hash_entries(places: int | AnyArray, values: AnyArray) -> AnyArray:
    """Return a hash of each value at its place; 0 of the value 0."""
    # adding 0 makes -0 a 0
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)
    keys = _mix(np.atleast_1d(places).astype(np.uint64))
    return np.where(bits, _mix(keys ^ bits), np.uint64(0))


def _values_first(columns: Mapping[str, AnyArray]) -> list[str]:
    """Return the names in alphabetical order, those of masks last."""
    return sorted(columns, key=lambda name: (is_mask_name(name), name))


def _mix(x: AnyArray) -> AnyArray:
    # the finaliser of the SplitMix64 generator (Steele, Lea and Flood 2014): a bijection that spreads every bit
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
