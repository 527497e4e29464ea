"""Numbers as readers like them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._typing import AnyArray
from ...lazy.rows import as_floats

_GROUPED = 10_000
"""From here on thousands are set apart."""

_MOST_DIGITS = 9
"""Digits of a number that is large beside its standard deviation."""


def number(value: float | None, digits: int = 4, beside: float | None = None) -> str:
    """Return a number for readers; a dash for none.

    Thousands are separated from five digits on; years such as 2008 stay whole.

    Parameters
    ----------
    value
        The number.
    digits
        Significant digits, at least.
    beside
        Standard deviation or width of an interval, of which a tenth is shown, however large the number.

    Examples
    --------
    >>> number(-1178.46731), number(1234567.0), number(0.00001234), number(None)
    ('−1178', '1,234,567', '1.234e−05', '–')
    >>> number(2007.9714), number(2007.9714, beside=0.2)
    ('2008', '2007.97')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if beside is not None and 0 < beside < math.inf:
        digits = max(digits, min(size - math.floor(math.log10(beside)) + 2, _MOST_DIGITS))
    if -4 <= size < 9:
        places = max(0, digits - 1 - size)
        text = f"{value:,.{places}f}" if abs(value) >= _GROUPED else f"{value:.{places}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.{digits - 1}e}"
    return text.replace("-", "\N{MINUS SIGN}")


def percent(share: float | None) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.3561), percent(0.0), percent(0.00004)
    ('35.6%', '0%', '<0.1%')
    """
    if share is None or not math.isfinite(share):
        return "–"
    if 0 < share < 0.001:
        return "<0.1%"
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


def in_digits(value: float, digits: int = 6) -> float | None:
    """Return a number rounded to a number of digits; None if it is not finite."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def spread_out(n_rows: int, most: int) -> AnyArray:
    """Return the numbers of evenly spaced rows, up to a limit."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).round().astype(np.int64)


def as_numbers(values: Any) -> AnyArray | None:
    """Return an array of numbers, NaN where they are missing; None for anything else."""
    if values is None or isinstance(values, Mapping) or hasattr(values, "indptr"):
        return None
    try:
        return as_floats(values)
    except (TypeError, ValueError):
        return None
