"""Numbers with more digits than double precision keeps: refused where what tells rows apart would be lost."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np

from ..._errors import DataError
from ..._typing import AnyArray
from ...files.naming import named
from ..dask_rows import chunks_of_large_integers, is_collection

LARGEST_WHOLE = 2**53
"""Whole numbers up to this one are numbers of double precision."""
_UNITS = 1000
"""Distances of numbers of double precision, beside which rounding is small if values spread over more of them."""


def refuse_lost_digits(value: Any, name: str, places: Container[int] | None = None) -> None:
    """Refuse a table, a column or an array whose values are the same, or coarse, in double precision.

    Parameters
    ----------
    value
        As the user gave it. Of a collection of Dask each chunk is looked at by itself, and only if there are whole
        numbers beyond 2**53, which takes a pass if it has whole numbers of 64 bits.
    name
        What it is called in the message; columns of a table are called by their own names.
    places
        Columns that are looked at, by their places; by default all.

    Raises
    ------
    DataError
        If so. Whole numbers up to 2**53 and numbers of double precision are never refused.
    """
    if not isinstance(value, np.ndarray):
        if type(value).__module__.split(".")[0] == "xarray":
            value = getattr(value, "data", None)
        if is_collection(value):
            for chunk in chunks_of_large_integers(value, LARGEST_WHOLE):
                refuse_lost_digits(chunk, name, places)
            return
    for what, column in _columns(value, name, places):
        found = _lost(column)
        if found is not None:
            raise DataError(f"{what} {found}")


def are_suspect(rounded: AnyArray) -> bool:
    """Whether numbers in double precision are so large, or lie so close together, that digits may have been lost."""
    low, high = np.fmin.reduce(rounded, axis=None), np.fmax.reduce(rounded, axis=None)
    size = max(abs(low), abs(high))
    return bool(np.isfinite(size) and (size > LARGEST_WHOLE or high - low <= 2 * _UNITS * np.spacing(size)))


def lost_digits(entries: Iterable[Any]) -> str | None:
    """Return what is said of numbers whose digits double precision loses; None if it keeps enough.

    Parameters
    ----------
    entries
        Whole numbers, decimals, fractions and texts of such numbers; others are left out.

    Examples
    --------
    >>> lost_digits([1, 2.5, 2**60, "3"]) is None
    True
    >>> lost_digits(["1000000000000000001", "1000000000000000003"])[:55]
    'has 2 different values from 1000000000000000001 to 1000'
    """
    exact = sorted({own for own in map(_exact, entries) if own is not None})
    if not exact:
        return None
    rounded = [float(own) for own in exact]
    # the last digits of fractions are often rounding themselves, but whole numbers that differ are different
    whole = {float(own) for own in exact if own.denominator == 1}
    n_same = sum(own.denominator == 1 for own in exact) - len(whole)
    are_rounded = any(own != Fraction(near) for own, near in zip(exact, rounded, strict=True))
    return _told(exact[0], exact[-1], len(exact), len(set(rounded)), n_same) if are_rounded else None


def _exact(entry: Any) -> Fraction | None:
    """Return a number without rounding; None if it is none, or beyond double precision."""
    try:
        if isinstance(entry, str):
            entry = Decimal(entry.strip())
        if isinstance(entry, Decimal) and entry and abs(entry.adjusted()) > 300:
            return None
        if isinstance(entry, Integral):
            entry = int(entry)
        found = Fraction(entry)
        float(found)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return found


def _told(low: Any, high: Any, n_values: int, n_left: int, n_same: int) -> str | None:
    """Return the message about values that were rounded; None if they are neither the same then, nor coarse."""
    unit = np.spacing(max(abs(float(low)), abs(float(high))))
    if not n_same and not 0 < high - low < _UNITS * Fraction(float(unit)):
        return None
    left = (
        f", and {n_left} different {'ones are' if n_left > 1 else 'one is'} left" if n_left < n_values else ""
    )
    return (
        f"has {n_values} different values from {_shown(low)} to {_shown(high)}. Double precision keeps 16 digits: "
        f"there they are rounded to multiples of {unit:g}{left}. Subtract a number such as {_shown(low)} from it "
        "first, without rounding (from a column of a file in a query, sql=), or leave it out if it is an identifier"
    )


def _shown(value: Any) -> str:
    if value == int(value):
        return str(int(value))
    return f"{Decimal(value.numerator) / value.denominator:f}" if isinstance(value, Fraction) else repr(value)


def _lost(column: AnyArray) -> str | None:
    """Return what is said of a column if its digits are lost."""
    if not column.size:
        return None
    if column.dtype.kind in "iu":
        low, high = int(column.min()), int(column.max())
        if low >= -LARGEST_WHOLE and high <= LARGEST_WHOLE:
            return None
        distinct = np.unique(column)
        n_left = len(np.unique(distinct.astype(np.float64)))
        if n_left == len(distinct) > _UNITS * 2048:
            return None
        if n_left == len(distinct):
            return lost_digits(distinct.tolist())
        return _told(low, high, len(distinct), n_left, len(distinct) - n_left)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = column.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if not are_suspect(rounded):
        return None
    if column.dtype.kind == "O":
        return lost_digits(own for own in column.flat if not isinstance(own, str))
    seen = np.unique(column[np.isfinite(column)])
    if np.array_equal(seen, seen.astype(np.float64)):
        return None
    low, high = (Fraction(*own.as_integer_ratio()) for own in (seen[0], seen[-1]))
    return _told(low, high, len(seen), len(np.unique(seen.astype(np.float64))), 0)


def _columns(value: Any, name: str, places: Container[int] | None) -> Iterator[tuple[str, AnyArray]]:
    """Yield the columns, with a name each, whose numbers may have more digits than double precision."""
    if isinstance(value, list | tuple):
        value = _of_list(value)
    if isinstance(value, np.ndarray):
        if not _has_more(value.dtype):
            return
        is_masked = np.ma.isMaskedArray(value)
        if value.ndim != 2:
            yield name, np.ma.compressed(value) if is_masked else value
        elif is_masked or value.dtype.kind == "O" or value.dtype.itemsize > 8 or _is_large(value):
            own = enumerate(map(np.ma.compressed, value.T) if is_masked else value.T)
            yield from (
                (f"column {j} of {name}", column) for j, column in own if places is None or j in places
            )
        return
    table = _by_columns(value)
    for j, what, column in [(0, name, value)] if table is None else table:
        own = numbers_that_are_there(column) if places is None or j in places else None
        if own is not None:
            yield what, own


def _of_list(value: Any) -> AnyArray | None:
    """Return a list as an array of objects if it has large numbers, which NumPy may have rounded; otherwise None."""
    try:
        found = np.asarray(value)
        if found.dtype.kind in "iuO":
            return found
        if (
            found.dtype.kind != "f"
            or not found.size
            or not np.fmax.reduce(np.abs(found), axis=None) > LARGEST_WHOLE
        ):
            return None
        return np.asarray(value, dtype=object)
    except (TypeError, ValueError, OverflowError):
        return None


def _has_more(kind: np.dtype[Any]) -> bool:
    """Whether numbers of a type of NumPy may have more digits than double precision."""
    return (
        kind.kind == "O"
        or (kind.kind in "iu" and kind.itemsize == 8)
        or (kind.kind == "f" and kind.itemsize > 8)
    )


def _is_large(values: AnyArray) -> bool:
    return bool(values.size) and (int(values.max()) > LARGEST_WHOLE or int(values.min()) < -LARGEST_WHOLE)


def _by_columns(value: Any) -> Iterator[tuple[int, str, Any]] | None:
    """Return places, names and columns of a table of pandas, Polars or Arrow; None of anything else."""
    if hasattr(value, "column_names") and hasattr(value, "columns") and hasattr(value, "schema"):
        names, columns, places = value.column_names, value.columns, range(len(value.columns))
    elif hasattr(value, "iloc") and hasattr(value, "columns"):
        names, kinds = value.columns, value.dtypes.tolist()
        # to take a column out of a table costs more than to look at its type, and most by its place
        places = [j for j, kind in enumerate(kinds) if not isinstance(kind, np.dtype) or _has_more(kind)]
        columns = {j: value[names[j]] if names.is_unique else value.iloc[:, j] for j in places}
    elif hasattr(value, "get_column") and hasattr(value, "get_columns"):
        names, columns, places = value.columns, value.get_columns(), range(len(value.columns))
    else:
        return None
    return ((j, f"column {named(str(names[j]))}", columns[j]) for j in places)


def numbers_that_are_there(column: Any) -> AnyArray | None:
    """Return the numbers of a column that are there, without rounding; None where they have no more digits."""
    kind: Any = getattr(column, "dtype", getattr(column, "type", None))
    if isinstance(kind, np.dtype):
        return column.to_numpy() if _has_more(kind) and hasattr(column, "iloc") else None
    words = str(kind).lower()
    if hasattr(column, "drop_null") or hasattr(column, "drop_nulls"):
        if not words.startswith(("int64", "uint64", "int128", "decimal")):
            return None
        there = column.drop_null() if hasattr(column, "drop_null") else column.drop_nulls()
        if words.startswith(("int64", "uint64")):
            return np.asarray(there)
        return np.array(there.to_pylist() if hasattr(there, "to_pylist") else there.to_list(), dtype=object)
    if not hasattr(column, "iloc") or hasattr(kind, "categories"):
        return None
    of_kind = getattr(kind, "kind", "")
    if of_kind in ("i", "u") and words.startswith(("int64", "uint64")):
        return column.dropna().to_numpy(dtype=words[: words.index("4") + 1])
    return column.dropna().to_numpy(dtype=object) if of_kind == "O" and "decimal" in words else None
