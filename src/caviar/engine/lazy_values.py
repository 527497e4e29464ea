"""Values that are read in blocks: looked over once, and what follows from a block is computed from it.

What stands for the missing entries, and which entries were observed, is no array of all rows: both are computed from
each block that is read, as NaN says there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import DataError, PlateError
from .._lazy import Computed, LazyRows, StoredRows, blocks_of
from .._typing import AnyArray, Array
from ..language import MultivariateNormal, Node, Plate, Variable
from .missing import mean_of_observed, refuse_known_missing, refuse_partial, weighted_means

__all__ = ["LazyValues", "lazy_values", "lazy_weights", "rows_first"]


@dataclass(frozen=True, eq=False)
class _Observed:
    """Which values of a block were observed."""

    events: int

    def __call__(self, block: AnyArray) -> AnyArray:
        return np.asarray(~np.isnan(block).any(axis=tuple(range(block.ndim - self.events, block.ndim))))


@dataclass(frozen=True, eq=False)
class _Filled:
    """A block with something else for what is missing."""

    fill: AnyArray

    def __call__(self, block: AnyArray) -> AnyArray:
        return np.where(np.isnan(block), self.fill, block)


@dataclass(frozen=True, eq=False)
class LazyValues:
    """Values of a node that are read in blocks, and which were observed.

    Attributes
    ----------
    values
        Without NaN.
    mask
        Which were observed, shape (plates...); None if all were.
    given
        As they came.
    """

    values: LazyRows
    mask: LazyRows | None
    given: LazyRows

    def at_column_means(self, node: Node, weights: Any) -> LazyRows:
        """Return the values with the weighted mean of its column in the place of a missing one of a location.

        See :func:`.missing.at_column_means`.
        """
        if self.mask is None or not _is_location(node):
            return self.values
        means = weighted_means(self.values, self.mask, weights)
        fill = np.where(np.isfinite(means), means, self.values.read(0, 0).dtype.type(0))
        if not np.isfinite(means).all():
            assert isinstance(self.values, Computed)
            fill = np.where(np.isfinite(means), means, self.values.function.fill)  # type: ignore[attr-defined]
        dtype = np.result_type(self.given.dtype, fill.dtype)
        return Computed(_Filled(fill), (self.given,), self.given.shape[1:], dtype)


def lazy_values(node: Node, rows: LazyRows, event_rank: int) -> LazyValues | None:
    """Return values that are read in blocks, after a look at all of them.

    None for a memory map of vectors that are missing in part: it can be looked at as an array.

    Raises
    ------
    DataError
        If a value is infinite, a known array has missing values, a vector is missing in part, or nothing was observed.
    """
    if rows.dtype.kind not in "biuf":
        raise DataError(f"the data of '{node.name}' must be numbers; {rows.label} holds {rows.dtype}")
    if rows.dtype.kind != "f":
        return LazyValues(rows, None, rows)
    n_missing, first = 0, None
    for start, block in blocks_of(rows):
        # a sum is finite only if its terms are, and costs less than a look at each; else each is looked at
        with np.errstate(over="ignore", invalid="ignore"):
            if first is not None and np.isfinite(block.sum(dtype=np.float64)):
                continue
        _refuse_infinite(node, start, block)
        missing = np.isnan(block)
        gone = np.asarray(missing.any(axis=tuple(range(block.ndim - event_rank, block.ndim))))
        if gone.any():
            n_missing += 1
            if isinstance(rows, StoredRows) and isinstance(node, MultivariateNormal):
                return None
            _refuse_missing(node, start, missing, gone, event_rank)
        if first is None and not gone.all():
            first = block[~gone][0]
    if not n_missing:
        return LazyValues(rows, None, rows)
    if first is None:
        raise DataError(f"the data of '{node.name}' are all missing (NaN)")
    mask = Computed(_Observed(event_rank), (rows,), rows.shape[1 : rows.ndim - event_rank], np.bool_)
    fill = np.asarray(first, dtype=rows.dtype)
    if _is_location(node):
        mean = mean_of_observed(rows, mask)
        if np.isfinite(mean).all():
            fill = np.asarray(mean, dtype=rows.dtype)
    return LazyValues(Computed(_Filled(fill), (rows,), rows.shape[1:], rows.dtype), mask, rows)


def _refuse_infinite(node: Node, start: int, block: AnyArray) -> None:
    infinite = np.isinf(block)
    if infinite.any():
        row = start + int(np.argwhere(infinite)[0][0])
        raise DataError(
            f"'{node.name}' has an infinity in row {row}; drop or impute such rows before the fit"
        )


def _refuse_missing(node: Node, start: int, missing: AnyArray, gone: AnyArray, event_rank: int) -> None:
    if not isinstance(node, Variable):
        refuse_known_missing(node, np.argwhere(missing)[0] + [start, *[0] * (missing.ndim - 1)])
    in_part = gone & ~missing.all(axis=tuple(range(missing.ndim - event_rank, missing.ndim)))
    if not in_part.any():
        return
    place = np.argwhere(in_part)[0] + [start, *[0] * (gone.ndim - 1)]
    if isinstance(node, MultivariateNormal) and missing.ndim == 2:
        raise DataError(
            f"'{node.name}' has a vector that is missing in part (NaN), first in row {place[0]}: such rows are brought "
            f"together by which entries they lack, for which all must be in memory; pass table.to_numpy() if they fit, "
            f"or leave such rows out: sql='select * from data where ...'"
        )
    refuse_partial(node, place)


def _is_location(node: Node) -> bool:
    return any(slot.role.moves for slot in getattr(node, "slots", {}).values())


def rows_first(node: Node, plate: Plate | None) -> None:
    """Refuse values that are read in blocks of rows unless rows are their first axis.

    Raises
    ------
    PlateError
        If they are not.
    """
    if node.plates[0] is not plate:
        names = ", ".join(p.name for p in node.plates)
        raise PlateError(
            f"the data of '{node.name}' are read in blocks of rows, and its rows are no first axis: its plates are "
            f"({names}). State the plate of the rows first, or pass an array: .to_numpy()"
        )


def lazy_weights(weights: LazyRows, n_rows: int, limits: tuple[float, float]) -> LazyRows:
    """Return weights of rows that are read in blocks, after a look at all of them.

    Raises
    ------
    DataError
        If they are no weights; see :func:`.binding.bind`.
    """
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight must have shape ({n_rows},), one weight a row; got {weights.shape}")
    largest, smallest_allowed, largest_allowed = 0.0, *limits
    for start, block in blocks_of(weights):
        wrong = ~(np.isfinite(block) & (block >= 0))
        if wrong.any():
            place = int(np.argmax(wrong))
            raise DataError(
                f"sample_weight must be finite and not negative; got {block[place]:g} in row {start + place}"
            )
        largest = max(largest, float(block.max()))
    if not largest:
        raise DataError("every sample_weight is zero; nothing is left to fit")
    if largest > largest_allowed:
        raise DataError(f"sample_weight is as large as {largest:g}; divide all weights by a number")
    if largest < smallest_allowed:
        raise DataError(
            f"the largest sample_weight is {largest:g}, of which sums have no digits; multiply all weights by a number"
        )
    return weights if weights.dtype == np.float64 else Computed(as_double, (weights,), (), np.float64)


def as_double(block: AnyArray) -> Array:
    """Return a block in double precision."""
    return np.ascontiguousarray(block, dtype=np.float64)
