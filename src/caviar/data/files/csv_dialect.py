"""How a CSV file is written: its delimiter and the names of its columns, decided by its first line alone.

Nothing is guessed from later lines: a line that does not fit is an error, never skipped.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, cast

from ..._errors import DataError

MISSING = ("", "NA", "N/A", "n/a", "NULL", "null")
"""Entries that mean a missing value."""

LONGEST_LINE = 2**24
"""Characters of a record beyond which a file is taken for something else than a table."""

_DELIMITERS = (",", ";", "\t", "|")
_MOST_LINES = 1_000
"""Lines that the first record may have."""
_JSON = re.compile(r'\s*(\[\s*)?\{\s*("|\})')
_START = 4_096
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""Bytes that texts do not have, and most other files do."""
_NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE
)
"""The texts that DuckDB reads as numbers, except digits grouped by underscores: 2020_01 is a name."""


@dataclass(frozen=True)
class CsvDialect:
    """How the lines of a CSV file are to be read.

    Attributes
    ----------
    delimiter
        What separates two entries.
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
        If the file is not a text in UTF-8, has no line, gives two columns the same name, or its first line is neither
        names nor numbers.
    """
    with read_in_words(path), opened(path) as lines:
        _refuse_json(path, lines)
        first = _FirstRecord(lines)
        if first.is_missing:
            raise DataError(
                f"{path} is empty; expected a line with the names of the columns, and a line for each row"
            )
        delimiter = _delimiter_of(first)
        fields = [field.strip() for field in first.fields(delimiter)]
    if not any(fields):
        raise DataError(
            f"{path}: its first line has {len(fields)} entries and all are empty, so it holds neither names nor "
            f"numbers. Write the names of the columns there, or remove the line"
        )
    header = not all(field in MISSING or _is_number(field) for field in fields)
    names = [field if header and field else f"x{number}" for number, field in enumerate(fields)]
    return CsvDialect(delimiter, tuple(names), header, first.blank_lines)


def _refuse_json(path: Path, lines: IO[str]) -> None:
    """Refuse what would be read as a table with names such as ``[{"a": 1``.

    Raises
    ------
    DataError
        If a file begins as JSON with objects does.
    """
    if _JSON.match(lines.read(_START)):
        quoted = str(path).replace("'", "''")
        raise DataError(
            f"{path} holds JSON, and is neither a Parquet nor a CSV file. Objects with a number for each name are read "
            f"by a query in place of the file (sql=, --sql): SELECT * FROM read_json('{quoted}')"
        )
    lines.seek(0)


def line_of(paths: Sequence[Path], dialect: CsvDialect, row: int) -> tuple[Path, int]:
    """Return the file, and the line in it counted from 1, on which a row of all files, counted from 0, ends."""
    places = ((path, line) for path in paths for line in _lines_of_rows(path, dialect))
    found = next(islice(places, row, None), None)
    if found is None:
        raise DataError(f"{paths[-1]} changed while it was read: row {row:,} is gone. Read it again")
    return found


def records_of(lines: IO[str], dialect: CsvDialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each record of a file ends, and its entries: first those of the header, if there is one.

    An empty line is a record, with its entry missing, only where there is one column.
    """
    for _ in range(dialect.blank_lines):
        lines.readline()
    # DuckDB, too, takes a quote after a blank for one that opens an entry
    records = csv.reader(lines, delimiter=dialect.delimiter, skipinitialspace=True)
    for record in records:
        if record or len(dialect.names) == 1:
            yield dialect.blank_lines + records.line_num, record or [""]


def _lines_of_rows(path: Path, dialect: CsvDialect) -> Iterator[int]:
    with read_in_words(path), opened(path) as lines:
        for line, _ in islice(records_of(lines, dialect), int(dialect.header), None):
            yield line


def opened(path: Path) -> IO[str]:
    """Open a CSV file, packed or not, as text."""
    return TextIOWrapper(opened_bytes(path), encoding="utf-8-sig", newline="")


def opened_bytes(path: Path) -> IO[bytes]:
    """Open a CSV file, packed or not, as bytes."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path, "rb")) if packed else path.open("rb")


def _how_to_read(path: Path) -> str:
    """Return how a file of another kind becomes a table; empty where its kind is not known."""
    kind = path.suffix.lower()
    if kind in {".npz", ".npy"}:
        return "; it is a NumPy file: write its columns as a table, caviar.data.write_table('a.csv', {'x': values})"
    if kind == ".caviar":
        return "; it is a saved model: caviar show prints it"
    if kind in {".xlsx", ".xls", ".ods"}:
        return "; it is a workbook: save the sheet as CSV"
    with opened_bytes(path) as file:
        head = file.read(_START)
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return f"; it is in UTF-16: save it in UTF-8, as iconv -f UTF-16 -t UTF-8 {path} does"
    if _CONTROL.search(head):
        return ""
    return f"; if it is a text in Latin-1, iconv -f LATIN1 -t UTF-8 {path} writes it in UTF-8"


@contextmanager
def read_in_words(path: Path) -> Iterator[None]:
    """Turn what may go wrong with the text of a file into a DataError."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is neither a Parquet file nor a CSV file in UTF-8{_how_to_read(path)}"
        ) from error
    except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is neither a Parquet nor a CSV file: {error}") from error
    except MemoryError as error:
        raise DataError(f"{path} cannot be read: a line of it does not fit into memory") from error


class _FirstRecord:
    """The first record of a file that is not empty, split at one delimiter or another.

    As many lines are read as it takes; a quote that is never closed does not make a record of the whole file.
    """

    def __init__(self, lines: IO[str]) -> None:
        self._lines = lines
        self._read: list[str] = []
        self.blank_lines = 0
        while (line := self._next_line()) and not line.strip():
            self.blank_lines += 1
        if line:
            self._read.append(line)

    @property
    def is_missing(self) -> bool:
        """Whether the file has no such record."""
        return not self._read

    def fields(self, delimiter: str) -> list[str]:
        """Return the entries.

        Raises
        ------
        csv.Error
            If a quote is not closed, or the record is too long.
        """
        return next(csv.reader(self._again(), delimiter=delimiter))

    def _again(self) -> Iterator[str]:
        length, number = 0, 0
        while length <= LONGEST_LINE and number < _MOST_LINES:
            if number == len(self._read):
                line = self._next_line()
                if not line:
                    raise csv.Error(f"the quote that line {self.blank_lines + 1} opens is not closed")
                self._read.append(line)
            yield self._read[number]
            length += len(self._read[number])
            number += 1
        what = f"{LONGEST_LINE:,} characters" if length > LONGEST_LINE else f"{_MOST_LINES:,} lines"
        raise csv.Error(
            f"the record that line {self.blank_lines + 1} begins has more than {what}; is a quote not closed?"
        )

    def _next_line(self) -> str:
        line = self._lines.readline(LONGEST_LINE + 1)
        if "\0" in line:
            raise csv.Error("it holds null bytes")
        return line


def _delimiter_of(first: _FirstRecord) -> str:
    """Return the delimiter that makes the most entries of the first record."""
    widths: dict[str, int] = {}
    errors: list[csv.Error] = []
    for delimiter in _DELIMITERS:
        try:
            widths[delimiter] = len(first.fields(delimiter))
        except csv.Error as error:
            errors.append(error)
    best = max(widths, key=widths.__getitem__, default="")
    if errors and widths.get(best, 1) == 1:
        raise errors[0]
    return best


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None
