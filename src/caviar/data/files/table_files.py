r"""The files that a table is read from, and the query by which DuckDB reads them.

CSV files whose lines do not all end alike, and the copy in which they do.

DuckDB takes the first end of a line that it meets, "\n" or "\r\n", for that of every line. A line break in a cell in
quotes, as spreadsheets write it, or a file that was put together from two systems breaks that rule. Such a file is
read by Python's ``csv`` and written again, one record a line; all others are read as they are.
"""

from __future__ import annotations

import csv
import glob
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..._errors import DataError
from ...files.naming import listed, named
from .csv_dialect import (
    LONGEST_LINE,
    MISSING,
    CsvDialect,
    dialect_of,
    line_of,
    opened,
    opened_bytes,
    read_in_words,
    records_of,
)
from .raw_file import Workspace

_PARQUET_SUFFIXES = (".parquet", ".pq")
_CODE = "0[0-9][0-9]+"
"""Two digits, as 07, are those of hours, days and months, too."""


def identifier(name: str) -> str:
    """Return a name, whatever is in it, as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text, whatever is in it, as a constant of SQL."""
    return "'" + text.replace("'", "''") + "'"


def table_of(sql: str | None) -> str:
    """Return what a query selects from: the table, or the result of another query."""
    return "data" if sql is None else f"({sql.strip().rstrip(';')})"


def as_number(name: str, kind: str, type_name: str = "DOUBLE") -> str:
    """Return the expression of SQL for the numbers of a column of a kind; null where a value is missing.

    Texts are no numbers where DuckDB would lose what tells them apart: 2020_01 would be 202001, and the code 007 be 7.
    """
    given = identifier(name)
    if kind != "varchar":
        return f"TRY_CAST({given} AS {type_name})"
    # few texts begin with 0 or a blank and have no point, and only these are compared with the pattern
    may_be = f"{given} < '1' AND NOT contains({given}, '.')"
    is_code = f"{may_be} AND regexp_full_match(trim({given}), '{_CODE}')"
    return (
        f"TRY_CAST(CASE WHEN contains({given}, '_') OR ({is_code}) THEN '?' ELSE {given} END AS {type_name})"
    )


def is_code(text: str) -> bool:
    """Whether a text has only digits, three or more and 0 first, as codes have: a number would lose that.

    Examples
    --------
    >>> [is_code(text) for text in ("007", "000", "07", "0", "0.7", "-07")]
    [True, True, False, False, False, False]
    """
    return re.fullmatch(_CODE, text.strip()) is not None


def refuse_twins(names: Sequence[str], where: str) -> None:
    """Raise DataError if a name occurs twice; capitals make no difference to DuckDB."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            twins = f"{named(seen[name.lower()])} and {named(name)}"
            raise DataError(f"{where} has two columns with the same name, {twins}; give each another name")
        seen[name.lower()] = name


@dataclass(frozen=True)
class TableFiles(ABC):
    """Files of one format that together hold a table."""

    paths: tuple[Path, ...]

    @property
    def label(self) -> str:
        """The name of the files in messages."""
        first = str(self.paths[0])
        return first if len(self.paths) == 1 else f"{first} and {len(self.paths) - 1} more"

    @property
    @abstractmethod
    def query(self) -> str:
        """The query that gives every column, under its own name, and the rows in their order."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Return the place of a row, counted from 0."""


def _path_list(paths: Sequence[Path]) -> str:
    # glob.escape: DuckDB takes every path for a pattern.
    return "[" + ", ".join(literal(glob.escape(str(path))) for path in paths) + "]"


@dataclass(frozen=True)
class ParquetFiles(TableFiles):
    """Parquet files with the same columns."""

    @property
    def query(self) -> str:
        # By name: by position DuckDB would convert the columns of later files to the types of the first.
        return f"SELECT * FROM read_parquet({_path_list(self.paths)}, union_by_name = true)"

    def place(self, row: int) -> str:
        return f"row {row}"


@dataclass(frozen=True)
class CsvFiles(TableFiles):
    """CSV files with the same first line. Every entry is read as text.

    Attributes
    ----------
    dialect
        Encoding of the files.
    copies
        What is read in the place of each: the file itself, or a copy in which all lines end alike.
    workspace
        The folder of the copies, if there are any, which is removed with this object.
    """

    dialect: CsvDialect
    copies: tuple[Path, ...]
    workspace: Workspace | None = field(default=None, compare=False)

    @property
    def query(self) -> str:
        dialect = self.dialect
        # Not by nullstr=: DuckDB drops what is null beyond the last column, where only empty entries may be. Nor by IN:
        # with more than four values it may lose the order of the rows.
        missing = " ".join(f"WHEN {literal(text)} THEN NULL" for text in MISSING if text)
        columns = ", ".join(
            f"CASE c{number} {missing} ELSE c{number} END AS {identifier(name)}"
            for number, name in enumerate(dialect.names)
        )
        types = ", ".join(f"c{number}: 'VARCHAR'" for number in range(len(dialect.names)))
        # Nothing is left for DuckDB to detect: its detection may skip lines that do not fit.
        return (
            f"SELECT {columns} FROM read_csv({_path_list(self.copies)}, auto_detect = false, columns = {{{types}}}, "
            f"header = {dialect.header}, skip = {dialect.blank_lines}, delim = {literal(dialect.delimiter)}, "
            f"quote = '\"', escape = '\"', nullstr = '', max_line_size = {LONGEST_LINE})"
        )

    def place(self, row: int) -> str:
        path, line = line_of(self.paths, self.dialect, row)
        return f"row {row}, line {line}" + (f" of {path}" if len(self.paths) > 1 else "")


def find_files(source: str | os.PathLike[str]) -> TableFiles:
    """Return the files of a file's name, a folder of Parquet files (with its subfolders) or a pattern.

    Raises
    ------
    DataError
        If there are none, or they cannot be read together.
    """
    paths = _paths(source)
    for path in paths:
        if not path.is_file():
            raise DataError(f"{path} is not a regular file; expected CSV or Parquet files")
    try:
        parquet = [_is_parquet(path) for path in paths]
        if all(parquet):
            return ParquetFiles(paths)
        if any(parquet):
            mixed = f"{paths[parquet.index(True)]} is a Parquet file and {paths[parquet.index(False)]} is not"
            raise DataError(f"expected files of one format; {mixed}")
        return _csv_files(paths)
    except OSError as error:
        raise DataError(f"cannot read {error.filename or source}: {error.strerror or error}") from error


def _csv_files(paths: tuple[Path, ...]) -> CsvFiles:
    """Return CSV files, with a copy of each whose lines do not all end alike."""
    dialect = _common_dialect(paths)
    unlike = [path for path in paths if not ends_alike(path)]
    if not unlike:
        return CsvFiles(paths, dialect, paths)
    workspace = Workspace()
    copies = {path: workspace.path / f"{number}.csv" for number, path in enumerate(unlike)}
    for path, copy in copies.items():
        write_with_one_end(path, dialect, copy)
    return CsvFiles(paths, dialect, tuple(copies.get(path, path) for path in paths), workspace)


def _paths(source: str | os.PathLike[str]) -> tuple[Path, ...]:
    if not str(source).strip():
        raise DataError(f"expected the name of a file, a folder or a pattern; got {str(source)!r}")
    path = Path(source)
    if path.is_dir():
        found = sorted(
            file
            for file in path.rglob("*")
            if file.suffix.lower() in _PARQUET_SUFFIXES
            and file.is_file()
            and not _is_left_over(file.relative_to(path))
        )
        if not found:
            raise DataError(f"the folder {path} holds no Parquet file (*.parquet){_hint_of_folder(path)}")
        return tuple(found)
    if path.exists():
        return (path,)
    if glob.has_magic(str(source)):
        found = sorted(Path(name) for name in glob.glob(str(source), recursive=True) if Path(name).is_file())
        if found:
            return tuple(found)
        raise DataError(f"no file matches {source}")
    raise DataError(f"there is no file {source}")


def _hint_of_folder(path: Path) -> str:
    """Return how files of other kinds in a folder are read."""
    if next(path.glob("*.csv"), None):
        return f"; for its CSV files write '{path / '*.csv'}'"
    if next(path.rglob("*.txt"), None):
        return "; for the words of its text files take caviar.data.read_texts, on the command line --model topics"
    other = next((own for own in sorted(path.iterdir()) if own.is_file() and own.suffix), None)
    pattern = "" if other is None else f"; for texts with another ending write '{path / '*'}{other.suffix}'"
    return f" and no text file (*.txt){pattern}"


def _is_left_over(path: Path) -> bool:
    """Whether writers of folders hide a file: by a point or an underscore in front, as what a broken run has left."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise DataError(f"{path} is empty; expected a table in CSV or Parquet")
    if start != b"PAR1" and path.suffix.lower() in _PARQUET_SUFFIXES:
        raise DataError(f"{path} is not a Parquet file, although its name ends so; it starts with {start!r}")
    return start == b"PAR1"


def _common_dialect(paths: Sequence[Path]) -> CsvDialect:
    first, *others = ((path, dialect_of(path)) for path in paths)
    for path, dialect in others:
        if dialect != first[1]:
            raise DataError(
                f"expected the same first line in every file; {first[0]} has the columns "
                f"{listed(first[1].names)}, {path} has {listed(dialect.names)}"
            )
    refuse_twins(first[1].names, str(first[0]))
    return first[1]


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
            writer.writerow(entry.replace("\r\n", "\n").replace("\r", "\n") for entry in record)
