"""Missing entries: NaN or masked entries of the data, which count as not observed.

A leaf whose entries are independent given their parents loses the terms of its missing entries: what is left is the
marginal, exactly. So every statistic of the leaf, and the number 1 in its other terms, is multiplied by an
indicator of what was observed. A row with nothing observed counts nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from .._errors import DataError
from .._typing import AnyArray, Array
from ..language import Data, Node, Plate, Variable

__all__ = [
    "OBSERVED",
    "as_unmasked",
    "filled",
    "is_mask_name",
    "mask_name",
    "observed_rows",
    "partial_labels",
    "refuse_unseen",
    "seen_latents",
    "with_column_means",
]

OBSERVED = "observed"
"""Statistic of a leaf that is 1 where it was observed and 0 where not."""


def mask_name(name: str) -> str:
    """Return the name of the column that tells which entries of another were observed: no node can have it."""
    return f"{name}\0{OBSERVED}"


def is_mask_name(name: str) -> bool:
    """Whether a column tells which entries of another were observed."""
    return "\0" in name


def as_unmasked(value: object) -> object:
    """Return a masked array with NaN in its masked entries, anything else as it is."""
    if not np.ma.is_masked(value):
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
    missing = np.isnan(array) if array.dtype.kind == "f" else None
    if missing is None or not missing.any():
        return array, None
    if isinstance(node, Data):
        place = _in_row(np.argwhere(missing)[0])
        raise DataError(
            f"'{node.name}' has a missing value (NaN){place}; only observed variables may have missing "
            f"entries: drop or impute such rows, or model '{node.name}' as a variable"
        )
    events = tuple(range(array.ndim - event_rank, array.ndim))
    gone = np.asarray(missing.any(axis=events))
    if not np.array_equal(gone, missing.all(axis=events)):
        place = _in_row(np.argwhere(gone & ~missing.all(axis=events))[0])
        raise DataError(
            f"'{node.name}', a {type(node).__name__}, has a missing value (NaN){place}, where the rest of "
            f"the vector is observed. State the columns as numbers, Normal(..., plates=(obs, column)), whose missing "
            f"entries are marginalised exactly; or drop or impute such rows"
        )
    if gone.all():
        raise DataError(f"the data of '{node.name}' are all missing (NaN)")
    replaced = array.copy()
    seen = array[~gone]
    is_location = any(slot.role.moves for slot in getattr(node, "slots", {}).values())
    with np.errstate(over="ignore"):
        mean = seen.mean(axis=0, dtype=np.float64)
    replaced[gone] = mean if is_location and np.isfinite(mean).all() else seen[0]
    return replaced, ~gone


def with_column_means(
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
    """
    if not any(slot.role.moves for slot in getattr(node, "slots", {}).values()):
        return array
    rows, known = np.moveaxis(array, axis, 0), np.moveaxis(seen, axis, 0)
    known = known.reshape(known.shape + (1,) * (rows.ndim - known.ndim))
    share = np.ones(len(rows)) if weights is None else weights / (weights.max() or 1.0)
    share = known * share.reshape(-1, *(1,) * (rows.ndim - 1))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        means = np.einsum("n...,n...->...", share, rows.astype(np.float64, copy=False)) / share.sum(axis=0)
    # where no value has weight, any will do
    replaced = np.where(known | ~np.isfinite(means), rows, means)
    return np.moveaxis(replaced, 0, axis)


def _in_row(where: AnyArray) -> str:
    """Return the row of an index in words; nothing of a single value."""
    return f" in row {where[0]}" if len(where) else ""


def partial_labels(node: Variable, array: AnyArray) -> AnyArray:
    """Return known labels of a latent Categorical, -1 where NaN says that they are unknown.

    Raises
    ------
    DataError
        If it is no Categorical, or a known label is off its support.
    """
    if not hasattr(node, "categories"):
        raise DataError(
            f"'{node.name}', a {type(node).__name__}, has missing values (NaN) and variables below it; only a latent "
            f"Categorical may be known in part"
        )
    known = ~np.isnan(array)
    if known.any():
        problem = node.problem_with(array[known])
        if problem:
            raise DataError(f"'{node.name}', a {type(node).__name__}, {problem}")
    return np.where(known, array, -1.0).astype(np.intp)


def observed_rows(
    observed: Iterable[Variable],
    masks: Mapping[Node, AnyArray],
    labels: Mapping[Node, AnyArray],
    plate: Plate | None,
    n_rows: int,
) -> Array | None:
    """Return 1 for each row in which anything was observed and 0 for the others; None if there are no others.

    A known label of a Categorical that is known in part (-1 where it is not) was observed, whatever is below it.
    """
    along = [leaf for leaf in observed if plate in leaf.plates]
    if plate is None or not along or not all(leaf in masks for leaf in along):
        return None
    seen = np.zeros(n_rows, dtype=bool)
    for leaf in along:
        mask = np.moveaxis(masks[leaf], leaf.plates.index(plate), 0)
        seen |= mask.reshape(n_rows, -1).any(axis=1)
    for node, own in labels.items():
        known = np.moveaxis(own >= 0, node.plates.index(plate), 0)
        seen |= known.reshape(n_rows, -1).any(axis=1)
    return None if seen.all() else seen.astype(np.float64)


def seen_latents(
    latent: Sequence[Variable],
    observed: Sequence[Variable],
    masks: Mapping[Node, AnyArray],
    labels: Mapping[Node, AnyArray],
    plate: Plate | None,
    rows: Array | None,
) -> dict[Variable, AnyArray]:
    """Return for latents of the rows which of them have an observation below, or a known label; where all have, none.

    Where its prior is known a latent without one stays at it and counts nothing. Otherwise it would count as an
    observation of its parents that was never made, and must be left out of the sums. In ``rows`` with nothing
    observed (0) everything is left out already.
    """
    found: dict[Variable, AnyArray] = {}
    for variable in latent:
        if plate not in variable.plates or variable.summed or not any(p in latent for p in variable.parents):
            continue
        below = [leaf for leaf in observed if _is_above(variable, leaf)]
        if not below or not all(leaf in masks and set(variable.plates) <= set(leaf.plates) for leaf in below):
            continue
        has_any = np.any([_over(masks[leaf], leaf.plates, variable.plates) for leaf in below], axis=0)
        if variable in labels:
            has_any = has_any | (labels[variable] >= 0)
        by_row = np.moveaxis(has_any, variable.plates.index(plate), 0)
        empty = ~by_row.reshape(len(by_row), -1).all(axis=1)
        if rows is not None:
            empty &= rows > 0
        if empty.any():
            found[variable] = has_any
    return found


def refuse_unseen(variable: Variable, seen: AnyArray, observed: Iterable[Variable], plate: Plate) -> NoReturn:
    """Say that a latent without an observation cannot be left out.

    Raises
    ------
    DataError
        The message names the row, the latent, and the leaves below it.
    """
    by_row = np.moveaxis(seen, variable.plates.index(plate), 0)
    row = np.argmin(by_row.reshape(len(by_row), -1).all(axis=1))
    names = ", ".join(f"'{leaf.name}'" for leaf in observed if _is_above(variable, leaf))
    raise DataError(
        f"row {row} leaves the latent '{variable.name}' without an observation below it: all its entries of {names} "
        f"are missing. It would count as data for its parents, and other hidden values of the row depend on it, so "
        f"that it cannot be left out. Drop such rows, or fit {names} in a model of its own"
    )


def _is_above(variable: Variable, leaf: Variable) -> bool:
    parents = [parent for parent in leaf.parents if isinstance(parent, Variable)]
    return variable in parents or any(_is_above(variable, parent) for parent in parents)


def _over(mask: AnyArray, plates: tuple[Plate, ...], kept: tuple[Plate, ...]) -> AnyArray:
    """Return whether anything was observed, over the kept plates in their order."""
    others = tuple(i for i, plate in enumerate(plates) if plate not in kept)
    present = [plate for plate in plates if plate in kept]
    return np.transpose(np.asarray(mask.any(axis=others)), tuple(present.index(plate) for plate in kept))
