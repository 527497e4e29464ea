"""The prior of the components that the arguments of a Bayesian mixture ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._errors import ParameterError
from ..._typing import Array
from ..arguments.checks import as_array, as_broadcast, require_choice
from ..tables.data_scale import DataScale
from .mean_precision_prior import GivenMeanPrecision, LearntMeanPrecision, MeanPrecisionPrior
from .scale_prior import EMPIRICAL, LEARNT, GivenScale, LearntScale, ScalePrior, is_learnt
from .structure import ComponentPrior, CovarianceStructure, Form


def as_means(name: str, given: Any, n_components: int, n_features: int) -> Array:
    """Return means that the user gave: one for all components, (D,), or one for each, (K, D).

    Raises
    ------
    ParameterError
        If they are impossible.
    """
    if np.ndim(given) == 2:
        return as_array(name, given, (n_components, n_features), "one row a component")
    return as_array(name, given, (n_features,), "one number a column")


def degrees_of_freedom(
    name: str, given: Any, structure: CovarianceStructure, n_components: int, above: float
) -> ArrayLike:
    """Return degrees of freedom that the user gave: a number, or (K,) where components have their own.

    Raises
    ------
    ParameterError
        If they are impossible.
    """
    own = structure.n_precisions(n_components)
    if own is None and np.ndim(given):
        raise ParameterError(
            f"{name} must be one number with covariance_type={structure.name!r}, whose components share their "
            f"precision; got {given!r}"
        )
    shape = (n_components,) if own is None else (own,)
    return as_broadcast(name, given, shape, "one number, or one a component", above=above)


def component_prior(
    structure: CovarianceStructure,
    form: Form,
    scale: DataScale,
    n_components: int,
    settings: Any,
) -> ComponentPrior:
    """Return the prior: what an estimator was given, and the rest from the data.

    Raises
    ------
    ParameterError
        If what was given is impossible.
    """
    size, mean, df = len(scale.mean), settings.mean_prior, settings.degrees_of_freedom_prior
    covariance = settings.covariance_prior
    prior_mean = scale.mean if mean is None else as_means("mean_prior", mean, n_components, size)
    kappa = _mean_precision_prior(form, scale, n_components, settings.mean_precision_prior)
    if structure.is_known:
        covariance = None if is_learnt(covariance) else covariance
        for name, given in (("degrees_of_freedom_prior", df), ("covariance_prior", covariance)):
            if given is not None:
                structure.checked(name, given, n_components, size)
        return ComponentPrior(prior_mean, kappa, None, None)
    return ComponentPrior(
        mean=prior_mean,
        mean_precision=kappa,
        df=degrees_of_freedom(
            "degrees_of_freedom_prior",
            size if df is None else df,
            structure,
            n_components,
            above=structure.wishart_size(size) - 1,
        ),
        inverse_scale=_scale_prior(structure, scale, n_components, covariance),
    )


def _scale_prior(
    structure: CovarianceStructure, scale: DataScale, n_components: int, covariance: Any
) -> ScalePrior:
    if isinstance(covariance, str):
        require_choice("covariance_prior, if it is not an array,", covariance, (LEARNT, EMPIRICAL))
    if is_learnt(covariance):
        return LearntScale(structure.variances_of(scale), scale.n_rows)
    if covariance is None or isinstance(covariance, str):
        return GivenScale(structure.covariance_of(scale))
    return GivenScale(structure.checked("covariance_prior", covariance, n_components, len(scale.mean)))


def _mean_precision_prior(form: Form, scale: DataScale, n_components: int, given: Any) -> MeanPrecisionPrior:
    name = "mean_precision_prior"
    if isinstance(given, str):
        require_choice(f"{name}, if it is not a number or array,", given, (LEARNT,))
        if form.learns_mean_precision:
            return LearntMeanPrecision()
    number = 1.0 if given is None or isinstance(given, str) else given
    return GivenMeanPrecision(form.mean_precision(name, number, scale, n_components))
