"""The prior of a MAP fit: what the user gave, and flat for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._errors import ParameterError
from .._typing import Array
from ._arguments import as_array
from ._component_prior import as_means, degrees_of_freedom
from ._data_scale import DataScale
from ._structure import ComponentPrior, CovarianceStructure

__all__ = ["read_map_prior"]

_NAMES = ("weight_concentration", "mean", "mean_precision", "degrees_of_freedom", "covariance")


def read_map_prior(
    prior: Any, structure: CovarianceStructure, scale: DataScale, n_components: int
) -> tuple[Array, ComponentPrior]:
    """Return the concentration of the weights and the prior of the components for a ``prior``, flat where it is silent.

    Raises
    ------
    ParameterError
        If a name is unknown, a value impossible, or one half of a pair is missing.

    Examples
    --------
    >>> from ._data_scale import scale_of
    >>> from .structures import STRUCTURES
    >>> scale = scale_of(np.array([[0.0], [1.0]]))
    >>> read_map_prior({"covariance": [[0.5]]}, STRUCTURES["full"], scale, 2)[1].df
    3
    """
    given = _checked_names(prior)
    size = len(scale.mean)
    concentration = np.ones(())
    if "weight_concentration" in given:
        concentration = _concentration(given["weight_concentration"], n_components)
    mean = np.zeros(size)
    mean_precision = np.zeros_like(structure.independent.mean_precision("", 1.0, scale, n_components))
    if "mean" in given:
        mean = as_means("prior['mean']", given["mean"], n_components, size)
        mean_precision = structure.independent.mean_precision(
            "prior['mean_precision']", given["mean_precision"], scale, n_components
        )
    if structure.is_known:
        if "covariance" in given:
            structure.checked("prior['covariance']", given["covariance"], n_components, size)
        return concentration, ComponentPrior(mean, mean_precision, None, None)
    least = structure.wishart_size(size) + 1
    df, inverse_scale = least, np.zeros_like(structure.covariance_of(scale))
    if "covariance" in given:
        inverse_scale = structure.checked("prior['covariance']", given["covariance"], n_components, size)
        df = least + 1
    if "degrees_of_freedom" in given:
        df = degrees_of_freedom(
            "prior['degrees_of_freedom']", given["degrees_of_freedom"], structure, n_components, above=least
        )
    return concentration, ComponentPrior(mean, mean_precision, df, inverse_scale)


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
