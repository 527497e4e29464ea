"""Numbers in other notations than a program's: decimal commas, separators of thousands; and how to read them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...files.naming import named
from ..files.table_files import as_number, identifier, is_code, literal

_GROUPED_BY_COMMAS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([.' ]\d{3})+(,\d*)?")
_WITH_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_MOST_TEXTS = 1_000
_OR_DECIMAL = "; if the commas are decimal, with '.' in the place of ''"
_PLAIN = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


def other_notation(texts: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """Return the notation of numbers that texts look like, and the characters to remove; None if they are not numbers.

    A comma comes first among what is left out where it separates thousands; else it is the decimal point.

    Examples
    --------
    >>> other_notation(["60,6", "1,125"]), other_notation(["59,500", "1,200,000.5"]), other_notation(["high"])
    (('a decimal comma', ()), ('separators of thousands', (',',)), None)
    """
    found = [text.strip() for text in texts]
    marked = [text for text in found if not _PLAIN.fullmatch(text)]
    if not marked:
        return None
    for what, pattern, removed in (
        ("separators of thousands", _GROUPED_BY_COMMAS, (",",)),
        ("a decimal comma", _WITH_COMMA, ()),
    ):
        if all(pattern.fullmatch(text) for text in marked):
            return what, removed
    if all(_GROUPED.fullmatch(text) or _WITH_COMMA.fullmatch(text) for text in marked):
        return "separators of thousands", tuple(
            mark for mark in ".' " if any(mark in text for text in marked)
        )
    return None


def or_decimal(removed: Sequence[str], texts: Sequence[str]) -> str:
    """Return what is said of commas that may separate thousands or be decimal, as in 1,125; else nothing."""
    either = removed == (",",) and all(_WITH_COMMA.fullmatch(text.strip()) for text in texts)
    return _OR_DECIMAL if either else ""


def unread_texts(relation: Any, names: Sequence[str]) -> dict[str, list[str]]:
    """Return of each column of texts in a relation of DuckDB some entries that do not read as numbers."""
    kinds = {name: kind.id for name, kind in zip(relation.columns, relation.types, strict=True)}
    found = {}
    for name in names:
        if kinds[name] == "varchar":
            given = identifier(name)
            other = relation.filter(f"{given} IS NOT NULL AND {as_number(name, 'varchar')} IS NULL")
            found[name] = [row[0] for row in other.project(given).limit(_MOST_TEXTS).fetchall()]
    return found


def notation_message(label: str, name: str, at: str, texts: Mapping[str, Sequence[str]]) -> str | None:
    """Return the message about a column of numbers in another notation, with a query that reads it; else None.

    Parameters
    ----------
    label
        What the table is called.
    name
        Name of the column.
    at
        The first entry of it that is not a number, and its place.
    texts
        Name of each column of texts -> entries that do not read as numbers: the query reads all that look like numbers.
    """
    notations = {column: other_notation(own) for column, own in texts.items()}
    found = notations.get(name)
    if found is None:
        return None
    parts = ", ".join(_read(column, own[1]) for column, own in notations.items() if own is not None)
    what, removed = found
    return (
        f"{label}: column {named(name)} looks like numbers with {what}: {at}. Read it by the query (sql=, --sql) "
        f"SELECT * REPLACE ({parts}) FROM data{or_decimal(removed, texts[name])}"
    )


def code_reason(name: str, at: str, texts: Mapping[str, Sequence[str]]) -> str | None:
    """Return why a column of codes does not hold numbers, with the query by which such columns do; else None.

    Parameters
    ----------
    name, at, texts
        As for :func:`notation_message`.
    """
    codes = [column for column, own in texts.items() if own and all(map(is_code, own))]
    if name not in codes:
        return None
    parts = ", ".join(f"{identifier(column)}::DOUBLE AS {identifier(column)}" for column in codes)
    return (
        f"it has {at}, and zeros in front are kept, as those of codes are. If they are numbers, read the query (sql=, "
        f"--sql) SELECT * REPLACE ({parts}) FROM data"
    )


def _read(name: str, removed: Sequence[str]) -> str:
    """Return the expression of SQL that reads a column whose marks of thousands are known."""
    expression = identifier(name)
    for mark in removed:
        expression = f"replace({expression}, {literal(mark)}, '')"
    if "," not in removed:
        expression = f"replace({expression}, ',', '.')"
    return f"{expression}::DOUBLE AS {identifier(name)}"
