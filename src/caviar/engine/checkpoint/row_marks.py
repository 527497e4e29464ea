"""Marks of the rows of a fit, which show whether later rows were among them.

A mark is 32 bits of a hash of a row. The 1,024 smallest are kept: of few rows that is all of them, and of many a
sample of which it is known, for any row, whether it would be in it. No value can be read back from a mark, for 2^32
values of a column have the same one; but who guesses a row can tell whether it was probably there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ...lazy.block_map import map_runs
from ..design.keys import ColumnKey
from ..rows.subsample import hash_rows, mix
from ..rows.tasks import RowSource

_MOST_MARKS = 1024
_BITS = 32
_BLOCK_ROWS = 8_192


@dataclass(frozen=True, eq=False)
class RowMarks:
    """The smallest marks of rows.

    Attributes
    ----------
    marks
        Distinct ones in ascending order, shape (M,), M <= 1024.
    is_part
        Whether there are others, which are larger.
    """

    marks: AnyArray
    is_part: bool

    @classmethod
    def among(cls, marks: AnyArray, *, is_part: bool = False) -> RowMarks:
        """Return the smallest of marks."""
        distinct = np.unique(marks)
        return cls(distinct[:_MOST_MARKS], is_part or len(distinct) > _MOST_MARKS)

    def and_those_of(self, other: RowMarks) -> RowMarks:
        """Return the marks of these rows and of others."""
        both = np.concatenate([self.told(other.marks), other.told(self.marks)])
        return self.among(both, is_part=self.is_part or other.is_part)

    def told(self, marks: AnyArray) -> AnyArray:
        """Return those marks of which it is known whether they are among these rows."""
        return marks[marks <= self.marks[-1]] if self.is_part else marks

    def as_plain(self) -> dict[str, Any]:
        """Return plain values."""
        return {"marks": self.marks.astype(np.int64), "is_part": self.is_part}

    @classmethod
    def of_plain(cls, document: Any) -> RowMarks:
        """Return the marks that plain values hold.

        Raises
        ------
        ValueError, LookupError, TypeError
            If they hold none.
        """
        marks, is_part = document["marks"], document["is_part"]
        if not isinstance(marks, np.ndarray) or marks.dtype != np.int64 or marks.ndim != 1:
            raise TypeError(f"marks of rows {marks!r:.40}")
        rises = (
            bool(len(marks)) and bool(np.all(np.diff(marks) > 0)) and marks[0] >= 0 and marks[-1] < 2**_BITS
        )
        if not rises or len(marks) > _MOST_MARKS or type(is_part) is not bool:
            raise ValueError(f"marks of rows that are none: {marks!r:.40}")
        return cls(marks.astype(np.uint64), is_part)


def marks_of(names: Iterable[str], source: RowSource) -> RowMarks | None:
    """Return the marks of the rows with weight, or None where there are none. One pass over them.

    Parameters
    ----------
    names
        Of the columns that make a row; others, as labels that only the fit was given, are left out.
    source
        The rows.
    """
    found = None
    for own in _mapped(_Smallest(_columns_of(names)), source):
        found = own if found is None else found.and_those_of(own)
    return found if found is not None and len(found.marks) else None


def share_seen(seen: RowMarks, names: Iterable[str], source: RowSource) -> float:
    """Return which share of rows have a mark among those ``seen``; NaN where it is known of no row. One pass over them.

    Parameters
    ----------
    seen
        Marks of other rows.
    names, source
        As for :func:`marks_of`.
    """
    counts = list(_mapped(_Found(_columns_of(names), seen), source))
    told, found = np.sum(counts, axis=0) if counts else (0, 0)
    return float(found / told) if told else float("nan")


def _columns_of(names: Iterable[str]) -> frozenset[ColumnKey]:
    """Return the keys of columns, and of those that say what of each was observed."""
    own = (ColumnKey(name) for name in names)
    return frozenset(key for column in own for key in (column, column.observed, column.entries))


def _mapped(work: _Smallest | _Found, source: RowSource) -> Iterator[Any]:
    """Yield what is found in each run of the rows, if there are any."""
    if source.n_rows:
        yield from (own for _, own in map_runs(work, source, source.n_rows, _BLOCK_ROWS))


@dataclass(frozen=True, eq=False)
class _Smallest:
    """The smallest marks of a run of rows."""

    keys: frozenset[ColumnKey]

    def __call__(self, source: RowSource, n_rows: int) -> RowMarks:
        found = RowMarks(np.empty(0, dtype=np.uint64), is_part=False)
        for marks in _blocks(self.keys, source, n_rows):
            both = np.concatenate([found.marks, found.told(marks)])
            found = RowMarks.among(both, is_part=found.is_part)
        return found


@dataclass(frozen=True, eq=False)
class _Found:
    """How many rows of a run it is known of whether they were seen, and how many were."""

    keys: frozenset[ColumnKey]
    seen: RowMarks

    def __call__(self, source: RowSource, n_rows: int) -> tuple[int, int]:
        told = [self.seen.told(marks) for marks in _blocks(self.keys, source, n_rows)]
        return sum(map(len, told)), sum(int(np.isin(own, self.seen.marks).sum()) for own in told)


def _blocks(keys: frozenset[ColumnKey], source: RowSource, n_rows: int) -> Iterator[AnyArray]:
    """Yield the marks of the rows with weight, block by block; none where rows have no such column."""
    for start in range(0, n_rows, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, n_rows)
        columns = {key: rows for key, rows in source.read(start, stop).items() if key in keys}
        if not columns:
            return
        # mixed once more, for the hash of a row is a sum of hashes of its entries
        marks = np.broadcast_to(mix(hash_rows(columns)) >> np.uint64(64 - _BITS), (stop - start,))
        weights = source.weights(start, stop)
        yield marks if weights is None else marks[weights > 0]
