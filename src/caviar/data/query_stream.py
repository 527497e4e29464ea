"""CSV files and queries, which have no random access: run once, and copied to a raw file."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._errors import DataError
from .._typing import AnyArray
from ..files.naming import named
from .columns.lost_digits import are_suspect
from .columns.other_notations import code_reason, notation_message, unread_texts
from .columns.table_numbers import (
    NUMERIC,
    chosen,
    may_lose_digits,
    not_numeric_message,
    refuse_lost_in,
    unreadable_message,
)
from .files.arrow_numbers import fill_columns
from .files.raw_file import RawFile, Workspace, write_raw
from .files.table_files import TableFiles, as_number, identifier
from .pieces import CutRows
from .tables import connected, label_of, relation_of, tables_extra, what_went_wrong

_BATCH_ROWS = 65_536


@dataclass
class _Found:
    """The entries of a column, as they were found."""

    n_bad: int = 0
    first_bad: int = 0
    text: str = ""
    n_read: int = 0
    low: float = np.inf
    high: float = -np.inf


class QueryStream:
    """The result of a query, or the rows of CSV files.

    Attributes
    ----------
    label
        What it is called in messages.
    names
        The columns that are read.
    kinds
        Name -> DuckDB's name of its type.
    """

    def __init__(
        self, files: TableFiles | None, sql: str | None, columns: Sequence[str] | None, directory: Any
    ) -> None:
        self._files, self._sql, self._directory = files, sql, directory
        self.label = label_of(files, sql)
        self._lock = threading.Lock()
        self._copy: RawFile | None = None
        self._found: dict[str, _Found] = {}
        with self._relation() as relation:
            kinds = {name: kind.id for name, kind in zip(relation.columns, relation.types, strict=True)}
        self.kinds = kinds
        self.names = tuple(chosen(tuple(kinds), columns, self.label))

    @contextmanager
    def _relation(self) -> Iterator[Any]:
        with connected(self.label) as connection:
            yield relation_of(connection, self._files, self._sql)

    @property
    def types(self) -> dict[str, str]:
        """Name -> type; all of a CSV file is text until it is read."""
        is_text = self._files is not None and self._sql is None
        return {name: "text" if is_text else self.kinds[name] for name in self.names}

    @property
    def n_rows(self) -> int:
        """Number of rows: all of them are read to find out, once."""
        return self.copied().n_rows

    def describe(self) -> str:
        """Return where the rows are, in a line."""
        rows = "rows not yet counted" if self._copy is None else f"{self.n_rows:,} rows"
        return f"{rows} x {len(self.names)} columns of {self.label}"

    def copied(self) -> RawFile:
        """Return the copy of all chosen columns, made when it is first asked for."""
        with self._lock:
            if self._copy is None:
                with self._relation() as relation:
                    self._copy = self._write(relation)
            return self._copy

    def _write(self, relation: Any) -> RawFile:
        workspace = Workspace(self._directory)
        is_single = all(self.kinds[name] == "float" for name in self.names)
        dtype = np.dtype(np.float32 if is_single else np.float64)
        self._found = {name: _Found() for name in self.names}
        texts = [name for name in self.names if self.kinds[name] == "varchar"]
        number = {name: f"n{j}" for j, name in enumerate(self.names)}
        target = "FLOAT" if is_single else "DOUBLE"
        casts = [
            f"{as_number(name, self.kinds[name], target)} AS {number[name]}"
            if self._may_be_numbers(name)
            else f"NULL::DOUBLE AS {number[name]}"
            for name in self.names
        ]
        # the text of an entry that is none of a number; that of all others is null
        casts += [
            f"CASE WHEN {as_number(name, 'varchar')} IS NULL AND lower(trim({identifier(name)})) <> 'nan' "
            f"THEN {identifier(name)} END AS t{number[name]}"
            for name in texts
        ]
        projected = relation.project(", ".join(casts))
        # older versions of DuckDB have it under another name
        reader = getattr(projected, "to_arrow_reader", None) or projected.fetch_arrow_reader
        batches = reader(_BATCH_ROWS)
        blocks = self._blocks(batches, texts, dtype)
        return write_raw(workspace.path / "rows", blocks, len(self.names), dtype, self.label, workspace)

    def _may_be_numbers(self, name: str) -> bool:
        return self.kinds[name] in NUMERIC | {"varchar", "null", "boolean"}

    def _blocks(self, batches: Any, texts: list[str], dtype: np.dtype[Any]) -> Iterator[AnyArray]:
        n_rows, n_columns = 0, len(self.names)
        for batch in self._each(batches):
            values = np.empty((n_columns, batch.num_rows), dtype)
            fill_columns(batch.columns[:n_columns], values)
            for name, column, own in zip(self.names, batch.columns, values, strict=False):
                found = self._found[name]
                found.n_read += len(column) - column.null_count
                found.low = np.fmin(found.low, np.fmin.reduce(own))
                found.high = np.fmax(found.high, np.fmax.reduce(own))
            for name, column in zip(texts, batch.columns[n_columns:], strict=True):
                self._look(self._found[name], column, n_rows)
            n_rows += batch.num_rows
            yield values.T

    def _each(self, batches: Any) -> Iterator[Any]:
        """Yield batches; what DuckDB finds wrong on the way comes as an error of Arrow."""
        try:
            yield from batches
        except (OSError, tables_extra("pyarrow").ArrowException, tables_extra("duckdb").Error) as error:
            raise DataError(f"cannot read {self.label}: {what_went_wrong(error)}") from error

    def _look(self, found: _Found, column: Any, before: int) -> None:
        n_bad = len(column) - column.null_count
        if n_bad and not found.n_bad:
            place = int(np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))[0])
            found.first_bad, found.text = before + place, column[place].as_py()
        found.n_bad += n_bad

    def rows(self, names: Sequence[str], *, is_vector: bool) -> CutRows:
        """Return the numbers of some columns.

        Raises
        ------
        DataError
            If one does not hold numbers.
        """
        copy = self.copied()
        for name in names:
            self._check(name, copy.n_rows)
        columns = tuple(self.names.index(name) for name in names)
        return CutRows(replace(copy, columns=columns if is_vector else columns[0]))

    def _check(self, name: str, n_rows: int) -> None:
        found = self._found[name]
        if not self._may_be_numbers(name):
            raise DataError(
                self._not_numeric(name, f"its type is {self.kinds[name].upper()}{self._first(name)}")
            )
        if found.n_bad:
            at = f"{named(found.text)} in {self._place(found.first_bad)}"
            with self._relation() as relation:
                texts = unread_texts(relation, self.names)
            notation = notation_message(self.label, name, at, texts)
            if notation is not None:
                raise DataError(notation)
            codes = code_reason(name, at, texts)
            if codes is not None or 2 * found.n_bad > n_rows:
                raise DataError(self._not_numeric(name, codes or f"it has {at}"))
            raise DataError(unreadable_message(self.label, name, found.n_bad, at))
        if may_lose_digits(self.kinds[name]) and are_suspect(np.array([found.low, found.high])):
            with self._relation() as relation:
                refuse_lost_in(relation, name, self.label)

    def _place(self, row: int) -> str:
        return f"row {row}" if self._files is None or self._sql is not None else self._files.place(row)

    def _first(self, name: str) -> str:
        with self._relation() as relation:
            given = identifier(name)
            found = relation.filter(f"{given} IS NOT NULL").project(f"{given}::VARCHAR").limit(1).fetchall()
        return f", and its first value {named(found[0][0])}" if found else ""

    def _not_numeric(self, name: str, why: str) -> str:
        good = [
            other
            for other in self.names
            if other != name
            and self._may_be_numbers(other)
            and self._found[other].n_read
            and not self._found[other].n_bad
        ]
        return not_numeric_message(self.label, name, why, good)
