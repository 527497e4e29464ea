"""Tables whose columns have names, from pandas, Polars, Arrow, Dask or disk, behind one interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import DataError
from .columns.table_numbers import Table
from .lazy_table import LazyTable
from .rows import refuse_unmade


@dataclass(frozen=True, eq=False)
class Frame:
    """A table by its columns.

    Attributes
    ----------
    table
        As the user gave it.
    columns
        Names of its columns, in order, as texts.
    """

    table: Any
    columns: tuple[str, ...]

    def column(self, name: str) -> Any:
        """Return a column."""
        (place,) = self._places([name])
        return self._chosen(place)

    def block(self, names: Sequence[str]) -> Any:
        """Return several columns as a table, in the order of the names; the table itself if it has no others."""
        if tuple(names) == self.columns:
            return self.table
        return self._chosen(self._places(names))

    def _places(self, names: Sequence[str]) -> list[int]:
        found = []
        for name in names:
            places = [place for place, own in enumerate(self.columns) if own == name]
            if len(places) > 1:
                raise DataError(
                    f"the table has {len(places)} columns named '{name}', so it is not clear which of them is "
                    f"meant: rename or drop all but one"
                )
            found += places
        return found

    def _chosen(self, places: int | list[int]) -> Any:
        table = self.table
        if hasattr(table, "iloc") and not hasattr(table, "__dask_graph__"):
            return table.iloc[:, places]
        if isinstance(table, Table):
            return table.values[:, places]
        if isinstance(places, int):
            return table[self.columns[places]]
        names = [self.columns[place] for place in places]
        return table.select(names) if hasattr(table, "select") else table[names]


def frame_of(value: Any) -> Frame | None:
    """Return a table whose columns have names as a :class:`Frame`; None for anything else.

    Raises
    ------
    DataError
        If it is the plan of a table, or the names of its columns have several levels.
    """
    if isinstance(value, np.ndarray | list | tuple | float | int):
        return None
    refuse_unmade(value)
    columns: Any = getattr(value, "column_names", None)
    if columns is None and (isinstance(value, LazyTable | Table) or hasattr(value, "__getitem__")):
        columns = getattr(value, "columns", None)
    if columns is None:
        return None
    if callable(columns):
        return None
    if getattr(columns, "nlevels", 1) > 1:
        raise DataError(
            f"the names of the columns have {columns.nlevels} levels (a MultiIndex): give each column one name, as in "
            f"frame.columns = ['_'.join(map(str, names)) for names in frame.columns]"
        )
    # a batch of Arrow has its columns themselves where others have their names
    found: list[Any] = [] if columns is None else list(columns)
    if any(hasattr(own, "null_count") and hasattr(own, "type") for own in found):
        return None
    return Frame(value, tuple(map(str, found)))


def index_of(value: Any) -> Any:
    """Return the index of the rows of a pandas object; None for anything else, and for rows that are only numbered."""
    if isinstance(value, np.ndarray | list | tuple) or type(value).__module__.split(".")[0] != "pandas":
        return None
    index = getattr(value, "index", None)
    return None if index is None or callable(index) else index


def in_order_of(value: Any, names: Sequence[str]) -> Any:
    """Return a pandas object with its rows in the order of names; None if its index lacks one of them.

    Raises
    ------
    DataError
        If the index has a name twice.
    """
    index = index_of(value)
    if index is None:
        return None
    known = list(map(str, index))
    if not set(names) <= set(known):
        return None
    if len(set(known)) < len(known):
        twice = next(own for own in known if known.count(own) > 1)
        raise DataError(f"the index has '{twice}' twice; give each name one row")
    return value.iloc[[known.index(name) for name in names]]


def without_absent(value: Any) -> Any:
    """Return a pandas object of numbers with absent ones (pd.NA) as an array with NaN; anything else unchanged."""
    if isinstance(value, np.ndarray | list | tuple) or type(value).__module__.split(".")[0] != "pandas":
        return value
    kinds: Any = getattr(value, "dtypes", None)
    own = (
        list(kinds if kinds is not None else ())
        if getattr(value, "ndim", 1) == 2
        else [getattr(value, "dtype", None)]
    )
    is_extension = any(hasattr(kind, "na_value") and getattr(kind, "kind", "O") in "biuf" for kind in own)
    are_numbers = all(getattr(kind, "kind", "O") in "biuf" for kind in own)
    return value.to_numpy(dtype=np.float64, na_value=np.nan) if is_extension and are_numbers else value


def has_dates(column: Any) -> bool:
    """Whether a column has dates, times or durations, which NumPy would turn into counts of some unit."""
    kind: Any = getattr(column, "dtype", getattr(column, "type", None))
    found = getattr(kind, "kind", None)
    if found is None:
        # the types of Polars and Arrow say so in their names: Date, Datetime(...), timestamp[us], duration[ns], ...
        return str(kind).lower().startswith(("date", "time", "duration"))
    return found in "mM" or str(kind).startswith(("date", "time", "duration"))


def refuse_other_rows(table: Any, **others: Any) -> None:
    """Refuse pandas objects by name whose index is another one than that of the table X: rows would be mixed up.

    Raises
    ------
    DataError
        With the name of the first one.
    """
    index = index_of(table)
    for name, value in others.items() if index is not None else ():
        wrong = None if (own := index_of(value)) is None else how_other(own, index)
        if wrong is not None:
            raise DataError(of_other_rows(name, "X", wrong))


def how_other(own: Any, other: Any, *, are_same_rows: bool = True) -> str | None:
    """Return how the index of the same rows differs from another one; None where their rows go together by position.

    Parameters
    ----------
    own, other
        Indices.
    are_same_rows
        Whether they are of the same rows: if not, only the same labels in another order count.
    """
    if own is other or len(own) != len(other) or own.equals(other):
        return None
    if own.is_unique and other.is_unique and own.isin(other).all():
        return "the index of {other} in another order"
    if not are_same_rows or _only_numbers(own) or _only_numbers(other):
        return None
    place = next(i for i, (first, second) in enumerate(zip(own, other, strict=True)) if first != second)
    return f"another index than {{other}} ({own[place]!r} where that has {other[place]!r})"


def _only_numbers(index: Any) -> bool:
    """Whether an index only numbers the rows, as that of a table that was given none."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def of_other_rows(name: str, other: str, how: str) -> str:
    """Return what is said of rows whose index is another one; ``how`` is from :func:`how_other`."""
    return (
        f"the rows of {name} have {how.replace('{other}', other)}, so rows would be mixed up: align "
        f"them by .loc or .reindex, or drop the index by .to_numpy()"
    )
