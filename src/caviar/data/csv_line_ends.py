r"""CSV files whose lines do not all end alike, and the copy in which they do.

DuckDB takes the first end of a line that it meets, "\n" or "\r\n", for that of every line. A line break in a cell in
quotes, as spreadsheets write it, or a file that was put together from two systems breaks that rule. Such a file is
read by Python's ``csv`` and written again, one record a line; all others are read as they are.
"""

from __future__ import annotations

import csv
from pathlib import Path

from .._errors import DataError
from .csv_dialect import CsvDialect, opened, opened_bytes, read_in_words, records_of

_CHUNK = 2**20


def ends_alike(path: Path) -> bool:
    r"""Return whether every line break of a file is "\n", or every one is "\r\n"."""
    n_feeds = n_returns = n_pairs = 0
    last = b""
    with read_in_words(path), opened_bytes(path) as file:
        while chunk := file.read(_CHUNK):
            n_feeds += chunk.count(b"\n")
            n_returns += chunk.count(b"\r")
            n_pairs += chunk.count(b"\r\n") + (last == b"\r" and chunk.startswith(b"\n"))
            if n_returns and not n_feeds == n_returns == n_pairs and not chunk.endswith(b"\r"):
                return False
            last = chunk[-1:]
    return not n_returns or n_feeds == n_returns == n_pairs


def write_with_one_end(path: Path, dialect: CsvDialect, target: Path) -> None:
    r"""Write the records of a file to another, with "\n" for every line break; blank lines at the beginning stay.

    Raises
    ------
    DataError
        If a record has more or fewer entries than there are columns: the message names its line.
    """
    width = len(dialect.names)
    with read_in_words(path), opened(path) as lines, target.open("w", encoding="utf-8", newline="") as copy:
        copy.write("\n" * dialect.blank_lines)
        writer = csv.writer(copy, delimiter=dialect.delimiter, lineterminator="\n")
        for line, record in records_of(lines, dialect):
            if len(record) == width + 1 and not record[-1]:
                record.pop()
            if len(record) != width:
                entries = "one entry" if len(record) == 1 else f"{len(record)} entries"
                raise DataError(f"{path}: line {line} has {entries}; expected {width}, one a column")
            writer.writerow(_one_end(entry) for entry in record)


def _one_end(entry: str) -> str:
    return entry.replace("\r\n", "\n").replace("\r", "\n") if "\r" in entry else entry
