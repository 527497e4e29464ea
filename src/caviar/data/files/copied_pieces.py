"""Row groups copied to a raw file when they are first read: decoding takes longer than most passes over numbers."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ..pieces import CutPieces, PieceRows
from .parquet_pieces import ParquetPieces
from .raw_file import RawFile, Workspace, piece_rows_of, write_raw


class Copy:
    """The copy of row groups, made once, when it is first asked for."""

    def __init__(self, source: ParquetPieces, directory: Any) -> None:
        self.source = source
        self._directory = directory
        self._lock = threading.Lock()
        self._made: RawFile | None = None

    @property
    def made(self) -> RawFile | None:
        """The raw file, if there is one already."""
        return self._made

    def raw(self) -> RawFile:
        """Return the raw file."""
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._write()
        return self._made

    def _write(self) -> RawFile:
        source, workspace = self.source, Workspace(self._directory)
        n_columns = source.event_shape[0] if source.event_shape else 1
        path = workspace.path / "rows"
        raw = write_raw(path, source.batches(), n_columns, source.dtype, source.label, workspace)
        return raw if source.event_shape else raw.column(0)


@dataclass(frozen=True, eq=False)
class CopiedPieces:
    """Rows of Parquet files in the pieces of their copy.

    Attributes
    ----------
    copy
        The copy.
    first, last
        Which pieces.
    """

    copy: Copy
    first: int = 0
    last: int | None = None

    @property
    def label(self) -> str:
        """The name of the rows in messages."""
        return self.copy.source.label

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.copy.source.dtype

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of a row."""
        return self.copy.source.event_shape

    @property
    def lengths(self) -> tuple[int, ...]:
        """Rows of each piece."""
        n_rows = sum(self.copy.source.lengths)
        size = piece_rows_of(int(np.prod(self.event_shape)), self.dtype)
        every = [min(size, n_rows - start) for start in range(0, n_rows, size)]
        return tuple(every[self.first : self.last])

    def decode(self, number: int) -> AnyArray:
        """Return a piece."""
        return self.copy.raw().decode(self.first + number)

    def rows(self, start: int, stop: int) -> AnyArray:
        """Return the rows between two places."""
        before = self.first * piece_rows_of(int(np.prod(self.event_shape)), self.dtype)
        return self.copy.raw().rows(before + start, before + stop)

    def part(self, first: int, last: int) -> CopiedPieces:
        """Return some of the pieces."""
        return CopiedPieces(self.copy, self.first + first, self.first + last)

    def __reduce__(self) -> tuple[Any, ...]:
        # elsewhere the copy is used where it can be seen, and the files are read where not
        size = piece_rows_of(int(np.prod(self.event_shape)), self.dtype)
        start, lengths = self.first * size, self.lengths
        rows = PieceRows(self.copy.source).between(start, start + sum(lengths))
        raw = None if self.copy.made is None else self.copy.made.part(self.first, self.first + len(lengths))
        return _restored, (raw, rows, lengths)


def _restored(raw: RawFile | None, rows: PieceRows, lengths: tuple[int, ...]) -> CutPieces:
    if raw is not None and os.path.exists(raw.path):
        return raw
    return _Regrouped(rows, lengths)


@dataclass(frozen=True, eq=False)
class _Regrouped:
    """Rows in pieces of other lengths."""

    of: PieceRows
    lengths: tuple[int, ...]

    @property
    def label(self) -> str:
        return self.of.label

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.of.dtype

    @property
    def event_shape(self) -> tuple[int, ...]:
        return self.of.shape[1:]

    def decode(self, number: int) -> AnyArray:
        start = sum(self.lengths[:number])
        return self.rows(start, start + self.lengths[number])

    def rows(self, start: int, stop: int) -> AnyArray:
        # a slice of a row group, which must stay as it is
        return self.of.read(start, stop).view()

    def part(self, first: int, last: int) -> _Regrouped:
        start = sum(self.lengths[:first])
        lengths = self.lengths[first:last]
        return _Regrouped(self.of.between(start, start + sum(lengths)), lengths)
