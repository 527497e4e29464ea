"""Raw files: rows of numbers copied once into a temporary file, of which any piece can be read at once."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..._errors import DataError
from ..._typing import AnyArray
from ...files.leftovers import hold, remove_if_abandoned, sweep_once

_PIECE_BYTES = 2**20
_PREFIX, _LOCK = "caviar-", "in-use"


class Workspace:
    """A temporary folder that is removed with this object, and when the process ends.

    Those of processes that were killed are removed when the next process makes one in the same place.

    Parameters
    ----------
    directory
        Where it is made; by default where ``TMPDIR`` says, or in /var/tmp, which unlike /tmp is on disk everywhere.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        parent = default_directory() if directory is None else Path(directory)
        sweep_once(parent, f"{_PREFIX}*/{_LOCK}", _remove_if_abandoned)
        try:
            self.path, lock = _held_folder(parent)
        except OSError as error:
            raise DataError(
                f"cannot write temporary files to {parent}: {error.strerror or error}; give another directory="
            ) from error
        self._finalizer = weakref.finalize(self, _remove, self.path, lock, os.getpid())


def default_directory() -> Path:
    """Return where temporary files go: where the environment says, or to /var/tmp, which is on disk."""
    given = next((os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)), None)
    on_disk = Path("/var/tmp")
    if given is None and on_disk.is_dir() and os.access(on_disk, os.W_OK):
        return on_disk
    return Path(tempfile.gettempdir())


def _held_folder(parent: Path) -> tuple[Path, BinaryIO]:
    """Make a folder, and the open file in it by which others see that it is in use."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        lock = (path / _LOCK).open("xb")
        if hold(lock):
            return path, lock
        lock.close()


def _remove_if_abandoned(lock: Path) -> None:
    if remove_if_abandoned(lock):
        shutil.rmtree(lock.parent, ignore_errors=True)


def _remove(path: Path, lock: BinaryIO, process: int) -> None:
    # a forked process ends with copies of the objects of its parent, which still needs the files
    if os.getpid() == process:
        lock.close()
        shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class RawFile:
    """Rows of a raw file, or some columns of them.

    It holds row after row; a piece are ``piece_rows`` of them, the last one fewer.

    Attributes
    ----------
    path
        The file.
    label
        Name of the rows in messages.
    n_rows, n_columns, piece_rows, type_name
        How the file is written.
    columns
        Which columns, in order; one number for a single column, of shape (N,).
    first, last
        Which pieces.
    owner
        What the file is removed with; it does not travel to other processes.
    """

    path: Path
    label: str
    n_rows: int
    n_columns: int
    piece_rows: int
    type_name: str
    columns: tuple[int, ...] | int
    first: int = 0
    last: int | None = None
    owner: Workspace | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return np.dtype(self.type_name)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of a row."""
        return () if isinstance(self.columns, int) else (len(self.columns),)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Rows of each piece."""
        return tuple(self._length(number) for number in range(self.first, self._stop))

    @property
    def _stop(self) -> int:
        return -(-self.n_rows // self.piece_rows) if self.last is None else self.last

    def _length(self, number: int) -> int:
        return min(self.piece_rows, self.n_rows - number * self.piece_rows)

    def column(self, number: int) -> RawFile:
        """Return one column by itself, of shape (N,)."""
        return replace(self, columns=number)

    def part(self, first: int, last: int) -> RawFile:
        """Return some of the pieces."""
        return replace(self, first=self.first + first, last=min(self.first + last, self._stop))

    def decode(self, number: int) -> AnyArray:
        """Return a piece, read at once."""
        start = number * self.piece_rows
        return self.rows(start, start + self._length(self.first + number))

    def rows(self, start: int, stop: int) -> AnyArray:
        """Return the rows between two places, read at once."""
        values = np.empty((stop - start, self.n_columns), self.dtype)
        first = self.first * self.piece_rows + start
        try:
            with open(self.path, "rb", buffering=0) as file:
                file.seek(first * self.n_columns * self.dtype.itemsize)
                self._fill(file, values)
        except OSError as error:
            raise DataError(
                f"{self.label}: its temporary copy {self.path} cannot be read: {error.strerror or error}. Scan the "
                f"table again; other machines need a directory= that they see"
            ) from error
        if self.columns == tuple(range(self.n_columns)):
            return values
        return np.ascontiguousarray(values[:, self.columns])

    def _fill(self, file: Any, values: AnyArray) -> None:
        view = values.reshape(-1).data.cast("B")
        while view:
            count = file.readinto(view)
            if not count:
                raise DataError(
                    f"{self.label}: its temporary copy {self.path} was cut off; scan the table again"
                )
            view = view[count:]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "owner": None}


def piece_rows_of(n_columns: int, dtype: np.dtype[Any]) -> int:
    """Return how many rows a piece has: about a mebibyte."""
    return max(1_024, _PIECE_BYTES // (n_columns * dtype.itemsize))


def write_raw(
    path: Path, blocks: Iterable[AnyArray], n_columns: int, dtype: np.dtype[Any], label: str, owner: Workspace
) -> RawFile:
    """Write blocks of rows, shape (rows, columns) each, to a raw file.

    Raises
    ------
    DataError
        If the disk is full.
    """
    n_rows = 0
    try:
        with open(path, "wb", buffering=0) as file:
            for block in filter(len, blocks):
                n_rows += len(block)
                view = np.ascontiguousarray(block, dtype=dtype).reshape(-1).data.cast("B")
                while view:
                    view = view[file.write(view) :]
    except OSError as error:
        path.unlink(missing_ok=True)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "the disk is full" if full else str(error.strerror or error)
        raise DataError(
            f"{label}: cannot write its temporary copy to {path.parent}: {why}. Give a directory= with more room, or "
            f"fewer columns="
        ) from error
    piece_rows = piece_rows_of(n_columns, dtype)
    return RawFile(
        path, label, n_rows, n_columns, piece_rows, dtype.str, tuple(range(n_columns)), owner=owner
    )
