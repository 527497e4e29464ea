"""Tables that the commands read and write: files, standard input and standard output."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import caviar as cv
from caviar.data.files.table_files import identifier, table_of
from caviar.files.naming import listed

from .files import require_writable
from .non_numeric import same_numbers
from .rows import is_large

STANDARD = "-"
"""The name of standard input, and of standard output."""

_SUFFIXES = (".csv", ".parquet", ".pq")


@contextmanager
def input_file(data: str | None) -> Iterator[str | None]:
    """Yield a file with the data: themselves, or what came by standard input, which is kept for as long as needed.

    Raises
    ------
    DataError
        If standard input is empty.
    """
    if data != STANDARD:
        yield data
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "standard-input"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with path.open("rb") as file:
            start = file.read(4)
        if not start:
            raise cv.DataError("expected a table on standard input; it is empty")
        yield str(path.rename(path.with_suffix(".parquet" if start == b"PAR1" else ".csv")))


def source_name(data: str | None) -> str | None:
    """Return what the data are called where they are spoken of."""
    return "standard input" if data == STANDARD else data


def has_names(estimator: Any) -> bool:
    """Whether a model knows the names of its columns; those of topics are words."""
    words = getattr(estimator, "vocabulary", None)
    return (
        words is not None
        or hasattr(estimator, "feature_names_in_")
        or "columns" in getattr(estimator, "about_", {})
    )


def read_for(
    estimator: Any, model: object, data: str | None, sql: str | None, *, may_be_large: bool = False
) -> Any:
    """Return the table of the columns that a model was fitted to.

    Parameters
    ----------
    estimator
        The model.
    model
        Its file.
    data, sql
        The table.
    may_be_large
        Whether the rows of large files may be read in blocks.

    Raises
    ------
    DataError
        If the columns are not there.
    """
    names = list(cv.report.column_names(estimator))
    columns, sql = same_numbers(getattr(estimator, "about_", {}), names, sql)
    wanted = columns if has_names(estimator) else None
    in_blocks = may_be_large and data is not None and is_large(data)
    table: Any = (
        cv.scan(data, columns=wanted, sql=sql)
        if in_blocks
        else cv.data.read_table(data, columns=wanted, sql=sql, missing_ok=True)
    )
    there = table.columns
    if len(there) != len(names):
        raise cv.DataError(
            f"{model} was fitted to {len(names)} columns without names; the data have {len(there)}: "
            f"{listed(there)}. Choose by --sql 'SELECT ... FROM data'"
        )
    # a model saved by an earlier version has the names apart
    return table.rows() if in_blocks and not hasattr(estimator, "feature_names_in_") else table


def absent_columns(estimator: Any, data: str | None, sql: str | None) -> list[str]:
    """Return the columns of a fit that a table does not have, if it has some, and they are numbers by themselves.

    Raises
    ------
    DataError
        If the table has a column that is not a column of the fit, with a name much like one that is absent.
    """
    if not has_names(estimator) or getattr(estimator, "about_", {}).get("categories"):
        return []
    names = cv.report.column_names(estimator)
    there = cv.scan(data, sql=sql).columns
    absent = [name for name in names if name not in there]
    for name in absent:
        close = get_close_matches(name, [other for other in there if other not in names], 1)
        if close:
            raise cv.DataError(
                f"{source_name(data) or 'the query'} has no column {name!r}; its columns are {listed(there)}. Did you "
                f"mean {close[0]!r}? Rename it by --sql"
            )
    return absent if len(absent) < len(names) else []


def with_empty(columns: Sequence[str], sql: str | None) -> str | None:
    """Return the query that adds columns without an entry to a table, or to the result of a query."""
    if not columns:
        return sql
    return f"SELECT *, {', '.join(f'NULL::DOUBLE AS {identifier(name)}' for name in columns)} FROM {table_of(sql)}"


def kept_columns(file: str | None, sql: str | None, names: Sequence[str]) -> dict[str, Any]:
    """Return columns of the rows as they are, by name.

    Raises
    ------
    DataError
        If the table has no such column, or the file is no table.
    """
    table = cv.data.read_columns(file, sql=sql)
    if not names:
        raise cv.DataError(f"--keep needs the name of a column; there are {listed(table.column_names)}")
    for name in names:
        if name not in table.column_names:
            raise cv.DataError(
                f"--keep {name}: there is no such column; there are {listed(table.column_names)}"
            )
    return {name: table.column(name) for name in names}


def beside(kept: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return kept columns, and those of predictions behind them.

    Raises
    ------
    DataError
        If two have the same name.
    """
    for name in kept:
        if name in columns:
            raise cv.DataError(
                f"--keep {name}: the predictions have a column '{name}', too; rename it by --sql"
            )
    return {**kept, **columns}


def require_table(output: Path, *inputs: str | Path | None) -> None:
    """Refuse a table that could not be written, or that is read."""
    if str(output) != STANDARD:
        require_writable(output, *_SUFFIXES, inputs=inputs)


def write_result(output: Path, columns: Mapping[str, Any]) -> None:
    """Write a table; to standard output as CSV."""
    if str(output) != STANDARD:
        cv.data.write_table(output, columns)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.csv"
        cv.data.write_table(path, columns)
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
