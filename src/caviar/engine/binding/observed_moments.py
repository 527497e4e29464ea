"""Mean, spread and medians of what was observed of a variable, over the rows and other plates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._errors import DataError
from ..._typing import Array
from ...language import Data, Plate, Variable
from ...language.nodes.roles import PRECISION, PRECISION_MATRIX
from ...lazy.moments import medians, moments
from .bound_model import BoundModel

LARGEST = 1e152
"""Size of data whose squares, summed over rows and columns, still fit a double."""


def moments_of(bound: BoundModel, observed: Variable, kept: list[Plate]) -> tuple[Array, Array]:
    """Return the mean and the standard deviation over the data plate and the plates that are not kept."""
    rows, weights = rows_of(bound, observed, bound.values_of(observed))
    found = moments(rows, weights)
    if found.largest.max(initial=0.0) > LARGEST:
        raise DataError(
            f"'{observed.name}' holds values as large as {found.largest.max():.3g}, whose squares are beyond a double; "
            f"divide the data (and their priors) by a common factor so that they stay below {LARGEST:g}"
        )
    mean, spread = found.mean, found.spread
    averaged = axes_not_kept(bound, observed, kept)
    if not averaged:
        return mean, spread
    common = mean.mean(axis=averaged, keepdims=True)
    # the spread about the common mean, in two steps that neither over- nor underflow
    about = np.sqrt(np.mean(np.square(np.hypot(spread, mean - common) / _unit(mean, spread)), axis=averaged))
    return common.reshape(about.shape), about * _unit(mean, spread)


def are_like(mean: Array, bound: BoundModel, observed: Variable, kept: list[Plate]) -> bool:
    """Whether values in memory may have a mean that was measured before: by its shape and the largest value."""
    rows, _ = rows_of(bound, observed, bound.values_of(observed))
    if not isinstance(rows, np.ndarray):
        return False
    averaged = axes_not_kept(bound, observed, kept)
    shape = tuple(size for axis, size in enumerate(rows.shape[1:]) if axis not in averaged)
    return mean.shape == shape and -LARGEST < rows.min(initial=0.0) <= rows.max(initial=0.0) < LARGEST


def medians_of(bound: BoundModel, observed: Variable, kept: list[Plate]) -> Array:
    """Return the medians of what was observed, over the data plate and the plates that are not kept."""
    rows, weights = rows_of(bound, observed, bound.values_of(observed))
    found = medians(rows, weights, seen_rows(bound, observed), known_precisions(bound, observed))
    return np.median(found, axis=axes_not_kept(bound, observed, kept))


def seen_rows(bound: BoundModel, observed: Variable) -> Any:
    """Return which entries of a variable were observed, the rows first, or None if all were."""
    own = bound.of(observed)
    seen = own.observed if own.entries is None else own.entries.seen
    return None if seen is None else rows_of(bound, observed, seen)[0]


def rows_of(bound: BoundModel, observed: Variable, values: Any) -> tuple[Any, Any]:
    """Return values of a variable, or which were observed, with the rows first, and the weights of the rows."""
    if bound.data_plate not in observed.plates:
        return values[None], None
    along = observed.plates.index(bound.data_plate)
    return np.moveaxis(values, along, 0) if along else values, bound.row_weights


def axes_not_kept(bound: BoundModel, observed: Variable, kept: list[Plate]) -> tuple[int, ...]:
    """Return the axes of a row's values that are plates which are not kept."""
    plates = [plate for plate in observed.plates if plate is not bound.data_plate]
    return tuple([i for i, plate in enumerate(plates) if plate not in kept])


def _unit(mean: Array, spread: Array) -> float:
    return float(np.max(np.abs(mean)) + np.max(spread)) or 1.0


def known_precisions(bound: BoundModel, observed: Variable) -> Any:
    """Return known precisions of the rows of a variable, the rows first, or None if there are none."""
    for slot in observed.slots.values():
        node = slot.node
        is_along = (
            node.plates[:1] == (bound.data_plate,) and node.plates == observed.plates[: len(node.plates)]
        )
        if slot.role in (PRECISION, PRECISION_MATRIX) and isinstance(node, Data) and is_along:
            return bound.values_of(node)
    return None
