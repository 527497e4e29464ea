"""Numbers that mean missing values, as -999: no value of their column is near them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ..._errors import CaviarWarning
from ..._typing import AnyArray, Array

_CODES = {
    -9.0,
    *(sign * float("9" * digits) for digits in range(2, 10) for sign in (-1, 1)),
    *(-(2.0**bits) for bits in (15, 31, 63)),
}
"""-9, -99, 99, -999, 999 and so on, and the smallest whole numbers of 16, 32 and 64 bits."""
_FEWEST, _FEWEST_OTHERS = 2, 8
"""Rows that have the code, and different values beside it, below which it may be chance."""

OF_CODES = "column .* if that means a missing value"
"""What a message about such a column matches."""


def missing_code(column: Array) -> tuple[float, int] | None:
    """Return the number that seems to mean missing values in a column, and how many rows have it; or None.

    It is the smallest or the largest value, one of those that are used for this, several rows have it, and it is
    farther from the nearest other value than the others are from each other.

    Parameters
    ----------
    column
        Its values, NaN where they are missing.

    Examples
    --------
    >>> ages = np.array([23.0, 31, 45, 28, 60, 52, 37, 41, -999, -999])
    >>> missing_code(ages)
    (-999.0, 2)
    >>> missing_code(ages[:8])
    """
    if not len(column) or np.isnan(column).all():
        return None
    for code in (float(np.nanmin(column)), float(np.nanmax(column))):
        if code not in _CODES:
            continue
        has_code = column == code
        others = np.unique(column[~has_code & ~np.isnan(column)])
        if has_code.sum() < _FEWEST or len(others) < _FEWEST_OTHERS:
            continue
        if np.abs(others - code).min() > others[-1] - others[0]:
            return code, int(has_code.sum())
    return None


def tell_of_codes(rows: AnyArray, names: Sequence[str] | None, stacklevel: int) -> None:
    """Warn of columns of numbers, (N, D), that seem to have a number for missing values.

    Parameters
    ----------
    rows
        Their values, NaN where they are missing.
    names
        Of the columns; by default their places.
    stacklevel
        Frames from this function to the call of the user.

    Warns
    -----
    CaviarWarning
        If there is such a column.
    """
    if not rows.size:
        return
    with np.errstate(invalid="ignore"):
        lowest, highest = np.fmin.reduce(rows, axis=0).tolist(), np.fmax.reduce(rows, axis=0).tolist()
    for j, ends in enumerate(zip(lowest, highest, strict=True)):
        if not _CODES.isdisjoint(ends) and (code := missing_code(rows[:, j])) is not None:
            name = str(j) if names is None else names[j]
            warnings.warn(remark_of_code(name, *code, "NaN"), CaviarWarning, stacklevel=stacklevel + 1)


def remark_of_code(name: str, code: float, n_rows: int, how: str) -> str:
    """Return the message about a column that seems to have such a number; ``how`` says how to tell the fit."""
    return (
        f"column {name} has {code:.0f} in {n_rows:,} rows, and no other value near: if that means a missing "
        f"value, make it {how}"
    )
