"""All data sets of the torture suite, by name."""

from torture.case import Case, named
from torture.sets import dependent_columns, kinds, missing, outliers, scales, shapes, sizes, ties, weights

__all__ = ["CASES", "KINDS"]

KINDS: dict[str, list[Case]] = {
    "sizes": sizes.CASES,
    "dependent columns": dependent_columns.CASES,
    "ties": ties.CASES,
    "scales": scales.CASES,
    "outliers and tails": outliers.CASES,
    "shapes": shapes.CASES,
    "weights": weights.CASES,
    "kinds of arrays": kinds.CASES,
    "missing": missing.CASES,
}
"""The data sets by what is wrong with them."""

CASES: dict[str, Case] = named([case for cases in KINDS.values() for case in cases])
"""The data sets by name."""
