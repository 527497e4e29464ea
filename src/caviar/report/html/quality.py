"""The quality of data: missing, constant and extreme values of each column, in figures and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import Array
from ...data.columns.missing_codes import missing_code
from ...data.columns.row_numbers import numbers_rows

FIGURES = ("mean", "sd", "min", "median", "max")
CONSTANT = "constant: it does not distinguish rows"
NUMBERS = "it seems to number the rows: an index holds no information, and is better left out"

_MOST_ROWS = 1_000_000
_FEW_VALUES = 6
_FAR = 8.0
"""Standard deviations of the other values."""
_ENOUGH = 8
"""Other values from which a standard deviation is taken for more than chance."""


def quality_of(
    rows: Any, names: Sequence[str], fitted: Mapping[str, Mapping[str, float]]
) -> list[dict[str, Any]]:
    """Return figures and remarks for each column.

    Parameters
    ----------
    rows
        Shape (N, D). Of more than a million rows, a million that are spread evenly over them.
    names
        Of the columns.
    fitted
        Name -> min, max, ... of the rows that the model was fitted to, where that is known.
    """
    step = -(-len(rows) // _MOST_ROWS)
    values = np.asarray(rows[::step] if step > 1 else rows[:], dtype=np.float64)
    return [_column(name, values[:, j], fitted.get(name, {})) for j, name in enumerate(names)]


def line_of(name: str, remarks: list[str], missing: float | None = None, **figures: Any) -> dict[str, Any]:
    """Return the line of a column; figures that are not given are None."""
    return {
        "name": name,
        "missing": missing,
        **dict.fromkeys(FIGURES),
        **figures,
        "levels": "",
        "remarks": remarks,
    }


def remembered_quality(fitted: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Return the figures that were kept with a model."""
    return [
        line_of(
            name,
            _remembered_remarks(kept),
            mean=kept.get("mean"),
            sd=kept.get("standard_deviation"),
            min=kept.get("min"),
            max=kept.get("max"),
        )
        for name, kept in fitted.items()
    ]


def _remembered_remarks(kept: Mapping[str, float]) -> list[str]:
    if kept.get("min") == kept.get("max"):
        return [CONSTANT]
    return [NUMBERS] if kept.get("numbers_rows") else []


def _column(name: str, column: Array, fitted: Mapping[str, float]) -> dict[str, Any]:
    seen = column[~np.isnan(column)]
    missing = 1 - len(seen) / max(len(column), 1)
    if not len(seen):
        return line_of(name, ["no value at all"], missing)
    facts = {
        "mean": float(seen.mean()),
        "sd": float(seen.std()),
        "min": float(seen.min()),
        "median": float(np.median(seen)),
        "max": float(seen.max()),
    }
    return line_of(name, _remarks(column, missing, facts, fitted), missing, **facts)


def _remarks(
    column: Array, missing: float, facts: Mapping[str, float], fitted: Mapping[str, float]
) -> list[str]:
    """Return what should be known of a column."""
    remarks, seen = [], column[~np.isnan(column)]
    distinct = len(np.unique(seen))
    if distinct == 1:
        remarks.append(CONSTANT)
    elif distinct <= _FEW_VALUES:
        remarks.append(f"only {distinct} distinct values: a category rather than a measurement?")
    if numbers_rows(column) or fitted.get("numbers_rows"):
        remarks.append(NUMBERS)
    if missing > 0.2:
        remarks.append(f"{missing:.0%} missing")
    far, value, count = _the_farthest(seen, facts["mean"], distinct)
    if (code := missing_code(column)) is not None:
        remarks.append(
            f"{code[0]:.0f} in {code[1]:,} rows, far from all others: does it mean a missing value?"
        )
    elif far > _FAR:
        where = f", {value:g} in {count:,} rows," if count > 1 else ""
        marks = "; if it marks missing values, make them missing" if count > 1 else ""
        remarks.append(
            f"its farthest value{where} is {far:,.0f} standard deviations of the others from their mean{marks}"
        )
    low, high = fitted.get("min"), fitted.get("max")
    outside = 0
    if low is not None and high is not None:
        outside = int(((seen < low) | (seen > high)).sum())
    if outside:
        remarks.append(
            f"{outside:,} value{'s' * (outside != 1)} outside what the model was fitted to ({low:.4g} to {high:.4g})"
        )
    return remarks


def _the_farthest(seen: Array, mean: float, distinct: int) -> tuple[float, float, int]:
    """Return how far the farthest value is from the mean of the others, in their standard deviations; it, and its rows.

    Of few distinct values each row counts by itself: in categories the farthest one is not strange. A value such as
    -999 in many rows is: it marks what is missing.
    """
    # the others alone, for among n values none can lie more than sqrt(n - 1) standard deviations from the mean
    farthest = int(np.abs(seen - mean).argmax())
    value = float(seen[farthest])
    are_others = seen != value
    count = len(seen) - int(np.count_nonzero(are_others))
    if distinct <= _FEW_VALUES or 2 * count > len(seen):
        are_others, count = np.arange(len(seen)) != farthest, 1
    others = seen[are_others]
    if len(others) < _ENOUGH or not (spread := float(others.std())):
        return 0.0, value, count
    return abs(value - float(others.mean())) / spread, value, count
