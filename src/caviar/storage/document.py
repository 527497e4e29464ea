"""One file that holds named arrays and a JSON document.

It is a zip archive without compression: ``header.json``, and ``NAME.npy`` for every array, so that ``numpy.load``
opens it too. Reading it cannot run anything, and allocates nothing larger than the file itself: an entry that claims
another size than the file gives it is refused before its contents are looked at.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from .._errors import DataError
from .._files import replacing
from .._typing import AnyArray
from .._version import __version__

__all__ = ["read", "write"]

FORMAT = "caviar"
FORMAT_VERSION = 2
"""Raised when files are written that older versions of the library would misread."""

_HEADER = "header.json"
_LARGEST_HEADER = 64 * 2**20
_ENTRY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,200}\.npy")
_TYPES = ("<f8", "<f4", "<i8", "<i4", "|b1")
_ARRAY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"\{'descr': '(?P<type>[<|][a-z]\d)', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>[\d, ]{0,400})\), \} *\n",
    re.DOTALL,
)
_DAMAGE = (
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    struct.error,
    LookupError,
    ValueError,
    OverflowError,
    RuntimeError,
    MemoryError,
)
"""What the parsers of zip archives, JSON and UTF-8 raise at damaged bytes."""


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    """Write a document and arrays to one file; whole or not at all. The same contents give the same bytes.

    Parameters
    ----------
    path
        Where to; a file that is there is replaced.
    header
        What JSON can hold: numbers (finite ones), texts, lists, dictionaries with texts as keys, True, False and None.
    arrays
        Name -> array of float64, float32, int64, int32 or bool.

    Raises
    ------
    DataError
        If the file cannot be written.
    TypeError, ValueError
        If the header or an array holds something that cannot be stored.
    """
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "caviar_version": __version__,
        "arrays": list(arrays),
        **header,
    }
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1)
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_entry(_HEADER), text.encode())
        for name, array in arrays.items():
            archive.writestr(_entry(f"{name}.npy"), _array_bytes(name, array))


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the document and the arrays of a file that :func:`write` made. Safe for files from anywhere.

    Raises
    ------
    DataError
        If there is no such file, it is damaged or something else, or a later version of the library wrote it.
    """
    if not isinstance(path, str | os.PathLike):
        # a number would be the descriptor of an open file, and be closed
        raise DataError(f"a path is a string or a path object; got {path!r}")
    with _refusing_damage(path), open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        entries = _entries(archive, os.fstat(file.fileno()).st_size)
        header = _parse_header(archive.read(entries.pop(_HEADER)))
        later = header["format_version"] > FORMAT_VERSION
        arrays = {} if later else {name: _parse_array(archive.read(entry)) for name, entry in entries.items()}
        if not later and list(arrays) != header.get("arrays"):
            raise ValueError("it does not hold the arrays that it should")
    if later:
        raise DataError(
            f"{path} was written by caviar {header.get('caviar_version')!s:.40} in format {header['format_version']}, "
            f"and this is caviar {__version__}, which reads formats up to {FORMAT_VERSION}. Install a later caviar"
        )
    return header, arrays


@contextmanager
def _refusing_damage(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn everything that hostile bytes can make of the parsers into an error that says what the file is not."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except _DAMAGE as error:
        raise DataError(
            f"{path} is no model that caviar saved, or is damaged: {error or type(error).__name__}"
        ) from error


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def _entries(archive: zipfile.ZipFile, file_size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the entries by the names they were given, if they are what :func:`write` makes and lie in the file."""
    entries = {entry.filename: entry for entry in archive.infolist()}
    if _HEADER not in entries or entries[_HEADER].file_size > _LARGEST_HEADER:
        raise ValueError(f"it has no {_HEADER}")
    if len(entries) != len(archive.infolist()):
        raise ValueError("it has two entries of one name")
    for name, entry in entries.items():
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ValueError("it is compressed")
        if name != _HEADER and not _ENTRY_NAME.fullmatch(name):
            raise ValueError(f"it has an entry {name!r:.60}")
    if sum(entry.file_size for entry in entries.values()) > file_size:
        raise ValueError("its entries claim more bytes than it has")
    return {name.removesuffix(".npy"): entry for name, entry in entries.items()}


def _parse_header(text: bytes) -> dict[str, Any]:
    header = json.loads(text.decode(), parse_constant=_refuse_constant)
    if (
        not isinstance(header, dict)
        or header.get("format") != FORMAT
        or type(header.get("format_version")) is not int
    ):
        raise ValueError(f"its {_HEADER} is not that of a saved model")
    return header


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _array_bytes(name: str, array: AnyArray) -> bytes:
    values = np.asarray(array, order="C")
    kind = values.dtype.newbyteorder("<")
    if kind.str not in _TYPES or not _ENTRY_NAME.fullmatch(f"{name}.npy"):
        raise TypeError(
            f"expected an array of {', '.join(_TYPES)} under a plain name; got {kind.str} under {name!r}"
        )
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, values.astype(kind, copy=False), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _parse_array(content: bytes) -> AnyArray:
    """Return the array of a .npy entry; its header is matched, not evaluated, and must agree with its bytes."""
    found = _ARRAY_HEADER.match(content)
    if found is None or struct.unpack("<H", found["length"])[0] + 10 != found.end():
        raise ValueError("it has an array whose header is not that of a saved model")
    kind, shape = (
        np.dtype(found["type"].decode()),
        tuple(int(size) for size in re.findall(rb"\d+", found["shape"])),
    )
    if kind.str not in _TYPES or math.prod(shape) * kind.itemsize != len(content) - found.end():
        raise ValueError(
            f"it has an array that claims type {kind.str} and shape {shape!s:.60}, and has other bytes"
        )
    order = "F" if found["fortran"] == b"True" else "C"
    return np.frombuffer(content, kind, offset=found.end()).reshape(shape, order=order).copy()
