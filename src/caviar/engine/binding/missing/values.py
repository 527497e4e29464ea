"""Missing entries: NaN or masked entries of the data, which count as not observed.

A leaf whose entries are independent given their parents loses the terms of its missing entries: what is left is the
marginal, exactly. So every statistic of the leaf, and the number 1 in its other terms, is multiplied by an
indicator of what was observed. A row with nothing observed counts nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ...._errors import DataError
from ...._typing import AnyArray, Array
from ....language import Data, Label, Node, Plate, Variable
from ....lazy.block_map import all_of, largest_of, map_blocks
from ....lazy.rows import Computed, LazyRows, in_memory

OBSERVED = "observed"
"""Statistic of a leaf that is 1 where it was observed and 0 where not."""


def as_unmasked(value: object) -> object:
    """Return a masked array with NaN in its masked entries; return anything else unchanged."""
    if type(value) is np.ndarray or not np.ma.is_masked(value):
        return value
    array = np.ma.asarray(value)
    wide = np.float64 if array.dtype.kind in "biu" else array.dtype
    return np.ma.filled(array.astype(wide), np.nan)


def filled(node: Node, array: AnyArray, event_rank: int) -> tuple[AnyArray, AnyArray | None]:
    """Return an array without NaN, and which of its values were observed: None if all were.

    Missing values are replaced by one that their variable can have, which then counts nothing: the mean of those
    observed where that is a location, else one of them.

    Raises
    ------
    DataError
        If a known array has missing values, a vector is missing in part, or nothing was observed.
    """
    # the least of values with NaN is NaN, which differs from itself; a mask of all values takes memory
    if array.dtype.kind != "f" or not array.size:
        return array, None
    least = np.minimum.reduce(array, axis=None)
    if least == least:
        return array, None
    missing = np.isnan(array)
    if isinstance(node, Data):
        refuse_known_missing(node, np.argwhere(missing)[0])
    events = tuple(range(array.ndim - event_rank, array.ndim))
    gone = np.asarray(missing.any(axis=events))
    if not np.array_equal(gone, missing.all(axis=events)):
        refuse_partial(node, np.argwhere(gone & ~missing.all(axis=events))[0])
    if gone.all():
        raise DataError(f"the data of '{node.name}' are all missing (NaN)")
    replaced = array.copy()
    seen = ~gone
    mean = mean_of_observed(array, seen) if is_location(node) else np.array(np.nan)
    replaced[gone] = mean if np.isfinite(mean).all() else array[seen][0]
    return replaced, seen


def mean_of_observed(rows: Any, observed: Any) -> Array:
    """Return the mean of the values that were observed, wherever in the plates, of the shape of an event."""
    total, count = np.zeros(()), 0
    for _, (own, n_seen) in map_blocks(_sum_of_observed, rows, observed):
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + own
        count += n_seen
    return total / count


def _sum_of_observed(block: AnyArray, observed: AnyArray) -> tuple[Any, int]:
    seen = block[observed]
    with np.errstate(over="ignore", invalid="ignore"):
        return seen.sum(axis=0, dtype=np.float64), len(seen)


def refuse_known_missing(node: Node, place: AnyArray) -> NoReturn:
    """Refuse a missing value in a known array.

    Raises
    ------
    DataError
        Always.
    """
    raise DataError(
        f"'{node.name}' has a missing value (NaN){_in_row(place)}; only variables may have missing entries: "
        f"drop or impute such rows, or give the column a distribution: a variable of this name in the place of Data"
    )


def refuse_partial(node: Node, place: AnyArray) -> NoReturn:
    """Refuse a vector that is missing in part.

    Raises
    ------
    DataError
        Always.
    """
    raise DataError(
        f"'{node.name}', a {type(node).__name__}, has a missing value (NaN){_in_row(place)}, where the rest of "
        f"the vector is observed. Some entries of a vector may be missing only if there is one vector for "
        f"each row of data, MultivariateNormal(..., plates=obs); drop or impute such rows"
    )


def is_location(node: Node) -> bool:
    """Whether a node is a variable whose values move with the node in one of its slots, as with a mean."""
    return isinstance(node, Variable) and any(slot.role.moves for slot in node.slots.values())


def at_column_means(
    node: Node, array: AnyArray, seen: AnyArray, axis: int, weights: Array | None
) -> AnyArray:
    """Return a filled array in which missing values of a location are the weighted mean of their own column.

    They count nothing, but they are among what reference points and starts are found from, and columns may be in
    units of their own.

    Parameters
    ----------
    node
        Whose values they are.
    array, seen
        As :func:`filled` returns them.
    axis
        Of the rows.
    weights
        Weight of each row, or None for one each.

    See Also
    --------
    .lazy_values.LazyValues.at_column_means : the same of rows that are read in blocks.
    """
    if not is_location(node):
        return array
    rows, known = np.moveaxis(array, axis, 0), np.moveaxis(seen, axis, 0)
    means = weighted_means(rows, known, weights)
    known = known.reshape(known.shape + (1,) * (rows.ndim - known.ndim))
    # where no value has weight, any will do
    replaced = np.where(known | ~np.isfinite(means), rows, means)
    return np.moveaxis(replaced, 0, axis)


def weighted_means(rows: Any, observed: Any, weights: Any) -> Array:
    """Return the weighted mean of each entry of a row over the rows in which it was observed, of the shape of a row.

    It is not finite if no observed entry has weight.
    """
    largest = 1.0 if weights is None else largest_of(weights) or 1.0
    total = count = np.zeros(())
    for _, (own, share) in map_blocks(_WeightedSum(largest), rows, observed, weights):
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + own
        count = count + share
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return total / count


@dataclass(frozen=True, eq=False)
class _WeightedSum:
    """Sum of the observed entries of a block times their weight, and of these weights, in units of the largest."""

    largest: float

    def __call__(self, block: AnyArray, known: AnyArray, weights: Array | None) -> tuple[Array, Array]:
        known = known.reshape(known.shape + (1,) * (block.ndim - known.ndim))
        share = np.ones(len(block)) if weights is None else weights / self.largest
        share = known * share.reshape(-1, *(1,) * (block.ndim - 1))
        with np.errstate(over="ignore", invalid="ignore"):
            own = np.einsum("n...,n...->...", share, block.astype(np.float64, order="C", copy=False))
        return own, share.sum(axis=0)


def _in_row(where: AnyArray) -> str:
    """Return the row of an index in words; nothing of a single value."""
    return f" in row {where[0]}" if len(where) else ""


def partial_values(node: Variable, array: AnyArray) -> AnyArray | None:
    """Return the values of a hidden variable of the rows that is known in part; None if none is known.

    Labels that are unknown are -1, other values NaN.

    Raises
    ------
    DataError
        If it is a chain, a value is known in part only, or a known value is off its support.
    """
    if node.summed and not isinstance(node, Label):
        raise DataError(
            f"{node.in_words}, has missing values (NaN): steps of such a chain are all known or all hidden; leave "
            f"'{node.name}' out, or state what was seen of them as a variable that depends on '{node.name}'"
        )
    missing = np.isnan(array)
    events = tuple(range(array.ndim - node.value_rank, array.ndim))
    known = np.asarray(~missing.any(axis=events))
    if not np.array_equal(known, ~missing.all(axis=events)):
        raise DataError(
            f"{node.in_words}, has a missing value (NaN){_in_row(np.argwhere(~known)[0])} and variables below it: "
            f"each of its values is known as a whole or not at all"
        )
    if known.any():
        problem = node.problem_with(array[known])
        if problem:
            raise DataError(f"{node.in_words}, {problem}")
    if isinstance(node, Label):
        return np.where(known, array, -1.0).astype(np.intp)
    return array.astype(np.float64) if known.any() else None


def is_told(node: Variable, values: AnyArray) -> AnyArray:
    """Return where a variable is known, (plates...), from its values as `partial_values` returns them."""
    if isinstance(node, Label):
        return in_memory(values) >= 0
    own = in_memory(values)
    return ~np.isnan(own).any(axis=tuple(range(own.ndim - node.value_rank, own.ndim)))


@dataclass(frozen=True)
class Observations:
    """What was observed of the variables of a model.

    Attributes
    ----------
    latent, observed
        The variables without data, and those with data.
    masks
        Which entries of observed variables with missing values were observed.
    told
        Where variables that are known in part are known.
    values
        Of known nodes.
    plate, n_rows
        The data plate, and its size.
    """

    latent: Sequence[Variable]
    observed: Sequence[Variable]
    masks: Mapping[Node, AnyArray]
    told: Mapping[Node, AnyArray]
    values: Mapping[Node, AnyArray]
    plate: Plate | None
    n_rows: int


def observed_rows(own: Observations) -> Array | None:
    """Return 1 for each row in which anything was observed and 0 for the others; None if there are no others.

    What is told of a variable that is known in part was observed, whatever is below it.
    """
    along = [leaf for leaf in own.observed if own.plate in leaf.plates]
    if own.plate is None or not along or not all(leaf in own.masks for leaf in along):
        return None
    seen = any_observed(along, own.masks, own.told, own.plate)
    return None if all_of(seen) else seen


def any_observed(
    leaves: Sequence[Variable],
    masks: Mapping[Node, AnyArray],
    told: Mapping[Node, AnyArray],
    plate: Plate,
) -> Any:
    """Return 1 for each row in which anything of some leaves was observed, or told of others, and 0 for the others.

    All of these have missing entries.
    """
    given = [rows_first(masks[leaf], leaf, plate) for leaf in leaves]
    given += [rows_first(own, node, plate) for node, own in told.items()]
    return of_blocks(_any_of_row, given, (), np.float64)


def of_blocks(
    function: Callable[..., AnyArray], arrays: Sequence[Any], event: tuple[int, ...], dtype: Any
) -> Any:
    """Return a function of rows: lazy where one of the arrays is, and an array otherwise."""
    if any(isinstance(array, LazyRows) for array in arrays):
        return Computed(function, arrays, event, dtype)
    return function(*arrays)


def _any_of_row(*given: AnyArray) -> Array:
    """Return 1 for each row of which anything is true."""
    seen = np.zeros(len(given[0]), dtype=bool)
    for own in given:
        seen |= own.reshape(len(own), -1).any(axis=1)
    return seen.astype(np.float64)


def rows_first(array: Any, node: Node, plate: Plate) -> Any:
    """Return an array over the plates of a node, that of the rows first; lazy ones have it there."""
    return array if isinstance(array, LazyRows) else np.moveaxis(array, node.plates.index(plate), 0)


def seen_latents(own: Observations, rows: Array | None) -> dict[Variable, Any]:
    """Return for latents of the rows which have an observation below, or a known value, or are one; none where all do.

    Where its prior is known a latent without one stays at it and counts nothing. Otherwise it would count as an
    observation of its parents that was never made, and must be left out of the sums. In ``rows`` that do not count
    (0) everything is left out already.
    """
    found: dict[Variable, Any] = {}
    latent, masks, told, plate = own.latent, own.masks, own.told, own.plate
    for variable in latent:
        if plate not in variable.plates or variable.summed or not any(p in latent for p in variable.parents):
            continue
        below = [leaf for leaf in own.observed if is_above(variable, leaf)]
        known = [
            other
            for other in told
            if isinstance(other, Variable) and (other is variable or is_above(variable, other))
        ]
        if not below or not all(leaf in masks for leaf in below):
            continue
        if not all(set(variable.plates) <= set(node.plates) for node in (*below, *known)):
            continue
        assert plate is not None
        # rows first, for blocks of them
        kept = (plate, *(other for other in variable.plates if other is not plate))
        given = [rows_first(masks[leaf], leaf, plate) for leaf in below]
        given += [rows_first(told[other], other, plate) for other in known]
        axes = [
            _axes_over((plate, *(other for other in node.plates if other is not plate)), kept)
            for node in (*below, *known)
        ]
        own_plates = (plate, *(other for other in below[0].plates if other is not plate))
        sizes = tuple(given[0].shape[own_plates.index(other)] for other in kept[1:])
        by_row = of_blocks(_HasAny(tuple(axes)), given, sizes, np.bool_)
        if any(is_empty for _, is_empty in map_blocks(_is_empty, by_row, rows)):
            if not isinstance(by_row, LazyRows):
                by_row = np.moveaxis(by_row, 0, variable.plates.index(plate))
            found[variable] = by_row
    return found


@dataclass(frozen=True, eq=False)
class _HasAny:
    """Whether anything was observed, from blocks of masks.

    Attributes
    ----------
    axes
        Of each mask, the axes to look along, and the order of the rest.
    """

    axes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    def __call__(self, *masks: AnyArray) -> AnyArray:
        found = [
            np.transpose(np.asarray(mask.any(axis=along)), order)
            for mask, (along, order) in zip(masks, self.axes, strict=True)
        ]
        return np.any(found, axis=0)


def _axes_over(plates: Sequence[Plate], kept: Sequence[Plate]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes of a mask that are not kept, and the order of those that are."""
    others = tuple(i for i, plate in enumerate(plates) if plate not in kept)
    present = [plate for plate in plates if plate in kept]
    return others, tuple(present.index(plate) for plate in kept)


def _is_empty(block: AnyArray, rows: Any) -> bool:
    """Whether a row of a block that counts has a repetition of a latent without an observation."""
    empty = ~block.reshape(len(block), -1).all(axis=1)
    if rows is not None:
        empty &= rows > 0
    return bool(empty.any())


def refuse_unseen(variable: Variable, seen: AnyArray, observed: Iterable[Variable], plate: Plate) -> NoReturn:
    """Say that a latent without an observation cannot be left out.

    Raises
    ------
    DataError
        The message names the row, the latent, and the leaves below it.
    """
    by_row = np.moveaxis(in_memory(seen), variable.plates.index(plate), 0)
    row = np.argmin(by_row.reshape(len(by_row), -1).all(axis=1))
    names = ", ".join(f"'{leaf.name}'" for leaf in observed if is_above(variable, leaf))
    raise DataError(
        f"row {row} leaves the latent '{variable.name}' without an observation below it: all its entries of {names} "
        f"are missing. It cannot be left out, because other hidden values of the row depend on it. Drop "
        f"such rows, or fit {names} in a separate model"
    )


def is_above(variable: Variable, leaf: Variable) -> bool:
    """Whether a variable is a parent of another, or a parent of its parents."""
    parents = [parent for parent in leaf.parents if isinstance(parent, Variable)]
    return variable in parents or any(is_above(variable, parent) for parent in parents)


def refuse_infinite(node: Node, row: int) -> NoReturn:
    """Refuse data of a node, which are infinite in a row."""
    raise DataError(f"'{node.name}' has an infinity in row {row}; {node.instead_of_infinity}")
