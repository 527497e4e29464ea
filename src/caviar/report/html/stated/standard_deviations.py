"""Standard deviations beside precisions: what a precision says in the units of the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import gammaincinv, gammaln

from ...._typing import Array
from ....families import Gamma, NormalGamma, NormalWishart, Wishart
from ....families._marginals import variable_and_part
from ....posterior.integration.integrated import Weighted
from .figures import LEVEL, Figures

_ENDS = (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)


def standard_deviations(posterior: Any, figures: list[Figures]) -> list[Figures]:
    r"""Return the standard deviations of the precisions among the variables of a posterior.

    A precision :math:`\tau \sim \mathrm{Gamma}(a, b)` is the standard deviation :math:`\tau^{-1/2}`, of mean
    :math:`\sqrt b\, \Gamma(a - 1/2) / \Gamma(a)`; its quantiles are those of the precision, transformed. A variance
    on the diagonal of the inverse of :math:`W(\nu, B)` is an inverse Gamma number with shape
    :math:`(\nu - D + 1) / 2` and scale :math:`B_{kk} / 2`. Where the posterior shows a precision by weighted values,
    these are transformed.

    Parameters
    ----------
    posterior
        Of any model.
    figures
        Those of its variables.
    """
    found = []
    for own in figures:
        variable, part = variable_and_part(own.name, posterior)
        if part == "mean" or not (part == "precision" or _is_precision(posterior, variable)):
            continue
        weighted = posterior._weighted(variable)
        if weighted is not None:
            found.append(_of_values(own, weighted))
            continue
        gamma = _gamma_of(posterior[variable], own)
        if gamma is None:
            continue
        shape, scale = np.broadcast_arrays(*gamma)
        if not np.all(shape > 0.5):
            continue
        found.append(_figures(own, shape, scale))
    return found


def _is_precision(posterior: Any, name: str) -> bool:
    """Whether a variable is the precision of another, by itself and not as a part of a product."""
    slots = [
        variable.slots.get("precision")
        for variable in posterior.model.variables.values()
        if variable.name != name
    ]
    return any(slot is not None and slot.node is not None and slot.node.name == name for slot in slots)


def _gamma_of(factor: Any, own: Figures) -> tuple[Array, Array] | None:
    """Return shape and scale of the inverse Gamma variance of each entry; None for a point or another family."""
    if isinstance(factor, Gamma):
        # as wide as the posterior shows it
        if own.sd is None:
            return None
        shape = (own.mean / own.sd) ** 2
        return shape, shape / own.mean
    if isinstance(factor, NormalGamma):
        return np.asarray(factor.shape), np.asarray(factor.rate)
    if isinstance(factor, Wishart | NormalWishart):
        size = np.asarray(factor.inverse_scale).shape[-1]
        df = np.asarray(factor.df)[..., np.newaxis]
        diagonal = np.diagonal(np.asarray(factor.inverse_scale), axis1=-2, axis2=-1)
        return 0.5 * (df - size + 1.0), 0.5 * diagonal
    return None


def _figures(own: Figures, shape: Array, scale: Array) -> Figures:
    """Return the figures of standard deviations, of a matrix those of its diagonal."""
    mean = np.sqrt(scale) * np.exp(gammaln(shape - 0.5) - gammaln(shape))
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(shape > 1, scale / (shape - 1) - mean**2, np.nan)
        lower, upper = (np.sqrt(scale / gammaincinv(shape, 1.0 - end)) for end in _ENDS)
    return _named(own, mean, np.sqrt(np.maximum(variance, 0.0)), (lower, upper))


def _of_values(own: Figures, weighted: Weighted) -> Figures:
    """Return the figures of the standard deviations that belong to weighted precisions."""
    values = np.asarray(weighted.values)
    variances = np.diagonal(np.linalg.inv(values), axis1=-2, axis2=-1) if own.n_event == 2 else 1.0 / values
    found = replace(weighted, values=np.sqrt(variances))
    return _named(own, found.mean, found.sd, found.interval(LEVEL))


def _named(own: Figures, mean: Array, sd: Array, ends: Any) -> Figures:
    is_matrix = own.n_event == 2
    lower, upper = ends
    return replace(
        own,
        name=f"{own.name} as sd",
        shown=f"{own.shown} as sd",
        labels=own.labels[:-1] if is_matrix else own.labels,
        are_named=own.are_named[:-1] if is_matrix else own.are_named,
        mean=mean,
        sd=sd,
        lower=lower,
        upper=upper,
    )
