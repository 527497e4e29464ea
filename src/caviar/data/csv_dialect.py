"""How a CSV file is written: its delimiter and the names of its columns, decided by its first line alone.

Nothing is guessed from later lines: a line that does not fit is an error, never skipped.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import IO

from .._errors import DataError

__all__ = ["MISSING", "CsvDialect", "dialect_of", "line_of"]

MISSING = ("", "NA", "N/A", "n/a", "NULL", "null")
"""Entries that stand for a missing value."""

_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class CsvDialect:
    """How the lines of a CSV file are to be read.

    Attributes
    ----------
    delimiter
        What stands between two entries.
    names
        The names of the columns: those of the first line, or x0, x1, ... where it holds numbers.
    header
        Whether the first line holds names.
    blank_lines
        Empty lines before the first line.
    """

    delimiter: str
    names: tuple[str, ...]
    header: bool
    blank_lines: int


def dialect_of(path: Path) -> CsvDialect:
    """Return how a CSV file is written.

    Raises
    ------
    DataError
        If the file is no text in UTF-8, has no line, or gives two columns the same name.
    """
    try:
        with _open(path) as lines:
            blank_lines, first = _first_record(lines)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is neither a Parquet file nor a CSV file in UTF-8: {error.reason}"
        ) from error
    except (csv.Error, EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is neither a Parquet nor a CSV file: {error}") from error
    if first is None:
        raise DataError(
            f"{path} is empty; expected a line with the names of the columns, and a line for each row"
        )
    delimiter = max(_DELIMITERS, key=lambda candidate: len(_fields(first, candidate)))
    fields = [field.strip() for field in _fields(first, delimiter)]
    header = not all(field in MISSING or _is_number(field) for field in fields)
    names = [field if header and field else f"x{number}" for number, field in enumerate(fields)]
    return CsvDialect(delimiter, tuple(names), header, blank_lines)


def line_of(paths: Sequence[Path], dialect: CsvDialect, row: int) -> tuple[Path, int]:
    """Return the file, and the line in it counted from 1, on which a row of all files, counted from 0, ends."""
    places = ((path, line) for path in paths for line in _lines_of_rows(path, dialect))
    return next(islice(places, row, None))


def _lines_of_rows(path: Path, dialect: CsvDialect) -> Iterator[int]:
    with _open(path) as lines:
        for _ in range(dialect.blank_lines):
            next(lines)
        records = csv.reader(lines, delimiter=dialect.delimiter)
        if dialect.header:
            next(records)
        for record in records:
            # An empty line is a row, with its value missing, only where there is one column.
            if record or len(dialect.names) == 1:
                yield dialect.blank_lines + records.line_num


def _open(path: Path) -> IO[str]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open("rt", encoding="utf-8-sig", newline="")


def _first_record(lines: Iterator[str]) -> tuple[int, str | None]:
    """Return the number of empty lines, and the text of the first record after them."""
    blank_lines = 0
    for line in lines:
        if "\0" in line:
            raise csv.Error("it holds null bytes")
        if line.strip():
            record = line
            while record.count('"') % 2 and (more := next(lines, "")):
                record += more
            return blank_lines, record
        blank_lines += 1
    return blank_lines, None


def _fields(record: str, delimiter: str) -> list[str]:
    # line by line: what is one entry with a line break in quotes is two lines for another delimiter
    return next(csv.reader(StringIO(record, newline=""), delimiter=delimiter), [])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
