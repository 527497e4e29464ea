"""Columns that number the rows, as an index does: whole numbers without a gap in any order, or steps of one length."""

from __future__ import annotations

import math

import numpy as np

from ..._typing import Array

_FEWEST = 8
"""Rows below which equal steps may well be chance, or a design."""
_FEWEST_OF_PART = 20
"""Rows below which distinct whole numbers that lie close together may be chance."""
_ROUNDING = 1e-9


def numbers_rows(column: Array) -> bool:
    """Return whether a column seems to number the rows, or to be a random part of such a column.

    Parameters
    ----------
    column
        Its values in the order of the rows, NaN where they are missing.

    Examples
    --------
    >>> numbers_rows(np.arange(1.0, 151.0)), numbers_rows(np.arange(1.0, 151.0) ** 2)
    (True, False)
    """
    found = RowNumbers()
    found.add(column)
    if found.are_found:
        return True
    seen = column[~np.isnan(column)]
    if len(seen) < _FEWEST_OF_PART or not np.all(seen == np.rint(seen)) or np.ptp(seen) >= 2 * len(seen):
        return False
    return len(np.unique(seen)) == len(seen)


def remark(name: str, how: str = "") -> str:
    """Return the message about a column that seems to number the rows; ``how`` says how to leave it out."""
    return f"column {name} seems to number the rows; an index holds no information, so leave it out{how} if it is one"


def has_moments_of_row_numbers(n_rows: int, mean: float, deviation: float) -> bool:
    """Return whether mean and standard deviation are those of successive whole numbers in any order.

    Examples
    --------
    >>> has_moments_of_row_numbers(3, 1.0, (2 / 3) ** 0.5), has_moments_of_row_numbers(150, 75.5, 1875**0.5)
    (False, False)
    >>> has_moments_of_row_numbers(150, 75.5, (22499 / 12) ** 0.5)
    True
    """
    first = mean - (n_rows - 1) / 2
    if n_rows < _FEWEST or not math.isfinite(first):
        return False
    expected = math.sqrt((n_rows**2 - 1) / 12)
    is_whole = abs(first - round(first)) <= _ROUNDING * max(1.0, abs(mean))
    return is_whole and abs(deviation - expected) <= _ROUNDING * expected


class RowNumbers:
    """Looks at a column block by block for whether it numbers the rows."""

    def __init__(self) -> None:
        self._place = self._n = 0
        self._origin: tuple[int, float] | None = None
        self._step: float | None = None
        self._is_straight = True
        self._is_whole = True
        self._low, self._high = math.inf, -math.inf
        self._sum = self._squares = 0.0

    def add(self, block: Array) -> None:
        """Look at the values of more rows, NaN where they are missing."""
        places = self._place + np.flatnonzero(~np.isnan(block))
        values = np.asarray(block, dtype=np.float64)[places - self._place]
        self._place += len(block)
        if not len(values):
            return
        if self._origin is None:
            self._origin = int(places[0]), float(values[0])
        start, first = self._origin
        if self._step is None and places[-1] > start:
            self._step = float(values[-1] - first) / float(places[-1] - start)
        away = values - first
        straight = (self._step or 0.0) * (places - start)
        size = _ROUNDING * max(1.0, float(np.abs(values).max()))
        self._is_straight = self._is_straight and bool(np.all(np.abs(away - straight) <= size))
        self._is_whole = self._is_whole and bool(np.all(values == np.rint(values)))
        self._n += len(values)
        self._low, self._high = min(self._low, float(values.min())), max(self._high, float(values.max()))
        with np.errstate(over="ignore"):
            self._sum += float(away.sum())
            self._squares += float(np.square(away).sum())

    @property
    def are_found(self) -> bool:
        """Whether the column numbers the rows, as far as it was looked at."""
        if self._n < _FEWEST or self._origin is None:
            return False
        if self._is_straight and self._step:
            return True
        if not self._is_whole or self._high - self._low != self._n - 1:
            return False
        mean = self._sum / self._n
        deviation = math.sqrt(max(self._squares / self._n - mean**2, 0.0))
        return has_moments_of_row_numbers(self._n, self._origin[1] + mean, deviation)
