"""Columns without numbers: refused, left out, or turned into indicators or categories; the user is always told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import caviar as cv
from caviar.files.naming import listed

from ..speaking.outputs import complain, say, standard_error

_LEARNING_VARIANCES = {"full", "tied", "diag"}
"""Covariances with a variance of each column that the rows tell."""


class NonNumeric(StrEnum):
    """The values of ``--non-numeric``."""

    ERROR = "error"
    DROP = "drop"
    ONE_HOT = "one-hot"
    CATEGORICAL = "categorical"


@dataclass(frozen=True)
class NumericTable:
    """Where numbers are read from, after the choice was made.

    Attributes
    ----------
    columns, sql
        As for :func:`caviar.data.read_table`.
    categories
        Column -> its values, of which it was turned into indicators, or places.
    indicators
        Whether into indicators.
    """

    columns: list[str] | None
    sql: str | None
    categories: dict[str, list[str]] = field(default_factory=dict)
    indicators: bool = False


def numbers_only(
    data: str | None, sql: str | None, columns: list[str] | None, choice: NonNumeric, *, quiet: bool
) -> NumericTable:
    """Return where the numbers of a table are read from; what became of other columns is said."""
    if choice is NonNumeric.ERROR:
        return NumericTable(columns, sql)
    found = cv.data.numeric_query(data, choice.value, columns=columns, sql=sql)
    if found.dropped:
        # a warning and no progress, for the fit is one of fewer columns than were given
        complain("warning", f"left out, because not all entries are numbers: {listed(found.dropped)}")
    for name, values in found.categories.items():
        if not quiet:
            what = "columns of 0 and 1" if choice is NonNumeric.ONE_HOT else "categories"
            say(standard_error(), f"column {name} became {len(values)} {what}: {listed(values)}")
    if not found.dropped and not found.categories:
        return NumericTable(columns, sql)
    is_one_hot = choice is NonNumeric.ONE_HOT and bool(found.categories)
    return NumericTable(list(found.columns), found.sql, found.categories, is_one_hot)


def complain_of_indicators(table: NumericTable, covariances: Iterable[str]) -> None:
    """Warn of indicators in a mixture of Gaussians that learns a variance of each column."""
    if table.indicators and not _LEARNING_VARIANCES.isdisjoint(covariances):
        complain(
            "warning",
            f"the columns of 0 and 1 of {listed(list(table.categories))} are not Gaussian: in a component whose rows "
            f"all have one value their variance is almost 0, and the density so high that components follow these "
            f"columns and ignore the others. caviar fit --non-numeric categorical gives each component a "
            f"probability of each value, which is best for a mixture; drop leaves them out",
        )


@contextmanager
def told_where_no_numbers(advice: str) -> Iterator[None]:
    """Add advice to the refusal of a column without numbers; nothing where the advice is empty."""
    try:
        yield
    except cv.DataError as error:
        if not advice or "does not hold numbers" not in str(error) or "values are missing" in str(error):
            raise
        way = advice.removeprefix("or ") if "No other column" in str(error) else advice
        raise cv.DataError(f"{error}; {way}") from error


def other_choice_told(
    choice: NonNumeric, *, others: str = "one-hot, or drop"
) -> AbstractContextManager[None]:
    """Add to the refusal of a column without numbers what else could be done with it, unless that was chosen."""
    return told_where_no_numbers(f"or use --non-numeric {others}" if choice is NonNumeric.ERROR else "")


@contextmanager
def renaming_told(columns: Sequence[str]) -> Iterator[None]:
    """Add to the refusal of a column with the name of a variable how it is given another name."""
    try:
        yield
    except cv.DataError as error:
        taken = [name for name in columns if str(error).startswith(f"column {name!r} has the name of")]
        if not taken:
            raise
        name = taken[0]
        query = f'SELECT * RENAME ("{name}" AS "{name}_column") FROM data'
        raise cv.DataError(f"{error}: --sql '{query}'") from error


def same_numbers(
    about: Mapping[str, Any], names: Sequence[str], sql: str | None
) -> tuple[Sequence[str], str | None]:
    """Return the columns and the query that give new data the columns that a model was fitted to."""
    categories = about.get("categories") or {}
    if not categories:
        return names, sql
    indicators = {f"{name}={value}" for name, values in categories.items() for value in values}
    plain = [name for name in names if name not in indicators]
    return names, cv.data.indicator_query([*plain, *categories], categories, sql=sql)
