"""Prediction of values that are missing along a chain: steps ahead, and gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._errors import ModelError
from ..._typing import AnyArray, Array
from ...engine.binding.values import as_values
from ...language import Node, Plate, Variable, nodes_above
from ...lazy.rows import as_floats, in_memory
from .absent import predicted
from .given_in_some_rows import with_observed
from .prediction import Prediction


def predicted_along_chains(
    nodes: Sequence[Node],
    data: Mapping[str, Any],
    factors: Mapping[str, Any],
    local: Mapping[str, Any],
    data_plate: Plate | None,
) -> dict[str, Prediction]:
    """Return predictions of the observed variables below a chain that have missing values, by name.

    They cover all rows; a row keeps its values, with a standard deviation of 0. A variable whose mean or variance has
    no closed form has no prediction.

    Parameters
    ----------
    nodes
        Those of the model.
    data
        Name -> known arrays, and all observed variables.
    factors
        Name -> global factor.
    local
        Name -> local factor given ``data``, those of chains over all rows.
    data_plate
        The plate of the rows.
    """
    found: dict[str, Prediction] = {}
    factors = {name: factor for name, factor in factors.items() if name not in local}
    leaves = [
        node for node in nodes if isinstance(node, Variable) and node.name in data and node.name not in local
    ]
    by_row = {
        node.name: local[node.name].marginals if node.summed else local[node.name]
        for node in nodes
        if isinstance(node, Variable) and node.name in local
    }
    for leaf in leaves:
        above = [node for node in nodes_above([leaf]) if isinstance(node, Variable)]
        if not any(node.summed for node in above):
            continue
        values = as_floats(in_memory(as_values(leaf, data[leaf.name], leaf.value_rank)))
        if not np.isnan(values).any():
            continue
        hidden = {node.name for node in above if _is_forecast(node, local)}
        try:
            own = predicted(nodes, [leaf], data, factors, by_row, data_plate)[leaf.name]
            if hidden:
                rest = {name: factor for name, factor in by_row.items() if name not in hidden}
                ahead = predicted(nodes, [leaf], data, factors, rest, data_plate)[leaf.name]
                own = _chosen(_nothing_below(hidden, leaves, data, data_plate), ahead, own)
        except ModelError:
            continue
        found[leaf.name] = with_observed(own, np.moveaxis(values, leaf.plates.index(data_plate), 0))
    return found


def _is_forecast(variable: Variable, local: Mapping[str, Any]) -> bool:
    """Whether a hidden value of a row without observations below it depends on others of the row."""
    if variable.name not in local or variable.summed:
        return False
    return any(isinstance(parent, Variable) and parent.name in local for parent in variable.drawn_given)


def _nothing_below(
    names: set[str], leaves: Sequence[Variable], data: Mapping[str, Any], data_plate: Plate | None
) -> AnyArray:
    """Return the rows in which all values below some variables are missing, (N,)."""
    every = []
    for leaf in leaves:
        if any(node.name in names for node in nodes_above([leaf])) and data_plate in leaf.plates:
            missing = np.isnan(in_memory(as_values(leaf, data[leaf.name], leaf.value_rank)))
            by_row = np.moveaxis(missing, leaf.plates.index(data_plate), 0)
            every.append(by_row.reshape(len(by_row), -1).all(axis=1))
    return np.asarray(np.logical_and.reduce(every))


def _chosen(rows: AnyArray, one: Prediction, other: Prediction) -> Prediction:
    """Return the prediction ``one`` for the rows where ``rows`` is true, and ``other`` elsewhere."""

    def of(a: Any, b: Any, n_axes: int) -> Array:
        return np.where(rows.reshape(-1, *(1,) * (n_axes - 1)), a, b)

    rank = one.mean.ndim
    parts = (
        *((of(weight, 0.0, rank), mean, sd) for weight, mean, sd in one.parts),
        *((of(0.0, weight, rank), mean, sd) for weight, mean, sd in other.parts),
    )
    return Prediction(
        of(one.mean, other.mean, rank),
        of(one.standard_deviation, other.standard_deviation, rank),
        parts,
        one.by_moments,
        one.is_label,
    )
