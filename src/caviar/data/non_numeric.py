"""Columns that hold no numbers: left out of a table, or turned into numbers: 0 and 1 for each value, or its place."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._errors import DataError, ParameterError
from ..files.naming import listed, named
from .columns.other_notations import notation_message, unread_texts
from .columns.table_numbers import NUMERIC, chosen, reads_as_numbers
from .files.table_files import find_files, identifier, literal, table_of
from .tables import connected, relation_of

MOST_CATEGORIES = 50
"""Values of a column beyond which it is not taken for one of categories, unless the user says that it is."""
_MOST_TOLD = 5


@dataclass(frozen=True)
class NumericQuery:
    """A query whose result holds only numbers.

    Attributes
    ----------
    sql
        The query; in it, ``data`` is the table that it is about.
    columns
        Names of the columns of its result.
    dropped
        Names of the columns that were left out.
    categories
        Name of each column that was turned into indicators, or into the places of its values -> these values.
    """

    sql: str
    columns: tuple[str, ...]
    dropped: tuple[str, ...]
    categories: dict[str, list[str]]


def numeric_query(
    source: str | os.PathLike[str] | None,
    non_numeric: str,
    *,
    columns: Sequence[str] | None = None,
    sql: str | None = None,
) -> NumericQuery:
    """Return a query for the numbers of a table that has other columns as well.

    Parameters
    ----------
    source
        As for :func:`caviar.data.read_table`.
    non_numeric
        ``"drop"`` leaves out columns without numbers. ``"one-hot"`` replaces each by a column ``name=value`` for each
        of its values, with 1 if the row has the value, 0 if it has another, and missing if it has none.
        ``"categorical"`` replaces each value by its position among the values of the column, 0, 1, ...
    columns
        Names of the columns to read; by default all.
    sql
        A query whose result is the table.

    Raises
    ------
    DataError
        If no column of numbers would remain, or a column that is not numeric and is kept has more than 50 values.
    ParameterError
        If ``non_numeric`` is not one of these.

    Examples
    --------
    >>> found = numeric_query(None, "one-hot", sql="SELECT 1.5 AS a, 'x' AS kind UNION ALL SELECT 2, 'y'")
    >>> found.columns
    ('a', 'kind=x', 'kind=y')
    """
    if non_numeric not in {"drop", "one-hot", "categorical"}:
        raise ParameterError(f"non_numeric must be 'drop', 'one-hot' or 'categorical'; got {non_numeric!r}")
    files = None if source is None else find_files(source)
    base = "SELECT * FROM data" if sql is None else sql
    with connected("the table") as connection:
        relation = relation_of(connection, files, base)
        names = chosen(relation.columns, columns, "the table")
        kinds = {name: kind.id for name, kind in zip(relation.columns, relation.types, strict=True)}
        other = [
            name
            for name in names
            if kinds[name] not in NUMERIC
            and not (kinds[name] == "varchar" and reads_as_numbers(relation, name))
        ]
        categories = {name: _values(relation, name) for name in other if non_numeric != "drop"}
        n_rows = len(relation.limit(1).fetchall())
    label = "the result of the query" if files is None or sql is not None else str(source)
    empty = [name for name, values in categories.items() if not values]
    dropped = [name for name in other if name not in categories or name in empty]
    categories = {name: values for name, values in categories.items() if values}
    kept = [name for name in names if name not in dropped]
    if not kept:
        if not n_rows:
            raise DataError(f"{label} has no rows; its columns are {listed(names)}")
        why = "no column holds numbers" if non_numeric == "drop" else "all values are missing"
        raise DataError(f"{label}: {why}; its columns are {listed(names)}")
    if non_numeric == "categorical":
        codes = category_query(kept, categories, sql=sql)
        return NumericQuery(codes, tuple(kept), tuple(dropped), categories)
    return NumericQuery(
        indicator_query(kept, categories, sql=sql),
        tuple(new for name in kept for new in _indicators(name, categories)),
        tuple(dropped),
        categories,
    )


def indicator_query(
    columns: Sequence[str], categories: Mapping[str, Sequence[str]], *, sql: str | None = None
) -> str:
    """Return the query that replaces some columns by indicators.

    A value that is not among the categories makes all indicators of its row missing.

    Parameters
    ----------
    columns
        Names of the columns to read, those with categories among them.
    categories
        Name -> values.
    sql
        A query whose result is the table, in place of ``data``.
    """
    parts = []
    for name in columns:
        if name not in categories:
            parts.append(identifier(name))
            continue
        for category, new in zip(categories[name], _indicators(name, categories), strict=True):
            # not by IN: with more than four values it may lose the order of the rows
            known = " ".join(
                f"WHEN {literal(other)} THEN {float(other == category)}::DOUBLE" for other in categories[name]
            )
            parts.append(f"CASE {_as_text(name)} {known} END AS {identifier(new)}")
    return f"SELECT {', '.join(parts)} FROM {table_of(sql)}"


def category_query(
    columns: Sequence[str], categories: Mapping[str, Sequence[str]], *, sql: str | None = None
) -> str:
    r"""Return the query that replaces each value of some columns by its number, 0, 1, ...

    A value that is not among the categories becomes missing; :func:`unknown_values` lists such values.

    Parameters
    ----------
    columns
        Names of the columns to read, those with categories among them.
    categories
        Name -> values.
    sql
        A query whose result is the table, in place of ``data``.

    Examples
    --------
    >>> query = category_query(["a", "kind"], {"kind": ["x", "y"]})
    >>> query[query.index("WHEN 'x'") :]
    'WHEN \'x\' THEN 0 WHEN \'y\' THEN 1 END AS "kind" FROM data'
    """
    parts = []
    for name in columns:
        places = (
            f"WHEN {literal(value)} THEN {place}" for place, value in enumerate(categories.get(name, ()))
        )
        case = f"CASE {_as_text(name)} {' '.join(places)} END AS {identifier(name)}"
        parts.append(case if name in categories else identifier(name))
    return f"SELECT {', '.join(parts)} FROM {table_of(sql)}"


def unknown_values(
    source: str | os.PathLike[str] | None, categories: Mapping[str, Sequence[str]], *, sql: str | None = None
) -> dict[str, tuple[list[str], int]]:
    """Return examples of values that are not among the categories, for each column, and the rows that have any.

    Parameters
    ----------
    source
        As for :func:`caviar.data.read_table`.
    categories
        Name of a column -> the values that are known.
    sql
        A query whose result is the table.

    Examples
    --------
    >>> unknown_values(None, {"kind": ["x"]}, sql="SELECT unnest(['x', 'y', 'y', NULL]) AS kind")
    {'kind': (['y'], 2)}
    """
    files = None if source is None else find_files(source)
    found = {}
    with connected("the table") as connection:
        relation = relation_of(connection, files, "SELECT * FROM data" if sql is None else sql)
        for name, values in categories.items():
            known = ", ".join(literal(value) for value in values)
            other = relation.project(f"{_as_text(name)} AS v").filter(f"v IS NOT NULL AND v NOT IN ({known})")
            rows = other.aggregate("v, count(*) AS n").order("v").fetchall()
            if rows:
                found[name] = ([value for value, _ in rows[:_MOST_TOLD]], sum(number for _, number in rows))
    return found


def _as_text(name: str) -> str:
    """Return the expression of SQL for an entry as a text: the number 2 is not 2.0, as the text 2.0 is."""
    given = f"CAST({identifier(name)} AS VARCHAR)"
    is_float = f"typeof({identifier(name)}) IN ('DOUBLE', 'FLOAT')"
    return f"(CASE WHEN {is_float} THEN regexp_replace({given}, '[.]0$', '') ELSE {given} END)"


def _indicators(name: str, categories: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what a column becomes."""
    return [f"{name}={value}" for value in categories[name]] if name in categories else [name]


def _values(relation: Any, name: str) -> list[str]:
    """Return the values of a column in their order."""
    rows = relation.project(f"{_as_text(name)} AS v").filter("v IS NOT NULL").distinct().order("v")
    values = [row[0] for row in rows.limit(MOST_CATEGORIES + 1).fetchall()]
    if len(values) > MOST_CATEGORIES:
        notation = notation_message(
            "the table", name, f"it has {named(values[0])}", unread_texts(relation, [name])
        )
        raise DataError(notation or too_many_values(name))
    return values


def too_many_values(name: str) -> str:
    """Return the message about a column with too many values for categories."""
    return (
        f"column {named(name)} has more than {MOST_CATEGORIES} different values, too many for categories; "
        f"leave it out: choose the other columns (columns=, --columns)"
    )
