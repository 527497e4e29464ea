"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .._errors import DataError
from .leftovers import hold, remove_if_abandoned, sweep_once

_NAME_BYTES = 8
_WAITS = (0.01, 0.05, 0.2, 0.5)
"""Seconds before each further attempt to replace a file that somebody else has open."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file to write to; at the end, what was written there becomes the file at ``path``.

    The new file is on the disk before it takes the old one's place, so that whatever happens there is either the old
    file or the whole new one. If the block raises, the old file stays and nothing else is left behind. What a killed
    process has left in the folder is removed when the next one writes there.

    Raises
    ------
    DataError
        If the file cannot be written, or ``path`` is a folder or a device.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise DataError(f"cannot write {path}: it is a folder; give the name of a file in it")
    if target.exists() and not target.is_file():
        raise DataError(f"cannot write {path}: it is not a regular file, and would be replaced by one")
    if not target.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no folder {target.parent}; make it first")
    sweep_once(target.parent, f".{'[0-9a-f]' * 2 * _NAME_BYTES}.partial", remove_if_abandoned)
    try:
        with _begun(target.parent) as (partial, file):
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":
                file.close()
            _move(partial, target)
        _flush_entries(target.parent)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def _begun(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Yield the name of a new file in a folder, and the file, held for this process; remove it at the end."""
    while True:
        partial = folder / f".{secrets.token_hex(_NAME_BYTES)}.partial"
        try:
            with partial.open("xb") as file:
                if hold(file):
                    yield partial, file
                    return
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _move(partial: Path, target: Path) -> None:
    """Put a file in the place of another, which on Windows somebody who reads it can hold up for a moment."""
    for wait in _WAITS if os.name == "nt" else ():
        try:
            os.replace(partial, target)
        except PermissionError:
            time.sleep(wait)
        else:
            return
    os.replace(partial, target)


def _flush_entries(folder: Path) -> None:
    """Wait until the entries of a folder are on the disk, where the system can open folders and flush them.

    Some network file systems cannot. The file has taken its place by then, so that this is not an error.
    """
    if os.name == "nt":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
