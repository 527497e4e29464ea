"""Tables of numbers: read from CSV and Parquet files and from DuckDB queries, and written to files.

The columns are read by DuckDB and handed over by Arrow; both come with the extra ``tables`` and are imported when
they are first needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

from .._errors import DataError, ParameterError
from .._extras import install_command
from .._typing import AnyArray
from ..files.whole import replacing
from .columns.table_numbers import Rows, Table, chosen, numbers_of, type_of_texts
from .files.parquet_pieces import read_footer
from .files.table_files import ParquetFiles, TableFiles, as_number, find_files, identifier, refuse_twins

_LONGEST = 200
_ADVICE = ("Possible", "Please try", "  file =")
_KIND_OF_ERROR = re.compile(r"^(Invalid Input|Parser|Binder|IO|Catalog|Conversion) Error: ")
_TEXTS = (
    "texts, as columns of codes such as 007 are. If they are numbers, cast them in the query, as school::DOUBLE for a "
    "column school"
)
_OF_DUCKDB = (
    (
        r"^CSV Error on Line: (\d+);.*Expected Number of Columns: (\d+) Found: (\d+)",
        r"line \1 has another number of columns, \3, than the lines before it, \2. Complete the line, or put an "
        r"entry that contains the delimiter in double quotes",
    ),
    (
        r"^CSV Error on Line: (\d+);.*Value with unterminated quote found",
        r"a double quote in line \1 is not closed. Close it, or write it twice if it belongs to the entry",
    ),
    (
        r"^No function matches the given name and argument types '([^'(]*)\(([^)']*VARCHAR[^)']*)\)'",
        rf"\1(\2) does not exist: VARCHAR are {_TEXTS}",
    ),
    (
        r"^Cannot compare values of type (VARCHAR and type \w+|\w+ and type VARCHAR)\b",
        rf"\1 cannot be compared: VARCHAR are {_TEXTS}",
    ),
)
"""What DuckDB says of a line of a CSV file, and of texts in a query; and what is said in its place."""


def read_table(
    source: str | os.PathLike[str] | None = None,
    *,
    columns: Sequence[str] | None = None,
    sql: str | None = None,
    missing_ok: bool = False,
) -> Table:
    """Return the numbers of a table.

    Parameters
    ----------
    source
        A CSV or Parquet file, a folder of Parquet files, or a pattern such as ``'2024-*.csv'``. The first line of a CSV
        file contains the names of the columns, unless all its entries are numbers.
    columns
        Names of the columns to read, in this order; by default all.
    sql
        A DuckDB query whose result is read instead. In it, ``data`` is the table of ``source``, if one is given.
    missing_ok
        Whether values may be missing; they are then NaN.

    Raises
    ------
    DataError
        If the file or a column does not exist, a column does not contain numbers, or a value is infinite, unreadable or
        (unless ``missing_ok``) missing. The message names the column and the row.
    ParameterError
        If neither a source nor a query is given.
    ImportError
        If DuckDB or Arrow is missing.

    Examples
    --------
    >>> read_table(sql="SELECT 1 AS a, 2.5 AS b UNION ALL SELECT 3, 4").values
    array([[1. , 2.5],
           [3. , 4. ]])
    """
    files = _files_of("read_table", source, sql)
    with connected(label_of(files, sql)) as connection:
        if isinstance(files, ParquetFiles):
            # DuckDB would give the second of two columns of one name another name
            for path in files.paths:
                refuse_twins(read_footer(path)[1].names, str(path))
        if files is None or sql is not None:
            rows = _result_of(connection, str(sql), files)
        else:
            rows = Rows(connection.sql(files.query), files.label, files.place)
        return numbers_of(rows, columns, missing_ok=missing_ok)


def read_columns(
    source: str | os.PathLike[str] | None = None,
    *,
    columns: Sequence[str] | None = None,
    sql: str | None = None,
) -> Any:
    """Return a table with all its columns, including texts, as an Arrow table.

    A column of a CSV file holds numbers if all its entries are numbers, none of them a code of three digits or more
    with zeros in front: ``007`` and the postal code ``01234`` are texts, the hour ``07`` is a number.

    Parameters
    ----------
    source, columns, sql
        As for :func:`read_table`.

    Raises
    ------
    DataError
        If the file or a column does not exist.

    Examples
    --------
    >>> read_columns(sql="SELECT 1.5 AS a, 'x' AS kind").column_names
    ['a', 'kind']
    """
    files = _files_of("read_columns", source, sql)
    with connected(label_of(files, sql)) as connection:
        relation = relation_of(connection, files, "SELECT * FROM data" if sql is None else sql)
        return relation.to_arrow_table().select(chosen(relation.columns, columns, "the table"))


def _files_of(reader: str, source: str | os.PathLike[str] | None, sql: str | None) -> TableFiles | None:
    """Return the files to read; None where a query needs none."""
    if source is None and sql is None:
        raise ParameterError(f"{reader} takes a file, or a query sql=; got neither")
    tables_extra("duckdb")
    return None if source is None else find_files(source)


def label_of(files: TableFiles | None, sql: str | None) -> str:
    """Return what is read, in messages."""
    return files.label if files is not None and sql is None else "the query"


def write_table(path: str | os.PathLike[str], columns: Mapping[str, AnyArray]) -> None:
    """Write a table to a CSV or Parquet file, according to the suffix of its name.

    Parameters
    ----------
    path
        Path that ends with ``.csv``, ``.parquet`` or ``.pq``. If writing fails, no partial file is left.
    columns
        Name -> array of shape (N,).

    Raises
    ------
    DataError
        If the path has another suffix, the columns differ in length, or the file cannot be written.
    ImportError
        If Arrow is missing.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in {".csv", ".parquet", ".pq"}:
        raise DataError(
            f"cannot write {path}: its name must end with .csv or .parquet, to say in which format"
        )
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns of a table must have one length; got {lengths}")
    table = tables_extra("pyarrow").table(dict(columns))
    with replacing(path) as file:
        if suffix == ".csv":
            tables_extra("pyarrow.csv").write_csv(table, file)
        else:
            tables_extra("pyarrow.parquet").write_table(table, file)


def tables_extra(module: str) -> Any:
    """Return a module of the extra ``tables``."""
    try:
        return import_module(module)
    except ImportError as error:
        message = f"tables need DuckDB and Arrow ({error}); install them by {install_command('tables')}"
        raise ImportError(message) from error


@contextmanager
def connected(label: str) -> Iterator[Any]:
    """Give a connection to DuckDB, whose errors about ``label`` become DataErrors, without its advice for itself."""
    duckdb = tables_extra("duckdb")
    tables_extra("pyarrow")
    # Reading a table must not install anything.
    settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(config=settings)
    # a bar would be drawn between what a program prints
    connection.execute("SET enable_progress_bar = false")
    try:
        yield connection
    except duckdb.Error as error:
        raise DataError(f"cannot read {label}: {what_went_wrong(error)}") from error
    finally:
        connection.close()


def what_went_wrong(error: Exception) -> str:
    """Return the text of an error of DuckDB, also one that came by Arrow, without its advice."""
    lines = takewhile(lambda line: not line.startswith(_ADVICE), str(error).splitlines())
    # a line of carets points at the line before, which is no longer above it
    text = "; ".join(line.strip() for line in lines if line.strip(" ^"))
    text = _KIND_OF_ERROR.sub("", text)
    for pattern, plain in _OF_DUCKDB:
        if found := re.search(pattern, text):
            return found.expand(plain)
    # DuckDB repeats a line as it is, however long, and says what is wrong with it at the end
    return text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]} ... {text[-_LONGEST:]}"


def relation_of(connection: Any, files: TableFiles | None, sql: str | None) -> Any:
    """Return the rows of files, or of a query in which the table of the files is called data; nothing is run yet."""
    if sql is None:
        assert files is not None
        return connection.sql(files.query)
    if files is not None:
        relation = connection.sql(files.query)
        # What is a number throughout is one for the query too: CSV files are read as text. Parquet files have types.
        is_typed = isinstance(files, ParquetFiles)
        kinds = {
            name: type_of_texts(relation, name) if kind.id == "varchar" and not is_typed else None
            for name, kind in zip(relation.columns, relation.types, strict=True)
        }
        columns = ", ".join(
            identifier(name) if kind is None else f"{as_number(name, 'varchar', kind)} AS {identifier(name)}"
            for name, kind in kinds.items()
        )
        relation.project(columns).create_view("data")
    result = connection.sql(sql)
    if result is None:
        raise DataError("expected a query that gives a table, such as SELECT a, b FROM data")
    refuse_twins(result.columns, "the query")
    return result


def _result_of(connection: Any, sql: str, files: TableFiles | None) -> Rows:
    """Return the result of a query, in memory."""
    table = relation_of(connection, files, sql).to_arrow_table()
    return Rows(connection.from_arrow(table), "the result of the query", lambda row: f"row {row}")
