"""Columns that hold no numbers: left out of a table, or turned into a column of 0 and 1 for each of their values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._errors import DataError, ParameterError
from .table_files import find_files, identifier, literal
from .table_numbers import NUMERIC, chosen, reads_as_numbers
from .tables import connected, reading, relation_of, tables_extra

__all__ = ["NumericQuery", "indicator_query", "numeric_query"]

_MOST_CATEGORIES = 50


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
        Name of each column that was turned into indicators -> its values.
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
        ``"drop"`` leaves columns without numbers out; ``"one-hot"`` turns each into a column ``name=value`` for each of
        its values, 1 where the row has it, 0 where it has another, missing where it has none.
    columns
        Names of the columns to read; by default all.
    sql
        A query whose result is the table.

    Raises
    ------
    DataError
        If no column of numbers would remain, or a column to turn into indicators has more than 50 values.
    ParameterError
        If ``non_numeric`` is neither.

    Examples
    --------
    >>> found = numeric_query(None, "one-hot", sql="SELECT 1.5 AS a, 'x' AS kind UNION ALL SELECT 2, 'y'")
    >>> found.columns
    ('a', 'kind=x', 'kind=y')
    """
    if non_numeric not in {"drop", "one-hot"}:
        raise ParameterError(f"non_numeric must be 'drop' or 'one-hot'; got {non_numeric!r}")
    duckdb = tables_extra("duckdb")
    files = None if source is None else find_files(source)
    base = "SELECT * FROM data" if sql is None else sql
    with connected(duckdb) as connection, reading(duckdb, "the table"):
        relation = relation_of(connection, files, base)
        names = chosen(relation.columns, columns, "the table")
        kinds = {name: kind.id for name, kind in zip(relation.columns, relation.types, strict=True)}
        other = [
            name
            for name in names
            if kinds[name] not in NUMERIC
            and not (kinds[name] == "varchar" and reads_as_numbers(relation, name))
        ]
        categories = {name: _values(relation, name) for name in other if non_numeric == "one-hot"}
    empty = [name for name, values in categories.items() if not values]
    dropped = [name for name in other if name not in categories or name in empty]
    categories = {name: values for name, values in categories.items() if values}
    kept = [name for name in names if name not in dropped]
    if not kept:
        raise DataError(f"no column of the table holds numbers; its columns are {', '.join(names)}")
    return NumericQuery(
        indicator_query(kept, categories, sql=sql),
        tuple(new for name in kept for new in _indicators(name, categories)),
        tuple(dropped),
        categories,
    )


def indicator_query(
    columns: Sequence[str], categories: Mapping[str, Sequence[str]], *, sql: str | None = None
) -> str:
    """Return the query in which indicators stand in the place of some columns.

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
    base = "data" if sql is None else f"({sql.strip().rstrip(';')})"
    parts = []
    for name in columns:
        if name not in categories:
            parts.append(identifier(name))
            continue
        value = f"CAST({identifier(name)} AS VARCHAR)"
        known = ", ".join(literal(category) for category in categories[name])
        for category, new in zip(categories[name], _indicators(name, categories), strict=True):
            indicator = f"CAST({value} = {literal(category)} AS DOUBLE)"
            parts.append(f"CASE WHEN {value} IN ({known}) THEN {indicator} END AS {identifier(new)}")
    return f"SELECT {', '.join(parts)} FROM {base}"


def _indicators(name: str, categories: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what a column becomes."""
    return [f"{name}={value}" for value in categories[name]] if name in categories else [name]


def _values(relation: Any, name: str) -> list[str]:
    """Return the values of a column in their order."""
    given = f"CAST({identifier(name)} AS VARCHAR)"
    rows = relation.project(f"{given} AS v").filter("v IS NOT NULL").distinct().order("v")
    values = [row[0] for row in rows.limit(_MOST_CATEGORIES + 1).fetchall()]
    if len(values) > _MOST_CATEGORIES:
        raise DataError(
            f"column {name!r} has more than {_MOST_CATEGORIES} different values, too many for a column each; leave it "
            f"out: choose columns (columns=, --columns), or drop those without numbers (--non-numeric drop)"
        )
    return values
