"""One file that holds named arrays and a JSON document.

It is a zip archive without compression: ``header.json``, and ``NAME.npy`` for every array, so that ``numpy.load``
opens it too. Reading it cannot run anything, and takes time and memory in proportion to the file: an entry that claims
another size than the file gives it is refused before its contents are looked at, and so is a directory, or a header,
longer than any model needs.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

import numpy as np

from .._errors import DataError
from .._typing import AnyArray
from .._version import __version__
from ..files.whole import replacing

FORMAT = "caviar"
FORMAT_VERSION = 2
"""Raised when files are written that older versions of the library would misread."""

_HEADER = "header.json"
_LARGEST_HEADER = 4 * 2**20
"""Bytes; what is made of JSON may take 25 times as many."""
_LARGEST_DIRECTORY = 2**20
"""Bytes of the list of entries; what is made of one takes about ten times as many."""
_LARGE_ARCHIVE = 2**32 - 1
"""Bytes from which on an archive is of another kind (zip64)."""
_ENTRY_NAME = re.compile(r"(?!.*(//|/\.))[A-Za-z_][A-Za-z0-9_./-]{0,200}\.npy")
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
"""Errors that the parsers of zip archives, JSON and UTF-8 raise at damaged bytes."""


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
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1).encode()
    if len(text) > _LARGEST_HEADER:
        raise TypeError(
            f"what is not an array takes {len(text):,} bytes as JSON, and {_LARGEST_HEADER:,} is the most"
        )
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_entry(_HEADER), text)
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
    with _refusing_damage(path), _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        _check_directory(file, size)
        with zipfile.ZipFile(file) as archive:
            header = _parse_header(_header_of(archive))
            version = header["format_version"]
            arrays = _arrays_of(archive, size, header) if version <= FORMAT_VERSION else {}
    if version > FORMAT_VERSION:
        raise DataError(
            f"{path} was written by caviar {header.get('caviar_version')!s:.40} in format {version}, "
            f"and this is caviar {__version__}, which reads formats up to {FORMAT_VERSION}. Install a later caviar"
        )
    return header, arrays


def _opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file; opening anything else, such as a pipe, might block forever."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise OSError("it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")
    return open(path, "rb")


def _check_directory(file: BinaryIO, size: int) -> None:
    """Refuse an archive with a longer list of entries than any model needs, before anything is made of it.

    Raises
    ------
    ValueError
        If so, or if the end of the file is not that of an archive that :func:`write` makes.
    """
    if size >= _LARGE_ARCHIVE:
        return
    file.seek(max(0, size - 42))
    end = file.read()
    file.seek(0)
    if end[-22:-18] != b"PK\5\6" or end[-2:] != b"\0\0" or end[:4] == b"PK\6\7":
        raise ValueError("its end is not that of a saved model")
    if struct.unpack("<I", end[-10:-6])[0] > _LARGEST_DIRECTORY:
        raise ValueError("its list of entries is longer than any model needs")


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
            f"{path} is not a model saved by caviar, or is damaged: {(str(error) or type(error).__name__)[:300]}"
        ) from error


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def _header_of(archive: zipfile.ZipFile) -> bytes:
    """Return the bytes of the header, if there is one of plain bytes and not too long."""
    headers = [entry for entry in archive.infolist() if entry.filename == _HEADER]
    if len(headers) != 1 or headers[0].file_size > _LARGEST_HEADER:
        raise ValueError(f"it has no {_HEADER}, or too long a one")
    _check_plain(headers[0])
    return archive.read(headers[0])


def _check_plain(entry: zipfile.ZipInfo) -> None:
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise ValueError("it is compressed")


def _arrays_of(archive: zipfile.ZipFile, size: int, header: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Return the arrays by the names they were given, if they are what :func:`write` makes and lie in the file."""
    entries = archive.infolist()
    if len({entry.filename for entry in entries}) != len(entries):
        raise ValueError("it has two entries of one name")
    for entry in entries:
        _check_plain(entry)
        if entry.filename != _HEADER and not _ENTRY_NAME.fullmatch(entry.filename):
            raise ValueError(f"it has an entry {entry.filename!r:.60}")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its entries claim more bytes than it has")
    names = [entry.filename.removesuffix(".npy") for entry in entries if entry.filename != _HEADER]
    if names != header.get("arrays"):
        raise ValueError("it does not hold the arrays that it should")
    return {name: _parse_array(archive.read(f"{name}.npy")) for name in names}


def _parse_header(text: bytes) -> dict[str, Any]:
    header = json.loads(
        text.decode(), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_each_once
    )
    if b"\\u" in text:
        # half of a pair of surrogates is not a character, and could be neither printed nor saved again
        json.dumps(header, ensure_ascii=False).encode()
    if (
        not isinstance(header, dict)
        or header.get("format") != FORMAT
        or type(header.get("format_version")) is not int
        or header["format_version"] < 1
    ):
        raise ValueError(f"its {_HEADER} is not that of a saved model")
    return header


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name:.40} is not a number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an entry of its JSON is there twice")
    return found


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
    n_bytes = math.prod(shape) * kind.itemsize
    # an array of nothing could otherwise have axes of any length
    is_long = max(shape, default=0) > len(content)
    if kind.str not in _TYPES or n_bytes != len(content) - found.end() or is_long:
        raise ValueError(
            f"it has an array that claims type {kind.str} and shape {shape!s:.60}, and has other bytes"
        )
    order = "F" if found["fortran"] == b"True" else "C"
    return np.frombuffer(content, kind, offset=found.end()).reshape(shape, order=order).copy()
