"""Tables on disk that are read while a fit goes over them, a block at a time.

Whole numbers and decimals of Parquet files whose digits are lost in double precision: refused when they are read.
"""

from __future__ import annotations

import math
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, overload
from urllib.parse import unquote

import numpy as np

from .._errors import DataError, ParameterError
from .._tables import html_of
from .._typing import AnyArray
from ..files.naming import listed, named
from .columns.lost_digits import are_suspect, lost_digits
from .columns.table_numbers import chosen, not_numeric_message
from .files.arrow_numbers import number_type
from .files.copied_pieces import CopiedPieces, Copy
from .files.parquet_pieces import ParquetPieces, read_footer
from .files.raw_file import default_directory
from .files.table_files import ParquetFiles, find_files, refuse_twins
from .pieces import CutRows, PieceRows
from .query_stream import QueryStream
from .tables import tables_extra

_LARGEST_PIECE = 32 * 2**20
"""Bytes of a row group beyond which the table is copied rather than that a thread holds one."""
_SHARE_OF_DISK = 0.25
"""Largest share of the free space on disk that is taken without being asked for."""


def scan(
    source: str | os.PathLike[str] | None = None,
    *,
    columns: Sequence[str] | None = None,
    sql: str | None = None,
    copy: bool | None = None,
    directory: str | os.PathLike[str] | None = None,
) -> LazyTable:
    """Return a table on disk that is read in blocks of rows; a fit uses bounded memory.

    Parameters
    ----------
    source
        A CSV or Parquet file, a folder of Parquet files (with its subfolders), or a pattern such as ``'2024-*.csv'``.
        Folder names like ``year=2024`` add a column. The first line of a CSV file contains the names of the columns,
        unless all its entries are numbers.
    columns
        Names of the columns to read, in this order; by default all.
    sql
        A DuckDB query whose result is the table. In it, ``data`` is the table of ``source``, if one is given. It may
        also read files directly: ``select a, b from 'flow/*.parquet' where a > 0``.
    copy
        Whether the numbers of Parquet files are first copied to a temporary file, which makes each pass over the rows
        several times faster. By default they are copied if that takes at most a quarter of the free disk space, or if a
        row group is too large for memory. CSV files and queries are always copied, because they can only be read from
        the beginning.
    directory
        Folder for the temporary files; by default ``TMPDIR``, or /var/tmp. They are deleted with the table, or when
        Python ends.

    Returns
    -------
    LazyTable
        A table for :meth:`caviar.Model.fit`, whole or by columns, and for the estimators.

    Raises
    ------
    DataError
        If the file or a column does not exist, or files have different columns.
    ParameterError
        If neither a source nor a query is given.
    ImportError
        If DuckDB or Arrow is missing.

    Notes
    -----
    Null, NaN, and in CSV files an empty entry or NA, are missing values. Columns of float32 are read as float32 if all
    columns read together are; all other numbers are read as float64. A fit gives the same result to the bit as with the
    same numbers in memory, except with ``schedule="stochastic"``, whose batches depend on how rows are stored. Files
    must not change while they are used; a changed file raises DataError.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import caviar as cv
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "faithful.parquet"
    >>> faithful = cv.datasets.load_faithful()
    >>> cv.data.write_table(path, dict(zip(faithful.columns, faithful.values.T)))
    >>> table = cv.scan(path)
    >>> table.columns, table.n_rows
    (('eruptions', 'waiting'), 272)
    >>> cv.BayesianGaussianMixture(2, random_state=0).fit(table).means_.round(1)
    array([[ 2. , 54.5],
           [ 4.3, 80. ]])
    >>> folder.cleanup()
    """
    if source is None and sql is None:
        raise ParameterError("scan takes a file, a folder or a pattern, or a query sql=; got none")
    tables_extra("pyarrow")
    files = None if source is None else find_files(source)
    if isinstance(files, ParquetFiles) and sql is None:
        origin: _Origin = _ParquetOrigin(files, source, copy, directory)
    else:
        origin = QueryStream(files, sql, columns, directory)
    return LazyTable(origin, tuple(chosen(origin.names, columns, origin.label)))


class _Made:
    """The rows that were made of columns of a table: who asks again shares the copy that may belong to them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rows: dict[tuple[tuple[str, ...], bool], PieceRows] = {}


class LazyTable:
    """A table on disk that is read in blocks of rows, as :func:`caviar.scan` returns it.

    A column ``table["a"]`` has shape (N,); several columns ``table[["a", "b"]]``, and the table itself, have shape (N,
    D).
    """

    def __init__(self, origin: _Origin, columns: tuple[str, ...], made: _Made | None = None) -> None:
        self._origin = origin
        self._columns = columns
        self._made = _Made() if made is None else made

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._columns

    @property
    def types(self) -> dict[str, str]:
        """Name of each column -> its type as stored."""
        return {name: self._origin.types[name] for name in self._columns}

    @property
    def n_rows(self) -> int:
        """Number of rows. CSV files and queries are read once to count them."""
        return self._origin.n_rows

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return self.n_rows, len(self._columns)

    def __len__(self) -> int:
        return self.n_rows

    @overload
    def __getitem__(self, key: str) -> PieceRows: ...

    @overload
    def __getitem__(self, key: list[str] | tuple[str, ...]) -> LazyTable: ...

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            (name,) = chosen(self._columns, [key], self._origin.label)
            return self._read((name,), is_vector=False)
        if not isinstance(key, (list, tuple)) or not all(isinstance(name, str) for name in key):
            raise ParameterError(
                f"a column of a table is chosen by its name, several by a list of names; got {key!r}. Rows are chosen "
                f"by a query: scan(..., sql='select ... from data where ...')"
            )
        names = tuple(chosen(self._columns, list(key), self._origin.label))
        return LazyTable(self._origin, names, self._made)

    def rows(self) -> PieceRows:
        """Return the numbers of all columns as rows, shape (N, D), which are read in blocks.

        Raises
        ------
        DataError
            If a column does not contain numbers. The message names the column, its type and its first value.
        """
        return self._read(self._columns, is_vector=True)

    def _read(self, names: tuple[str, ...], *, is_vector: bool) -> PieceRows:
        with self._made.lock:
            if (names, is_vector) not in self._made.rows:
                self._made.rows[names, is_vector] = self._made_anew(names, is_vector=is_vector)
            return self._made.rows[names, is_vector]

    def _made_anew(self, names: tuple[str, ...], *, is_vector: bool) -> PieceRows:
        rows = self._origin.rows(names, is_vector=is_vector)
        if not len(rows):
            raise DataError(f"{self._origin.label} has no rows; its columns are {listed(self._origin.names)}")
        return rows

    def to_numpy(self) -> AnyArray:
        """Return all numbers as an array in memory, shape (N, D)."""
        return self.rows().to_numpy()

    def to_arrays(self) -> dict[str, AnyArray]:
        """Return the columns as arrays in memory: name -> array of shape (N,)."""
        return {name: self[name].to_numpy() for name in self._columns}

    def _repr_html_(self) -> str:
        """Return the columns with their types, for a notebook."""
        return html_of(f"LazyTable: {self._origin.describe()}", [("column", "type"), *self.types.items()])

    def __repr__(self) -> str:
        width = max(map(len, self._columns))
        types = self.types
        lines = [f"  {name:<{width}}  {types[name]}" for name in self._columns]
        return "\n".join([f"LazyTable: {self._origin.describe()}", *lines])


class _ParquetOrigin:
    """Parquet files, and the keys in the names of their folders."""

    def __init__(self, files: ParquetFiles, source: Any, copy: bool | None, directory: Any) -> None:
        self.label, self._copy, self._directory = files.label, copy, directory
        footers = [read_footer(path) for path in files.paths]
        self._files = [file for file, _ in footers]
        self._types = [dict(zip(schema.names, schema.types, strict=True)) for _, schema in footers]
        self._first = self._types[0]
        for (file, schema), types in zip(footers, self._types, strict=True):
            refuse_twins(schema.names, str(file.path))
            self._refuse_other_columns(self._files[0].path, file.path, types)
        self._told = [
            {name: value for name, value in own.items() if name not in self._first}
            for own in _partitions([_keys(path, source) for path in files.paths])
        ]
        self.names = (*self._first, *self._told[0])

    def _refuse_other_columns(self, first: Path, path: Path, kinds: Mapping[str, Any]) -> None:
        other = [*(n for n in self._first if n not in kinds), *(n for n in kinds if n not in self._first)]
        if other:
            has, lacks = (path, first) if other[0] in kinds else (first, path)
            raise DataError(
                f"expected the same columns in every file; {has} has {named(other[0])}, {lacks} does not. To read them "
                f"together, with missing values, query them: "
                f"sql=\"select * from read_parquet('...', union_by_name=true)\""
            )

    @property
    def types(self) -> Mapping[str, str]:
        stored = {
            name: " or ".join(dict.fromkeys(str(own[name]) for own in self._types)) for name in self._first
        }
        of_folder = {
            name: f"{'text' if isinstance(value, str) else 'number'} of the folder"
            for name, value in self._told[0].items()
        }
        return {**stored, **of_folder}

    @property
    def n_rows(self) -> int:
        return sum(sum(file.lengths) for file in self._files)

    def describe(self) -> str:
        n_files = "" if len(self._files) == 1 else f", {len(self._files)} files"
        return f"{self.n_rows:,} rows x {len(self.names)} columns of {self.label}{n_files}"

    def rows(self, names: tuple[str, ...], *, is_vector: bool) -> PieceRows:
        dtype = np.result_type(*(self._number_type(name) for name in names))
        for name in names:
            if str(self._first.get(name)).startswith(("int64", "uint64", "decimal")):
                refuse_lost_in_files([file.path for file in self._files], name, self.label)
        stored = [
            replace(file, partition=tuple((name, float(told[name])) for name in names if name in told))
            for file, told in zip(self._files, self._told, strict=True)
        ]
        groups = tuple(
            (file, group) for file in stored for group, length in enumerate(file.lengths) if length
        )
        found = ParquetPieces(self.label, groups, names if is_vector else names[0], dtype)
        if not self._wants_copy(found):
            return PieceRows(found)
        return CutRows(CopiedPieces(Copy(found, self._directory)))

    def _wants_copy(self, pieces: ParquetPieces) -> bool:
        if self._copy is not None:
            if not self._copy and pieces.largest > _LARGEST_PIECE:
                raise DataError(
                    f"{self.label} has a row group of {max(pieces.lengths):,} rows, {pieces.largest / 2**20:.0f} MiB "
                    f"in the columns that are read, which each thread would hold; leave copy=False out, or write the "
                    f"file with smaller row groups"
                )
            return self._copy
        if pieces.largest > _LARGEST_PIECE:
            return True
        size = self.n_rows * math.prod(pieces.event_shape) * pieces.dtype.itemsize
        folder = default_directory() if self._directory is None else self._directory
        return size <= _SHARE_OF_DISK * shutil.disk_usage(folder).free

    def _number_type(self, name: str) -> np.dtype[Any]:
        if name not in self._first:
            for file, told in zip(self._files, self._told, strict=True):
                if isinstance(told[name], str):
                    raise self._not_numeric(name, f"the folder of {file.path} has {named(str(told[name]))}")
            return np.dtype(np.float64)
        found = [number_type(own[name]) for own in self._types]
        for place, kind in enumerate(found):
            if kind is None:
                raise self._not_numeric(
                    name, f"its type is {self._types[place][name]}{self._first_value(place, name)}"
                )
        return np.result_type(*cast("list[np.dtype[Any]]", found))

    def _first_value(self, place: int, name: str) -> str:
        parquet = tables_extra("pyarrow.parquet")
        with parquet.ParquetFile(self._files[place].path) as file:
            for batch in file.iter_batches(1_024, columns=[name], use_threads=False):
                values = [value for value in batch.column(0) if value.is_valid]
                if values:
                    return f", and its first value {named(str(values[0].as_py()))}"
        return ""

    def _not_numeric(self, name: str, why: str) -> DataError:
        good = [
            other
            for other in self.names
            if other != name
            and (
                all(not isinstance(told[other], str) for told in self._told)
                if other not in self._first
                else all(number_type(own[other]) is not None for own in self._types)
            )
        ]
        return DataError(not_numeric_message(self.label, name, why, good))


_Origin = QueryStream | _ParquetOrigin
"""The origin of the columns of a table."""


def _keys(path: Path, source: Any) -> dict[str, str]:
    """Return the keys in the folders of a file, as in ``year=2024/part.parquet``."""
    given = Path(source)
    inside = path.relative_to(given) if given.is_dir() else path
    pairs = (part.split("=", 1) for part in inside.parts[:-1] if "=" in part)
    return {key: unquote(value) for key, value in pairs if key}


def _partitions(keys: Sequence[Mapping[str, str]]) -> list[dict[str, float | str]]:
    """Return the keys in the folders of each file, as numbers if all of them are.

    Raises
    ------
    DataError
        If the folders of some files tell less than those of others.
    """
    for own in keys:
        if list(own) != list(keys[0]):
            raise DataError(
                f"expected folders with the same keys, as year=2024; some have {listed(list(keys[0])) or 'none'}, "
                f"others {listed(list(own)) or 'none'}. Scan a pattern that matches one kind only"
            )
    numbers = {name: [_number(own[name]) for own in keys] for name in keys[0]}
    return [
        {name: own[name] if None in numbers[name] else cast("float", numbers[name][place]) for name in own}
        for place, own in enumerate(keys)
    ]


def _number(text: str) -> float | None:
    if text == "__HIVE_DEFAULT_PARTITION__":
        return math.nan
    try:
        return float(text)
    except ValueError:
        return None


def refuse_lost_in_files(paths: Sequence[Path], name: str, label: str) -> None:
    """Refuse a column of Parquet files whose values are the same, or coarse, in double precision.

    Only where the statistics in the footers say that they are large, or close together, are the values read.

    Raises
    ------
    DataError
        If so.
    """
    ends = [end for path in paths for end in _ends(path, name)]
    if None not in ends and (not ends or not are_suspect(np.array(ends, dtype=np.float64))):
        return
    compute, distinct = tables_extra("pyarrow.compute"), set[Any]()
    for path in paths:
        with tables_extra("pyarrow.parquet").ParquetFile(path) as file:
            for batch in file.iter_batches(columns=[name], use_threads=False):
                distinct.update(compute.unique(batch.column(0)).to_pylist())
    found = lost_digits(distinct)
    if found is not None:
        raise DataError(f"{label}: column {named(name)} {found}")


def _ends(path: Path, name: str) -> Iterator[Any]:
    """Yield smallest and largest value of a column in each row group, None where the file does not say them."""
    with tables_extra("pyarrow.parquet").ParquetFile(path) as file:
        metadata = file.metadata
        place = metadata.schema.names.index(name)
        for group in range(metadata.num_row_groups):
            column = metadata.row_group(group).column(place)
            found = column.statistics
            if found is not None and found.null_count == column.num_values:
                continue
            yield from (None,) if found is None or not found.has_min_max else (found.min, found.max)
