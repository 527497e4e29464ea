"""The numbers of a relation of DuckDB, and the messages where there are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._errors import DataError, ParameterError
from ..._typing import Array
from ...files.naming import listed, named, nearest
from ..files.table_files import as_number, identifier, refuse_twins
from .lost_digits import LARGEST_WHOLE, are_suspect, lost_digits
from .other_notations import code_reason, notation_message, unread_texts

_INTEGERS = ("tinyint", "smallint", "integer", "bigint", "hugeint")
_MOST_CONDITIONS = 8
NUMERIC = {*_INTEGERS, *(f"u{name}" for name in _INTEGERS), "float", "double", "decimal"}
"""DuckDB's types of numbers."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table of finite numbers, or NaN where one is missing, with the names of its columns; estimators accept it.

    Attributes
    ----------
    values
        Shape (N, D), float64.
    columns
        Name of each column, in order.
    categories
        Name of a column of words -> the words, in order: ``values`` has their positions, from 0.
    """

    values: Array
    columns: tuple[str, ...]
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """The source of rows: a relation of DuckDB, and words for messages."""

    relation: Any
    label: str
    place: Callable[[int], str]

    def column(self, expression: str) -> Any:
        """Return one column as an Arrow array in pieces."""
        return self.relation.project(expression).to_arrow_table().column(0)


def reads_as_numbers(relation: Any, name: str) -> bool:
    """Return whether every entry of a column of texts reads as a number, unless it is missing."""
    return _reads_as_numbers(relation, name)[0]


def _reads_as_numbers(relation: Any, name: str) -> tuple[bool, float]:
    """Return whether the entries of a column of texts read as numbers, and the size of the largest."""
    number = as_number(name, "varchar")
    found = f"count({identifier(name)}), count({number}), max(abs({number}))"
    texts, numbers, size = relation.aggregate(found).fetchall()[0]
    return texts == numbers > 0, size or 0.0


def type_of_texts(relation: Any, name: str) -> str | None:
    """Return DuckDB's type for a column of texts that read as numbers, an integer only where doubles would round them.

    None if they do not read as numbers.
    """
    given = identifier(name)
    are_numbers, size = _reads_as_numbers(relation, name)
    if not are_numbers or not LARGEST_WHOLE < size < np.inf:
        return "DOUBLE" if are_numbers else None
    are_whole = f"bool_and(regexp_full_match(trim({given}), '[+-]?[0-9]+'))"
    for kind in ("BIGINT", "UBIGINT"):
        cast = f"bool_and(TRY_CAST({given} AS {kind}) IS NOT NULL) FILTER ({given} IS NOT NULL)"
        if all(relation.aggregate(f"{are_whole}, {cast}").fetchall()[0]):
            return kind
    return "DOUBLE"


def numbers_of(rows: Rows, columns: Sequence[str] | None, *, missing_ok: bool = False) -> Table:
    """Return the chosen columns as finite numbers, or NaN where one is missing, if that may be."""
    kinds = {name: kind.id for name, kind in zip(rows.relation.columns, rows.relation.types, strict=True)}
    names = chosen(list(kinds), columns, rows.label)
    other = [name for name in names if kinds[name] not in NUMERIC | {"varchar", "null"}]
    if other:
        raise _not_numeric(rows, kinds, other[0], f"its type is {kinds[other[0]].upper()}")
    casts = [f"{as_number(name, kinds[name])} AS c{j}" for j, name in enumerate(names)]
    table = rows.relation.project(", ".join(casts)).to_arrow_table()
    if table.num_rows == 0:
        raise DataError(f"{rows.label} has no rows; its columns are {listed(list(kinds))}")
    values = np.empty((table.num_rows, len(names)))
    for j, column in enumerate(table.columns):
        values[:, j] = column.to_numpy()
    for j, name in enumerate(names):
        _check_readable(rows, kinds, name, values[:, j], missing_ok=missing_ok and columns is not None)
    _check_complete(rows, names, values, missing_ok=missing_ok)
    for j, name in enumerate(names):
        if may_lose_digits(kinds[name]) and are_suspect(values[:, j]):
            refuse_lost_in(rows.relation, name, rows.label)
    return Table(values, tuple(names))


def may_lose_digits(kind: str) -> bool:
    """Whether DuckDB's numbers of a type may have more digits than double precision."""
    return kind in ("varchar", "bigint", "ubigint", "hugeint", "uhugeint", "decimal")


def refuse_lost_in(relation: Any, name: str, label: str) -> None:
    """Raise DataError if the numbers of a column lose the digits that tell them apart in double precision."""
    distinct = relation.project(identifier(name)).distinct().to_arrow_table().column(0)
    found = lost_digits(distinct.to_pylist())
    if found is not None:
        raise DataError(f"{label}: column {named(name)} {found}")


def chosen(available: Sequence[str], columns: Sequence[str] | None, label: str) -> list[str]:
    """Return the names of columns that are asked for, all by default; refuse those that a table does not have."""
    if columns is None:
        return list(available)
    if isinstance(columns, str):
        raise ParameterError(f"columns must be a list of names; write columns=[{columns!r}]")
    if not columns:
        raise ParameterError("expected the name of at least one column; got none")
    refuse_twins(columns, "the choice of columns")
    for name in columns:
        if name not in available:
            close = nearest(name, available)
            hint = f" Did you mean {named(close)}?" if close else ""
            if close and "," in close:
                hint += f" On the command line a name with a comma is in double quotes: '\"{close}\"'"
            raise DataError(
                f"{label} has no column {named(name)}; its columns are {listed(available)}.{hint}"
            )
    return list(columns)


def _check_readable(
    rows: Rows, kinds: Mapping[str, str], name: str, values: Array, *, missing_ok: bool
) -> None:
    """Raise DataError if a column holds something else than numbers; all may be missing in one that was asked for."""
    bad = np.flatnonzero(np.isnan(values))
    if len(bad) and kinds[name] == "varchar":
        texts = rows.column(identifier(name)).take(bad).to_pylist()
        unreadable = [
            (int(row), text)
            for row, text in zip(bad, texts, strict=True)
            if text is not None and text.strip().lower() != "nan"
        ]
        if unreadable:
            row, text = unreadable[0]
            at = f"{named(text)} in {rows.place(row)}"
            texts = unread_texts(rows.relation, list(kinds))
            notation = notation_message(rows.label, name, at, texts)
            if notation is not None:
                raise DataError(notation)
            codes = code_reason(name, at, texts)
            if codes is not None or 2 * len(unreadable) > len(values):
                raise _not_numeric(rows, kinds, name, codes or f"it has {at}")
            raise DataError(unreadable_message(rows.label, name, len(unreadable), at))
    if len(bad) == len(values) and not missing_ok:
        raise _not_numeric(rows, kinds, name, "all its values are missing")


def _check_complete(rows: Rows, names: Sequence[str], values: Array, *, missing_ok: bool) -> None:
    """Raise DataError, naming the first row, if a value is infinite or missing."""
    finite = np.isfinite(values) | (np.isnan(values) if missing_ok else False)
    if finite.all():
        return
    row, j = (int(index) for index in np.argwhere(~finite)[0])
    count = int(np.sum(~finite.all(axis=1)))
    what = "is missing" if np.isnan(values[row, j]) else "is infinite"
    incomplete = [identifier(name) for k, name in enumerate(names) if not finite[:, k].all()]
    where = " AND ".join(f"isfinite({name}::DOUBLE)" for name in incomplete[:_MOST_CONDITIONS])
    where += " AND ..." * (len(incomplete) > _MOST_CONDITIONS)
    rule = "no number may be infinite" if missing_ok else "every row needs a finite number in each column"
    raise DataError(
        f"{rows.label}: {rule}; {count} of {len(values)} rows {'have one' if missing_ok else 'lack one'}, and the "
        f"first is {rows.place(row)}, where {named(names[j])} {what}. To leave them out, read the query (sql=, --sql) "
        f"SELECT * FROM data WHERE {where}"
    )


def _not_numeric(rows: Rows, kinds: Mapping[str, str], name: str, why: str) -> DataError:
    """Return the error about a column without numbers, which names the columns that have some."""
    good = [
        other
        for other, kind in kinds.items()
        if other != name
        and (kind in NUMERIC or (kind == "varchar" and reads_as_numbers(rows.relation, other)))
    ]
    return DataError(not_numeric_message(rows.label, name, why, good))


def not_numeric_message(label: str, name: str, why: str, good: Sequence[str]) -> str:
    """Return the message about a column without numbers; ``good`` columns have numbers."""
    told = listed(good)
    if not good:
        choice = "No other column holds numbers"
    elif told == ", ".join(good):
        choice = f"Choose columns of numbers: columns={list(good)!r}, on the command line --columns {','.join(good)}"
    else:
        choice = f"{len(good)} other columns hold numbers: {told}. Choose by columns=, on the command line --columns"
    return f"{label}: column {named(name)} does not hold numbers: {why}. {choice}"


def unreadable_message(label: str, name: str, count: int, at: str) -> str:
    """Return the message about a column of numbers with ``count`` other entries, the first of them ``at`` a place."""
    entries = "one entry" if count == 1 else f"{count} entries"
    return (
        f"{label}: column {named(name)} has {entries} that cannot be read as a number: {at}. Correct the data, or "
        f"choose other columns"
    )
