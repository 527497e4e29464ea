"""The subsample that a start is made from.

It depends on the weighted empirical distribution only, not on the order of the rows nor on whether a row of
weight 2 is there once or twice: rows are told apart by a hash of their values, the subsample is the
rows with the smallest hashes, equal rows are merged, and sorted by value. So other units of the columns give the same
start, as long as all rows are in the sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from ..._typing import AnyArray, Array
from ...lazy.block_map import is_cut, map_runs
from ..binding.missing.entries import order_of_patterns
from ..design.keys import ColumnKey
from .tasks import RowSource

SAMPLE_ROWS = 10_000
"""Distinct rows at the most where no other number is asked for."""

_HASH_ROWS = 8_192
_WIDE, _HASH_ENTRIES = 32, 2**14
"""Entries of a row beyond which rows are hashed as they lie; entries that are hashed at once, in the cache."""
_SORT_KEYS = 4
"""Columns by which the sample is sorted; rows that agree in all of them stay in the order of their hashes."""


@dataclass(frozen=True)
class Sample:
    """Distinct rows in an order that follows from their values, or rows as they come; a source of rows itself.

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
    is_in_order
        Whether successive rows follow each other in the data too, as the steps of a sequence do.
    """

    columns: Mapping[ColumnKey, AnyArray]
    row_weights: Array
    is_part: bool = False
    rows_together: int = 1
    is_in_order: bool = False

    @property
    def has_single(self) -> bool:
        """False: a sample is a copy of few rows, and starts read it many times."""
        return False

    @property
    def n_rows(self) -> int:
        """Distinct rows."""
        return len(self.row_weights)

    @property
    def total_weight(self) -> float:
        """Weight of all rows, sampled or not."""
        return float(self.row_weights.sum())

    def read(self, start: int, stop: int) -> dict[ColumnKey, AnyArray]:
        """Return the named columns from row ``start`` to ``stop``."""
        return {name: rows[start:stop] for name, rows in self.columns.items()}

    def weights(self, start: int, stop: int) -> Array:
        """Return the weights of these rows."""
        return self.row_weights[start:stop]

    def places(self, start: int, stop: int) -> slice:
        """Return the places of these rows in the sample."""
        return slice(start, stop)


def sample_of(source: RowSource, largest: int = SAMPLE_ROWS) -> Sample:
    """Return up to ``largest`` distinct rows: those with the smallest hashes. One pass, O(``largest``) memory."""
    few = _few_distinct(source) if source.n_rows <= min(largest, _HASH_ROWS) and not is_cut(source) else None
    if few is not None:
        return few
    found = _Distinct(largest)
    smallest = _Smallest(largest, is_cut(source))
    for first, (hashes, places, weights, is_part) in map_runs(smallest, source, source.n_rows, _HASH_ROWS):
        found.add(hashes, places + first, weights)
        found.is_part |= is_part
    columns = gather(source, found.places)
    order = _order_of_values(columns)
    columns, weights = {name: rows[order] for name, rows in columns.items()}, found.weights[order]
    scale = source.total_weight / float(weights.sum())
    return Sample(columns, weights if scale == 1.0 else weights * scale, found.is_part)


def _few_distinct(source: RowSource) -> Sample | None:
    """Return the distinct ones of rows of which all fit into a sample, in the order of their values, without hashes.

    None where a column is more than numbers that were all observed, where there are more of them than an order
    compares, or where weights are not whole numbers.
    """
    columns, weights = source.read(0, source.n_rows), source.weights(0, source.n_rows)
    if any(key.kind != "value" or type(rows) is not np.ndarray for key, rows in columns.items()):
        return None
    entries = [rows.reshape(len(rows), -1).T for _, rows in sorted(columns.items())]
    keys = [first for several in entries for first in several]
    if not 0 < len(keys) <= _SORT_KEYS:
        return None
    weights = np.ones(source.n_rows) if weights is None else weights
    if (weights != np.rint(weights)).any():
        # sums of these depend on their order
        return None
    order = np.lexsort(keys[::-1])
    order = order if weights.all() else order[weights[order] > 0]
    differs = np.zeros(len(order), dtype=bool)
    differs[:1] = True
    for own in keys:
        values = own[order]
        differs[1:] |= values[1:] != values[:-1]
    merged = np.bincount(np.cumsum(differs) - 1, weights[order]).astype(np.float64)
    # equal rows keep their order, so that the first of them stood first
    places = order[differs]
    scale = source.total_weight / float(merged.sum())
    return Sample(
        {key: rows[places] for key, rows in columns.items()},
        merged if scale == 1.0 else merged * scale,
        False,
    )


def rows_from(source: RowSource, bounds: Sequence[tuple[int, int]]) -> Sample:
    """Return the rows of some blocks, in ascending order, as they come, with weights that sum to those of all rows."""
    columns, weights = read_blocks(source, bounds)
    total = float(weights.sum())
    return Sample(
        columns, weights * (source.total_weight / total if total else 1.0), is_part=True, is_in_order=True
    )


def read_blocks(
    source: RowSource, bounds: Sequence[tuple[int, int]]
) -> tuple[dict[ColumnKey, AnyArray], Array]:
    """Return the columns and the weights of some blocks of rows, in ascending order, one block after the other."""
    blocks: list[tuple[Mapping[ColumnKey, AnyArray], Array]] = []
    for _, found in map_runs(_read_blocks, _Blocks(source, tuple(bounds)), source.n_rows, _HASH_ROWS):
        blocks.extend(found)
    columns = {name: _stacked([block[name] for block, _ in blocks]) for name in blocks[0][0]}
    return columns, np.concatenate([weights for _, weights in blocks])


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Some blocks of rows of a source, in ascending order."""

    source: Any
    bounds: tuple[tuple[int, int], ...]

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays of the source."""
        return getattr(self.source, "arrays", ())

    def between(self, start: int, stop: int) -> _Blocks:
        """Return the rows of the blocks that are in a run, as a separate source that needs no other rows."""
        own = [(max(first, start), min(last, stop)) for first, last in self.bounds]
        own = [(first, last) for first, last in own if first < last]
        begin, end = (own[0][0], own[-1][1]) if own else (start, start)
        return _Blocks(
            self.source.between(begin, end), tuple((first - begin, last - begin) for first, last in own)
        )


def _read_blocks(blocks: _Blocks, _: int) -> list[tuple[Mapping[ColumnKey, AnyArray], Array]]:
    """Return the columns and the weights of each block."""
    found = []
    for start, stop in blocks.bounds:
        own = blocks.source.weights(start, stop)
        weights = np.ones(stop - start) if own is None else own
        found.append((blocks.source.read(start, stop), weights))
    return found


class _Distinct:
    """The rows with the smallest hashes of those that were added, equal ones merged.

    Attributes
    ----------
    hashes, places, weights
        Of each row: its hash, in ascending order, the place where it stood first, and its total weight.
    is_part
        Whether there were other rows than these.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self.hashes = np.empty(0, dtype=np.uint64)
        self.places = np.empty(0, dtype=np.int64)
        self.weights: Array = np.empty(0)
        self.is_part = False

    def among(self, hashes: AnyArray) -> AnyArray:
        """Return which rows may be among the smallest: none that is beyond the present largest hash."""
        if len(self.hashes) == self._largest:
            return hashes <= self.hashes[-1]
        return np.ones(len(hashes), dtype=bool)

    def add(self, hashes: AnyArray, places: AnyArray, weights: Array) -> None:
        """Add rows with weight, later ones than before; their weights are summed up in this order."""
        small = self.among(hashes)
        self.is_part = self.is_part or not small.all()
        hashes = np.concatenate([self.hashes, hashes[small]])
        places = np.concatenate([self.places, places[small]])
        weights = np.concatenate([self.weights, weights[small]])
        hashes, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        merged = np.zeros(len(hashes))
        np.add.at(merged, group, weights)
        self.is_part = self.is_part or len(hashes) > self._largest
        self.weights = merged[: self._largest]
        self.hashes, self.places = hashes[: self._largest], places[first][: self._largest]


@dataclass(frozen=True, eq=False)
class _Smallest:
    """Of a run of rows those that may be in the sample: (hashes, places, weights, whether there are others).

    Equal rows are merged, but those of one run of several are not where that would round: sums of weights are made in
    the order of all rows.
    """

    largest: int
    is_one_of_several: bool

    def __call__(self, source: RowSource, n_rows: int) -> tuple[AnyArray, AnyArray, Array, bool]:
        found, rounds = _Distinct(self.largest), False
        apart: list[tuple[AnyArray, AnyArray, Array]] = []
        for start in range(0, n_rows, _HASH_ROWS):
            stop = min(start + _HASH_ROWS, n_rows)
            own = source.weights(start, stop)
            weights = np.ones(stop - start) if own is None else own
            counts = weights > 0
            hashes = hash_rows(source.read(start, stop))[counts]
            places, weights = np.arange(start, stop)[counts], weights[counts]
            if self.is_one_of_several and own is not None:
                rounds = rounds or bool(np.any(weights != np.rint(weights)))
                small = found.among(hashes)
                apart.append((hashes[small], places[small], weights[small]))
            found.add(hashes, places, weights)
        if not rounds:
            return found.hashes, found.places, found.weights, found.is_part
        hashes, places, weights = (np.concatenate(several) for several in zip(*apart, strict=True))
        small = found.among(hashes)
        return hashes[small], places[small], weights[small], found.is_part


def _order_of_values(columns: Mapping[ColumnKey, AnyArray]) -> AnyArray:
    """Return the lexicographic order of the rows, which other units of the columns do not change."""
    keys = [
        first for key in _values_first(columns) for first in _first_columns(_observed(columns, key, np.inf))
    ]
    order = np.lexsort(keys[_SORT_KEYS - 1 :: -1])
    partial = [rows[order] for key, rows in columns.items() if key.kind == "entries"]
    return order[order_of_patterns(partial)] if partial else order


def _first_columns(rows: Any) -> AnyArray:
    first = rows[:, :_SORT_KEYS].toarray() if issparse(rows) else rows.reshape(len(rows), -1)
    return first.T[:_SORT_KEYS]


def gather(source: RowSource, places: AnyArray) -> dict[ColumnKey, AnyArray]:
    """Return the rows at ``places``, read one by one: a subsample is small."""
    order = np.argsort(places, kind="stable")
    found: dict[ColumnKey, list[AnyArray]] = {}
    for _, parts in map_runs(_read, _Chosen(source, places[order]), source.n_rows, _HASH_ROWS):
        for name, several in parts.items():
            found.setdefault(name, []).extend(several)
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return {name: _stacked(rows)[back] for name, rows in found.items()}


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Some rows of a source, by their places in ascending order."""

    source: Any
    places: AnyArray

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays of the source."""
        return getattr(self.source, "arrays", ())

    def between(self, start: int, stop: int) -> _Chosen:
        """Return a source of the chosen rows of a run."""
        first, last = np.searchsorted(self.places, (start, stop))
        return _Chosen(self.source.between(start, stop), self.places[first:last] - start)


def _read(chosen: _Chosen, n_rows: int) -> dict[ColumnKey, list[AnyArray]]:
    """Return the chosen rows of every column, in parts."""
    found: dict[ColumnKey, list[AnyArray]] = {}
    for start in range(0, n_rows, _HASH_ROWS):
        stop = min(start + _HASH_ROWS, n_rows)
        first, last = np.searchsorted(chosen.places, (start, stop))
        if first < last:
            for name, rows in chosen.source.read(start, stop).items():
                found.setdefault(name, []).append(rows[chosen.places[first:last] - start])
    return found


def _stacked(parts: list[AnyArray]) -> AnyArray:
    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)


def hash_rows(columns: Mapping[ColumnKey, AnyArray]) -> AnyArray:
    """Return a 64-bit hash of each row's values; equal values of any type hash alike, and -0 like 0.

    It is a sum over the entries that are not zero (of masks, those that were not observed), each mixed with its place:
    so rows hash alike whether they are sparse or not, and whether a column has a mask or not.
    """
    total: AnyArray = np.zeros(1, dtype=np.uint64)
    dense: list[tuple[int, AnyArray]] = []
    place = 0
    for key in _values_first(columns):
        rows = _observed(columns, key, 0)
        if issparse(rows):
            # differences of a running sum modulo 2^64 are exact, and right for empty rows
            sums = np.cumsum(np.append(np.uint64(0), _hash_entries(place + rows.indices, rows.data)))
            total = total + (sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
            place += rows.shape[1]
            continue
        table = rows.reshape(len(rows), -1)
        table = ~table if key.is_mark else table
        if table.shape[1] > _WIDE:
            total = total + _hash_table(place, table)
        else:
            dense += enumerate(table.T, place)
        place += table.shape[1]
    together = max(1, _HASH_ROWS // max(1, len(dense[0][1]))) if dense else 1
    for first in range(0, len(dense), together):
        places, entries = zip(*dense[first : first + together], strict=True)
        total = total + np.add.reduce(
            _hash_entries(np.array(places)[:, None], np.array(entries, float)), axis=0
        )
    return total


def _hash_table(place: int, table: AnyArray) -> AnyArray:
    """Return the sum of the hashes of the entries of each row, the first of which has this place."""
    width = table.shape[1]
    places = np.arange(place, place + width)
    step = max(1, _HASH_ENTRIES // width)
    parts = [_hash_entries(places, table[i : i + step]).sum(axis=1) for i in range(0, len(table), step)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _observed(columns: Mapping[ColumnKey, AnyArray], key: ColumnKey, missing: float) -> Any:
    """Return the rows of a column with a number in the place of what is missing.

    What is in its place in the data is not a value of the row, and differs with the order of the rows.
    """
    rows: Any = columns[key]
    for is_seen in () if key.is_mark else (columns.get(key.observed), columns.get(key.entries)):
        if is_seen is not None and not issparse(rows):
            rows = np.where(is_seen.reshape(is_seen.shape + (1,) * (rows.ndim - is_seen.ndim)), rows, missing)
    return rows


def _hash_entries(places: AnyArray, values: AnyArray) -> AnyArray:
    """Return a hash of each value at its place; 0 of the value 0."""
    numbers = values.astype(np.float64)
    # adding 0 makes -0 a 0
    numbers += 0.0
    bits = numbers.view(np.uint64)
    are_zero = bits == 0
    bits ^= mix(places.astype(np.uint64))
    found = mix(bits)
    found[are_zero] = 0
    return found


def _values_first(columns: Mapping[ColumnKey, AnyArray]) -> list[ColumnKey]:
    """Return the keys by the names, those of marks last."""
    return sorted(columns, key=lambda key: (key.is_mark, key))


def mix(x: AnyArray) -> AnyArray:
    """Return 64-bit numbers in the place of others, which are overwritten: each bit depends on all of theirs."""
    # the finaliser of the SplitMix64 generator (Steele, Lea and Flood 2014): a bijection that spreads every bit
    x += np.uint64(0x9E3779B97F4A7C15)
    shifted = x >> np.uint64(30)
    x ^= shifted
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= np.right_shift(x, np.uint64(27), out=shifted)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= np.right_shift(x, np.uint64(31), out=shifted)
    return x
