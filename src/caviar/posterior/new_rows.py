"""Rows that are drawn or predicted: their sizes, known arrays and known globals; values with the rows first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from .._errors import DataError, ParameterError
from .._typing import AnyArray
from ..engine.binding.clamped.given import refuse_missing_value


def check_new_rows(model: Any, sizes: Any, data: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse arrays among the sizes, values of drawn variables among the arrays, and missing known arrays."""
    for name, size in sizes.items() if isinstance(sizes, Mapping) else ():
        if not isinstance(size, Integral) and np.ndim(size):
            raise ParameterError(
                f"the first argument of predictive is sizes, a number for each plate, but '{name}' has an array of "
                f"shape {np.shape(size)}; known arrays of the new rows go to data=: "
                f"posterior.predictive(data={{'{name}': ...}})"
            )
    for name in known:
        if name not in data:
            refuse_missing_value(name)
    for name in data:
        if name in model.variables and name not in known:
            is_leaf = any(leaf.name == name for leaf in model.leaves)
            raise DataError(
                f"data= of predictive takes known arrays (Data) alone; '{name}' is a variable, which is drawn "
                f"anew: leave it out. For rows with known values, use "
                f"posterior.{'predict' if is_leaf else 'local'}(data)"
            )


def rows_first(posterior: Any, name: str, values: AnyArray, n_before: int = 0) -> AnyArray:
    """Return values of an observed variable or known array with the axis of the rows first, as predictions have it.

    Parameters
    ----------
    posterior
        Of the model.
    name
        Of the variable.
    values
        Shape (..., plates..., event...).
    n_before
        How many axes come before the plates.
    """
    plates = next(node.plates for node in posterior.model.nodes if node.name == name)
    if posterior.data_plate not in plates:
        return values
    return np.moveaxis(values, n_before + plates.index(posterior.data_plate), n_before)
