"""A summary of the data of a fit, without any value: rows, missing entries, and moments of each column.

Small data are copied before a fit; their summary can then be computed when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._typing import AnyArray, Array
from ..engine.binding.bound_model import BoundModel
from ..engine.checkpoint.row_marks import RowMarks, marks_of
from ..engine.rows.row_map import RowMap
from ..language import Constant, Node
from ..lazy.block_map import total_of
from ..lazy.rows import LazyRows
from ..names import NamedData, Placed
from ..numerics.records import replaced
from ..posterior.diagnostics.data_of_the_fit import Looks
from ..posterior.posterior import Posterior

_FEW = 8_192
"""Numbers that are copied sooner than looked at."""

_BLOCK = 65_536
"""Numbers that are looked at together."""


def summary_of_data(bound: BoundModel, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a summary of bound data as plain values.

    Parameters
    ----------
    bound
        A model's nodes with their data.
    data
        The data as they came, for the names of columns.

    Returns
    -------
    dict
        ``"rows"``; ``"weight"``, the sum of their weights; and ``"arrays"``: name -> ``"shape"``, ``"missing"``, how
        many entries are, and of the others by column ``"mean"`` and ``"standard_deviation"``; ``"columns"`` where
        these have names. O(N); of rows that are not in memory, which would be read once more, the shape only.
    """
    weights = bound.row_weights
    return {
        "rows": int(bound.n_rows),
        "weight": float(bound.n_rows) if weights is None else total_of(weights),
        "arrays": {
            node.name: {**_of_array(bound, node, value), **_column_names(data, node.name)}
            for node, value in bound.known_values.items()
            if not isinstance(node, Constant)
        },
    }


def _column_names(data: Any, name: str) -> dict[str, Any]:
    columns = getattr(data.get(name), "columns", None) if isinstance(data, Mapping) else None
    return {} if columns is None else {"columns": [str(name) for name in columns]}


def _of_array(bound: BoundModel, node: Node, value: Any) -> dict[str, Any]:
    shape = [int(size) for size in getattr(value, "shape", ())]
    if isinstance(value, LazyRows):
        return {"shape": shape}
    found: dict[str, Any] = {"shape": shape, "missing": 0}
    if issparse(value):
        mean = np.asarray(value.mean(axis=0)).ravel()
        square = np.asarray(value.multiply(value).mean(axis=0)).ravel()
        return {**found, "mean": mean, "standard_deviation": np.sqrt(np.maximum(square - mean**2, 0.0))}
    if not isinstance(value, np.ndarray) or not value.size:
        return found
    seen = _seen(bound, node, value)
    axis = node.plates.index(bound.data_plate) if bound.data_plate in node.plates else None
    rows = value[np.newaxis] if axis is None else np.moveaxis(value, axis, 0)
    if seen is None:
        mean, deviation = _moments(rows)
        return {**found, "mean": mean, "standard_deviation": deviation}
    seen = seen[np.newaxis] if axis is None else np.moveaxis(seen, axis, 0)
    mean, deviation = _moments(rows, seen)
    return {
        **found,
        "missing": int(value.size - np.count_nonzero(seen)),
        "mean": mean,
        "standard_deviation": deviation,
    }


def _seen(bound: BoundModel, node: Node, value: AnyArray) -> AnyArray | None:
    """Return which entries were observed, of the shape of the values; None if all were."""
    own = bound.of(node)
    if own.entries is not None:
        return own.entries.seen
    if own.observed is None:
        return None
    mask = own.observed
    return np.broadcast_to(mask.reshape(mask.shape + (1,) * (value.ndim - mask.ndim)), value.shape)


def _moments(rows: AnyArray, seen: AnyArray | None = None) -> tuple[Array, Array]:
    """Return mean and standard deviation over the first axis; 0 where nothing was observed."""
    size = max(1, _BLOCK // max(1, rows[0].size))
    blocks = [slice(start, start + size) for start in range(0, len(rows), size)]
    total: Any = len(rows) if seen is None else np.maximum(seen.sum(axis=0), 1)

    def added(values: AnyArray, block: slice) -> Array:
        return (values if seen is None else values * seen[block]).sum(axis=0, dtype=np.float64)

    with np.errstate(over="ignore", invalid="ignore"):
        mean = sum(added(rows[block], block) for block in blocks) / total
        square = sum(added(np.square(rows[block] - mean), block) for block in blocks)
        return np.asarray(mean, dtype=np.float64), np.asarray(np.sqrt(square / total), dtype=np.float64)


def of_its_own(met: NamedData, sample_weight: Any) -> tuple[NamedData, Any, bool]:
    """Return data and weights, and whether they are copies, as they are if small."""
    values, weight = met.values, sample_weight
    if type(values) is not Placed or not _are_arrays(
        [*values.values(), *(() if weight is None else (weight,))]
    ):
        return met, sample_weight, False
    own = Placed({name: value.copy("K") for name, value in values.items()})
    return replaced(met, values=own), None if weight is None else weight.copy(), True


def _are_arrays(values: list[Any]) -> bool:
    """Whether all are plain arrays of numbers, and few of these."""
    if not all(type(own) is np.ndarray and own.dtype.kind in "biuf" for own in values):
        return False
    return sum([own.size for own in values]) <= _FEW


def looks_at(
    bound: BoundModel, row_map: RowMap, data: Any, names: list[str], prior: Posterior | None, is_own: bool
) -> Looks:
    """Return the looks at the data of a fit: to come where they are its own, and made where they are not.

    Parameters
    ----------
    bound, row_map
        The model with its data, and the map over the rows.
    data
        As they came, for the names of columns.
    names
        Of what makes a row of data.
    prior
        The posterior whose rows came before.
    is_own
        Whether the data are copies.
    """
    summary = partial(summary_of_data, bound, data)
    marks = partial(_marks, names, row_map.source, None if prior is None else (prior.row_marks,))
    if is_own:
        return Looks(summary, marks, {})
    made, marked = summary(), marks()
    return Looks(lambda: made, lambda: marked, {})


def _marks(names: list[str], source: Any, before: tuple[RowMarks | None] | None) -> RowMarks | None:
    """Return the marks of the rows of a fit, and of those of the fits before it; None where these are not known."""
    found = marks_of(names, source)
    if before is None or found is None:
        return found
    (earlier,) = before
    return None if earlier is None else earlier.and_those_of(found)
