"""Row groups of Parquet files, decoded one by one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..._errors import DataError
from ..._typing import AnyArray
from .arrow_numbers import fill_columns

_BATCH_ROWS = 65_536
_BUFFER_BYTES = 2**20


@dataclass(frozen=True)
class ParquetFile:
    """The footer of a file.

    Attributes
    ----------
    path
        The file.
    signature
        Size in bytes and time of its last change, in ns: of any other the footer is no longer true.
    lengths
        Rows of each row group.
    partition
        Name -> the number that all rows of the file have in a column of which its folder tells.
    """

    path: Path
    signature: tuple[int, int]
    lengths: tuple[int, ...]
    partition: tuple[tuple[str, float], ...] = ()


def read_footer(path: Path) -> tuple[ParquetFile, Any]:
    """Return what a file's footer says, and its Arrow schema.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    try:
        signature = _signature(path)
        with _opened(path) as file:
            metadata = file.metadata
            lengths = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
            return ParquetFile(path, signature, lengths), file.schema_arrow
    except (OSError, import_module("pyarrow").ArrowException) as error:
        raise _unreadable(path, error) from error


def _signature(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _unreadable(path: Path, error: Exception) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path} is missing now; put it back, or scan the table again")
    text = str(error).splitlines()[0]
    if "magic bytes" in text:
        return DataError(f"{path} is not a Parquet file, or only a part of one; write or copy it again")
    return DataError(f"cannot read {path}: {text}")


@dataclass(frozen=True, eq=False)
class ParquetPieces:
    """Some columns of Parquet files, a row group at a time.

    Attributes
    ----------
    label
        Name of the rows in messages.
    groups
        (file, row group) of each piece.
    names
        Columns, in order; one name for a single column, of shape (N,).
    dtype
        Of the numbers.
    """

    label: str
    groups: tuple[tuple[ParquetFile, int], ...]
    names: tuple[str, ...] | str
    dtype: np.dtype[Any]
    _open: threading.local = field(default_factory=threading.local, repr=False)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of a row."""
        return () if isinstance(self.names, str) else (len(self.names),)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Rows of each piece."""
        return tuple(file.lengths[group] for file, group in self.groups)

    def part(self, first: int, last: int) -> ParquetPieces:
        """Return some of the pieces."""
        return replace(self, groups=self.groups[first:last], _open=threading.local())

    @property
    def largest(self) -> int:
        """Bytes of the largest piece."""
        n_columns = len(self._names)
        return max(self.lengths, default=0) * n_columns * self.dtype.itemsize

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.names,) if isinstance(self.names, str) else self.names

    def decode(self, number: int) -> AnyArray:
        """Return a row group."""
        file, group = self.groups[number]
        values = np.empty((len(self._names), file.lengths[group]), self.dtype)
        stored = self._stored(file)
        try:
            opened = self._opened(file)
            if stored:
                names = [self._names[place] for place in stored]
                table = opened.read_row_group(group, columns=list(dict.fromkeys(names)), use_threads=False)
                self._lay_out(file, [table.column(name) for name in names], values)
            else:
                self._lay_out(file, [], values)
        except (OSError, import_module("pyarrow").ArrowException) as error:
            raise _unreadable(file.path, error) from error
        # rows one after another, as arrays are: sums over another layout may be other bits
        return values[0] if isinstance(self.names, str) else np.ascontiguousarray(values.T)

    def batches(self) -> Iterator[AnyArray]:
        """Yield all rows in order, however large the row groups, a batch at a time, shape (rows, columns)."""
        for file in dict.fromkeys(file for file, _ in self.groups):
            try:
                _check_unchanged(file)
                # buffered: column chunks are read page by page
                with _opened(file.path, buffer_size=_BUFFER_BYTES) as opened:
                    # a group at a time, for several are all held until the last one ends
                    for group in (group for other, group in self.groups if other is file):
                        yield from self._batches_of(file, opened, group)
            except (OSError, import_module("pyarrow").ArrowException) as error:
                raise _unreadable(file.path, error) from error

    def _batches_of(self, file: ParquetFile, opened: Any, group: int) -> Iterator[AnyArray]:
        stored = self._stored(file)
        names = [self._names[place] for place in stored]
        # where only the folder tells, any column tells the number of rows
        read = list(dict.fromkeys(names)) or opened.schema_arrow.names[:1]
        for batch in opened.iter_batches(_BATCH_ROWS, [group], columns=read, use_threads=False):
            values = np.empty((len(self._names), batch.num_rows), self.dtype)
            self._lay_out(file, [batch.column(name) for name in names], values)
            yield values.T

    def _stored(self, file: ParquetFile) -> list[int]:
        """Return the places of the columns that are in the file, and not in the name of its folder."""
        told = dict(file.partition)
        return [place for place, name in enumerate(self._names) if name not in told]

    def _lay_out(self, file: ParquetFile, columns: Sequence[Any], values: AnyArray) -> None:
        told, stored = dict(file.partition), iter(columns)
        for place, name in enumerate(self._names):
            if name in told:
                values[place] = told[name]
            else:
                fill_columns([next(stored)], values[place : place + 1])

    def _opened(self, file: ParquetFile) -> Any:
        """Return the file opened for this thread; the one opened last stays open."""
        _check_unchanged(file)
        if getattr(self._open, "file", None) is not file:
            opened = _opened(file.path)
            if hasattr(self._open, "opened"):
                self._open.opened.close()
            self._open.file, self._open.opened = file, opened
        return self._open.opened

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_open"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _open=threading.local())


def _check_unchanged(file: ParquetFile) -> None:
    if _signature(file.path) != file.signature:
        raise DataError(f"{file.path} has changed since the table was scanned; scan it again")


def _opened(path: Path, **settings: Any) -> Any:
    # by default what belongs to a row group is read ahead, and stays in memory until the group ends
    return import_module("pyarrow.parquet").ParquetFile(path, pre_buffer=False, **settings)
