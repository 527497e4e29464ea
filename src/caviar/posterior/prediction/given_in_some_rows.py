"""Predictions of numbers and labels that only some rows have: the others are predicted from the rest of their row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._typing import Array
from ...language import Data, Node, Plate, Variable, nodes_above
from ...lazy.rows import LazyRows
from ...names import Placed
from .prediction import Prediction


def numbers_later(
    leaves: Sequence[Variable],
    data: Any,
    data_plate: Plate | None,
    predicted: Callable[[Placed], Mapping[str, Any]],
) -> dict[str, Callable[[], Prediction]]:
    """Return a function that predicts numbers and labels that only some rows have.

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
    """

    def told(name: str) -> Prediction:
        rest = Placed({other: value for other, value in data.items() if other != name})
        return with_observed(predicted(rest)[name], _filled(data[name]))

    return {
        leaf.name: partial(told, leaf.name)
        for leaf in leaves
        if _is_of_rows(leaf, data_plate)
        and not leaf.value_rank
        and not isinstance(data[leaf.name], LazyRows)
        and np.isnan(_filled(data[leaf.name])).any()
    }


def with_observed(found: Prediction, values: Array) -> Prediction:
    """Return a prediction of all rows with the observed values in theirs, where the standard deviation is 0.

    Parameters
    ----------
    found
        Of numbers, or of labels.
    values
        One a row; NaN where it is missing.
    """
    missing = np.isnan(values)
    if found.is_label:
        places = np.where(missing, 0, values).astype(np.int64)
        known = np.eye(found.mean.shape[-1])[places]
        return Prediction.of_probabilities(np.where(missing[:, np.newaxis], found.mean, known))
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
    above = nodes_above([variable])
    return variable.plates == (data_plate,) and not any(
        isinstance(node, Variable) and node.summed for node in above
    )


def _is_missing(values: Any) -> bool:
    return not isinstance(values, LazyRows) and bool(np.isnan(_filled(values)).all())


def _filled(values: Any) -> Array:
    return np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
