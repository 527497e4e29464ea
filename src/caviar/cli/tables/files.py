"""Checks of output files before the work begins."""

from __future__ import annotations

import os
from pathlib import Path

import caviar as cv


def require_writable(path: Path | None, *suffixes: str, inputs: tuple[str | Path | None, ...] = ()) -> None:
    """Refuse a file that could not be written, or that is read.

    Parameters
    ----------
    path
        The file; None for no file.
    suffixes
        What its name may end with; by default anything.
    inputs
        Files that are read: they are not to be overwritten.
    """
    if path is None:
        return
    if path.is_dir():
        raise cv.DataError(f"cannot write {path}: it is a folder; give the name of a file in it")
    for read in inputs:
        if read is not None and path.resolve() == Path(read).resolve():
            raise cv.DataError(f"cannot write {path}: it is read as well; give another name")
    if not path.absolute().parent.is_dir():
        raise cv.DataError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    if not os.access(path.absolute().parent, os.W_OK):
        raise cv.DataError(
            f"cannot write {path}: you may not write to the folder {path.absolute().parent}; choose another"
        )
    if suffixes and path.suffix.lower() not in suffixes:
        endings = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise cv.DataError(f"cannot write {path}: its name must end with {endings}")


def require_file(path: Path) -> None:
    """Refuse a file that is not there, before anything is imported to read it."""
    if not path.exists():
        raise cv.DataError(f"there is no file {path}")


def require_folder(path: Path) -> None:
    """Make a folder, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise cv.DataError(f"cannot write to the folder {path}: it is a file") from error
    except OSError as error:
        raise cv.DataError(f"cannot make the folder {path}: {error.strerror or error}") from error
