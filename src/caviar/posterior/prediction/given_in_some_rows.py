"""Predictions of numbers and labels that are missing in some rows, or in part: from the rest of their row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ...language import Data, Node, Plate, Variable, nodes_above
from ...lazy.rows import LazyRows, as_floats
from ...names import Placed
from .prediction import Prediction


def numbers_later(
    leaves: Sequence[Variable],
    data: Any,
    data_plate: Plate | None,
    predicted: Callable[[Placed], Mapping[str, Any]],
    from_the_rest: Callable[[Sequence[Variable]], Mapping[str, Prediction]],
) -> dict[str, Callable[[], Prediction]]:
    """Return a function that predicts numbers and labels that are missing in some rows, or in part of a row.

    Parameters
    ----------
    leaves
        Observed variables that are among the data. Those below a chain are left out: their rows depend on each other.
    data
        Name -> array, missing values as NaN.
    data_plate
        The plate of the rows.
    predicted
        Returns predictions of the variables that are not in data, by name.
    from_the_rest
        Returns predictions of variables with several values a row, where what is hidden in the row has its distribution
        given those that are there.
    """

    def told(leaf: Variable) -> Prediction:
        place = [plate is data_plate for plate in leaf.plates].index(True)
        values = np.moveaxis(as_floats(data[leaf.name]), place, 0)
        if len(leaf.plates) > 1:
            return with_observed(from_the_rest([leaf])[leaf.name], values)
        rest = Placed({other: value for other, value in data.items() if other != leaf.name})
        return with_observed(predicted(rest)[leaf.name], values)

    return {
        leaf.name: partial(told, leaf)
        for leaf in leaves
        if _is_within_rows(leaf, data_plate)
        and not leaf.value_rank
        and not isinstance(data[leaf.name], LazyRows)
        and np.isnan(as_floats(data[leaf.name])).any()
    }


def with_observed(found: Prediction, values: Array) -> Prediction:
    """Return a prediction of all rows with the observed values in theirs, where the standard deviation is 0.

    Parameters
    ----------
    found
        Of numbers, or of labels.
    values
        One a row, or several, rows along the first axis; NaN where it is missing.
    """
    missing = np.isnan(values)
    if found.is_label:
        places = np.where(missing, 0, values).astype(np.int64)
        known = np.eye(found.mean.shape[-1])[places]
        return Prediction.of_probabilities(np.where(missing[..., np.newaxis], found.mean, known))
    parts = tuple(
        (weight, np.where(missing, mean, values), np.where(missing, sd, 0.0))
        for weight, mean, sd in found.parts
    )
    mean, sd = np.where(missing, found.mean, values), np.where(missing, found.standard_deviation, 0.0)
    return replace(found, mean=mean, standard_deviation=sd, parts=parts)


def without_missing(nodes: Sequence[Node], data: Any, data_plate: Plate | None) -> Any:
    """Return data without the observed variables that no row has, if the number of rows is known otherwise.

    Parameters
    ----------
    nodes
        Those of the model.
    data
        Name -> array, missing values as NaN.
    data_plate
        The plate of the rows.
    """
    if not isinstance(data, Mapping):
        return data
    own = [node for node in nodes if node.name in data and data_plate in node.plates]
    missing = {
        node.name
        for node in own
        if isinstance(node, Variable) and _is_of_rows(node, data_plate) and _is_missing(data[node.name])
    }
    if not missing or not any(isinstance(node, Data) or node.name not in missing for node in own):
        return data
    return {name: value for name, value in data.items() if name not in missing}


def known_inside(
    nodes: Sequence[Node], leaves: Sequence[Variable], data: Any, data_plate: Plate | None
) -> list[Variable]:
    """Return variables of the rows on which others depend, known in some rows, below what these hide.

    Parameters
    ----------
    nodes, leaves
        Those of the model.
    data
        Name -> array, missing values as NaN.
    data_plate
        The plate of the rows.
    """

    def is_hidden(node: Node) -> bool:
        return isinstance(node, Variable) and data_plate in node.plates and node.name not in data

    return [
        node
        for node in nodes
        if isinstance(node, Variable)
        and node not in leaves
        and data_plate in node.plates
        and node.name in data
        and not _is_missing(data[node.name])
        and any(is_hidden(other) for other in nodes_above([node]))
    ]


def nothing_left(leaves: Sequence[Variable]) -> str:
    """Return the message for data with all observed variables of a model without local ones."""
    names = ", ".join(f"'{leaf.name}'" for leaf in leaves)
    return (
        f"the data have {names} in every row, so nothing is left to predict. Leave out the variable to predict, as in "
        f"frame.drop(columns={leaves[0].name!r}), or set it to NaN in the rows to predict. "
        f"posterior.residuals(data) compares observed values with predictions"
    )


def _is_of_rows(variable: Variable, data_plate: Plate | None) -> bool:
    """Whether a variable has one value a row, and those of different rows are independent given the globals."""
    return variable.plates == (data_plate,) and _is_within_rows(variable, data_plate)


def _is_within_rows(variable: Variable, data_plate: Plate | None) -> bool:
    """Whether a variable has values in each row, and those of different rows are independent given the globals."""
    above = nodes_above([variable])
    return data_plate in variable.plates and not any(
        isinstance(node, Variable) and node.summed for node in above
    )


def _is_missing(values: Any) -> bool:
    return not isinstance(values, LazyRows) and bool(np.isnan(as_floats(values)).all())
