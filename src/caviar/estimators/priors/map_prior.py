"""The prior of a MAP fit: what the user gave, and flat for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._errors import ParameterError
from ..._typing import Array
from ..arguments.checks import as_array
from ..tables.data_scale import DataScale
from .component_prior import as_means, degrees_of_freedom
from .mean_precision_prior import GivenMeanPrecision
from .scale_prior import GivenScale
from .structure import ComponentPrior, CovarianceStructure

_NAMES = ("weight_concentration", "mean", "mean_precision", "degrees_of_freedom", "covariance")


def check_names(prior: Any) -> None:
    """Refuse a prior with names that there are not, or with one half of a pair.

    Raises
    ------
    ParameterError
        If it is such a one, or no mapping.
    """
    if prior is None:
        return
    if not isinstance(prior, Mapping):
        raise ParameterError(
            f"prior must be None or a mapping with any of {', '.join(_NAMES)}; got {prior!r}"
        )
    for name in prior:
        if name not in _NAMES:
            raise ParameterError(f"prior has an unknown key {name!r}; the known keys are {', '.join(_NAMES)}")
    if ("mean" in prior) != ("mean_precision" in prior):
        raise ParameterError(
            "prior must have both 'mean' and 'mean_precision', or neither for a flat prior of the means"
        )
    if "degrees_of_freedom" in prior and "covariance" not in prior:
        raise ParameterError("prior has 'degrees_of_freedom' but no 'covariance'; give both")


def map_concentration(prior: Mapping[str, Any] | None, n_components: int) -> Array:
    """Return the concentration of the weights, (K,): 1, which is flat, where the prior is silent.

    Raises
    ------
    ParameterError
        If it is impossible.
    """
    value = (prior or {}).get("weight_concentration", 1.0)
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


def map_prior(
    prior: Mapping[str, Any] | None,
    structure: CovarianceStructure,
    scale: DataScale,
    n_components: int,
    smallest_variance: ArrayLike | None = None,
) -> ComponentPrior:
    """Return the prior of the components, flat where ``prior`` is silent, with a floor on the variances.

    Raises
    ------
    ParameterError
        If a value is impossible.

    Examples
    --------
    >>> from ..tables.data_scale import scale_of
    >>> from ..structures import STRUCTURES
    >>> scale = scale_of(np.array([[0.0], [1.0]]))
    >>> map_prior({"covariance": [[0.5]]}, STRUCTURES["full"], scale, 2).df
    3
    """
    given = prior or {}
    size = len(scale.mean)
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
        return ComponentPrior(mean, GivenMeanPrecision(mean_precision), None, None)
    flat = structure.wishart_size(size) + 1
    df, inverse_scale = flat, np.zeros_like(structure.covariance_of(scale))
    if "covariance" in given:
        inverse_scale = structure.checked("prior['covariance']", given["covariance"], n_components, size)
        df = flat + 1
    if "degrees_of_freedom" in given:
        df = degrees_of_freedom(
            "prior['degrees_of_freedom']", given["degrees_of_freedom"], structure, n_components, above=flat
        )
    return ComponentPrior(
        mean, GivenMeanPrecision(mean_precision), df, GivenScale(inverse_scale), smallest_variance
    )
