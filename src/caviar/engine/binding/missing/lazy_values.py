"""Values that are read in blocks: they are checked once, and then used block by block.

The values in place of missing entries, and which entries were observed, are not arrays of all rows: both are computed
from each block that is read, as NaN says there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._errors import DataError, PlateError
from ...._typing import AnyArray, Array
from ....language import MultivariateNormal, Node, Plate, Variable
from ....lazy.block_map import map_blocks
from ....lazy.rows import Computed, LazyRows
from .values import (
    is_location,
    mean_of_observed,
    refuse_infinite,
    refuse_known_missing,
    refuse_partial,
    weighted_means,
)


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

        See :func:`~caviar.engine.binding.missing.values.at_column_means`.
        """
        if self.mask is None or not is_location(node):
            return self.values
        means = weighted_means(self.values, self.mask, weights)
        fill = np.where(np.isfinite(means), means, self.values.read(0, 0).dtype.type(0))
        if not np.isfinite(means).all():
            assert isinstance(self.values, Computed)
            fill = np.where(np.isfinite(means), means, self.values.function.fill)  # type: ignore[attr-defined]
        dtype = np.result_type(self.given.dtype, fill.dtype)
        return Computed(_Filled(fill), (self.given,), self.given.shape[1:], dtype)


def lazy_values(node: Node, rows: LazyRows, event_rank: int) -> LazyValues | None:
    """Return values that are read in blocks, after one pass over them.

    None for vectors that are missing in part, of rows that are in memory or mapped: they are looked at as an array.

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
    for start, found in map_blocks(_Look(event_rank), rows):
        if found.infinite is not None:
            refuse_infinite(node, start + found.infinite)
        if found.missing is not None:
            n_missing += 1
            if rows.is_held and isinstance(node, MultivariateNormal):
                return None
            _refuse_missing(node, start, found)
        if first is None:
            first = found.first
    if not n_missing:
        return LazyValues(rows, None, rows)
    if first is None:
        raise DataError(f"the data of '{node.name}' are all missing (NaN)")
    mask = Computed(_Observed(event_rank), (rows,), rows.shape[1 : rows.ndim - event_rank], np.bool_)
    fill = np.asarray(first, dtype=rows.dtype)
    if is_location(node):
        mean = mean_of_observed(rows, mask)
        if np.isfinite(mean).all():
            fill = np.asarray(mean, dtype=rows.dtype)
    return LazyValues(Computed(_Filled(fill), (rows,), rows.shape[1:], rows.dtype), mask, rows)


@dataclass(frozen=True, eq=False)
class _Found:
    """What a block has: all that is asked about it, without its numbers.

    Attributes
    ----------
    first
        The first value that was observed; None if none was.
    infinite
        The first row with an infinity.
    missing, in_part
        Index of the first entry that is missing, and of the first value that is missing in part.
    ndim
        Axes of the block.
    """

    first: AnyArray | None = None
    infinite: int | None = None
    missing: AnyArray | None = None
    in_part: AnyArray | None = None
    ndim: int = 1


@dataclass(frozen=True, eq=False)
class _Look:
    """What one pass collects from a block of values."""

    event_rank: int

    def __call__(self, block: AnyArray) -> _Found:
        # a sum is finite only if its terms are, and costs less than a look at each; else each is looked at
        with np.errstate(over="ignore", invalid="ignore"):
            if block.size and np.isfinite(block.sum(dtype=np.float64)):
                return _Found(block[(0,) * (block.ndim - self.event_rank)].copy())
        infinite = np.isinf(block)
        if infinite.any():
            return _Found(infinite=int(np.argwhere(infinite)[0][0]))
        missing = np.isnan(block)
        event = tuple(range(block.ndim - self.event_rank, block.ndim))
        gone = np.asarray(missing.any(axis=event))
        first = None if gone.all() else block[~gone][0]
        if not gone.any():
            return _Found(first)
        in_part = gone & ~missing.all(axis=event)
        return _Found(first, None, np.argwhere(missing)[0], _first_of(in_part), block.ndim)


def _first_of(wanted: AnyArray) -> AnyArray | None:
    return np.argwhere(wanted)[0] if wanted.any() else None


def _moved(index: AnyArray, start: int) -> AnyArray:
    """Return the index among all rows of an entry of a block."""
    moved = index.copy()
    moved[0] += start
    return moved


def _refuse_missing(node: Node, start: int, found: _Found) -> None:
    assert found.missing is not None
    if not isinstance(node, Variable):
        refuse_known_missing(node, _moved(found.missing, start))
    if found.in_part is None:
        return
    place = _moved(found.in_part, start)
    if isinstance(node, MultivariateNormal) and found.ndim == 2:
        raise DataError(
            f"'{node.name}' has a vector with some entries missing (NaN), first in row {place[0]}: such "
            f"rows must all be in memory; pass table.to_numpy() if they fit, "
            f"or leave such rows out: sql='select * from data where ...'"
        )
    refuse_partial(node, place)


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
            f"the data of '{node.name}' are read in blocks of rows, but the rows are not its first axis: its "
            f"plates are ({names}). State the plate of the rows first, or pass an array: .to_numpy()"
        )


def lazy_weights(weights: LazyRows, n_rows: int, limits: tuple[float, float]) -> LazyRows:
    """Return weights of rows that are read in blocks, after one pass over them.

    Raises
    ------
    DataError
        If they are not weights; see :func:`~caviar.engine.binding.bind.bind`.
    """
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight must have shape ({n_rows},), one weight a row; got {weights.shape}")
    largest, smallest_allowed, largest_allowed = 0.0, *limits
    for start, (own, wrong) in map_blocks(_look_at_weights, weights):
        if wrong is not None:
            place, value = wrong
            raise DataError(
                f"sample_weight must be finite and not negative; got {value:g} in row {start + place}"
            )
        largest = max(largest, own)
    if not largest:
        raise DataError("every sample_weight is zero; nothing is left to fit")
    if largest > largest_allowed:
        raise DataError(
            f"the largest sample_weight is {largest:g}, too large for sums in double "
            f"precision; divide all weights by a number"
        )
    if largest < smallest_allowed:
        raise DataError(
            f"the largest sample_weight is {largest:g}, too small for sums in double precision; multiply "
            f"all weights by a number"
        )
    return weights if weights.dtype == np.float64 else Computed(as_double, (weights,), (), np.float64)


def _look_at_weights(block: AnyArray) -> tuple[float, tuple[int, float] | None]:
    """Return the largest weight, and the place and value of the first that is none."""
    wrong = ~(np.isfinite(block) & (block >= 0))
    if wrong.any():
        place = int(np.argmax(wrong))
        return 0.0, (place, float(block[place]))
    return float(block.max()), None


def as_double(block: AnyArray) -> Array:
    """Return a block in double precision."""
    return np.ascontiguousarray(block, dtype=np.float64)
