"""All data sets of the torture suite, by name."""

from torture.case import Case, named
from torture.sets import dependent_columns, kinds, missing, outliers, scales, shapes, sizes, ties, weights

CASES: dict[str, Case] = named(
    [
        case
        for module in (sizes, dependent_columns, ties, scales, outliers, shapes, weights, kinds, missing)
        for case in module.CASES
    ]
)
