"""The prior of a MAP fit: what the user gave, and flat for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._errors import ParameterError
from .._typing import Array
from ._arguments import as_array, as_positive_definite, require_number
from ._data_scale import DataScale

__all__ = ["read_map_prior"]

_NAMES = ("weight_concentration", "mean", "mean_precision", "degrees_of_freedom", "covariance")


def read_map_prior(prior: Any, scale: DataScale, n_components: int) -> dict[str, Any]:
    """Return the arguments of :func:`caviar.models.gaussian_mixture` for a ``prior``, flat where it says nothing.

    Raises
    ------
    ParameterError
        If a name is unknown, a value impossible, or one half of a pair is missing.

    Examples
    --------
    >>> from ._data_scale import scale_of
    >>> scale = scale_of(np.array([[0.0], [1.0]]))
    >>> read_map_prior({"covariance": [[0.5]]}, scale, 2)["df"]
    3
    """
    given = _checked_names(prior)
    size = len(scale.mean)
    stated = {
        "concentration": 1.0,
        "prior_mean": 0.0,
        "prior_precision": 0.0,
        "df": size + 1,
        "inverse_scale": np.zeros((size, size)),
    }
    if "weight_concentration" in given:
        stated["concentration"] = _concentration(given["weight_concentration"], n_components)
    if "mean" in given:
        stated["prior_mean"] = as_array("prior['mean']", given["mean"], (size,), "one number a column")
        stated["prior_precision"] = _mean_precision(given["mean_precision"], scale)
    if "covariance" in given:
        meaning = "columns by columns"
        stated["inverse_scale"] = as_positive_definite(
            "prior['covariance']", given["covariance"], (size, size), meaning
        )
        stated["df"] = size + 2
    if "degrees_of_freedom" in given:
        require_number("prior['degrees_of_freedom']", given["degrees_of_freedom"], above=size + 1)
        stated["df"] = given["degrees_of_freedom"]
    return stated


def _checked_names(prior: Any) -> Mapping[str, Any]:
    if not isinstance(prior, Mapping):
        raise ParameterError(
            f"prior must be None or a mapping with any of {', '.join(_NAMES)}; got {prior!r}"
        )
    for name in prior:
        if name not in _NAMES:
            raise ParameterError(
                f"prior has {name!r}, which it cannot have; what it can have is {', '.join(_NAMES)}"
            )
    if ("mean" in prior) != ("mean_precision" in prior):
        raise ParameterError(
            "prior must have both 'mean' and 'mean_precision', or neither for a flat prior of the means"
        )
    if "degrees_of_freedom" in prior and "covariance" not in prior:
        raise ParameterError("prior has 'degrees_of_freedom' without 'covariance', which it goes with")
    return prior


def _concentration(value: Any, n_components: int) -> Array:
    shape = np.shape(value) or (n_components,)
    concentration = as_array(
        "prior['weight_concentration']", np.broadcast_to(value, shape), (n_components,), "one a component"
    )
    if np.any(concentration < 1):
        raise ParameterError(
            f"prior['weight_concentration'] must be at least 1 for a MAP fit (below, the density is largest where a "
            f"weight is zero); got {value!r}"
        )
    return concentration


def _mean_precision(value: Any, scale: DataScale) -> Array:
    if np.ndim(value) == 0:
        require_number("prior['mean_precision']", value, above=0)
        return value * scale.precision
    size = len(scale.mean)
    return as_positive_definite("prior['mean_precision']", value, (size, size), "columns by columns")
