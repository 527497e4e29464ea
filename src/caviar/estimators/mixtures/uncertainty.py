"""How well the means and weights of a fitted mixture are known: their marginal distributions under the posterior.

If the posterior shows linear response, they have its standard deviations; to second order its means too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtrit

from ..._typing import Array
from ...engine.binding.clamped.factor import ClampedFactor
from ...families import (
    Dirichlet,
    ExponentialFamily,
    MultivariateNormal,
    Normal,
    NormalGamma,
    NormalWishart,
    TiedNormalGamma,
    TiedNormalWishart,
)
from ...numerics.arguments import central_ends


@dataclass(frozen=True)
class MeanMarginal:
    r"""Marginals of K means in D dimensions, Student-t distributions :math:`\mathrm{St}_\nu(m, S)`.

    Attributes
    ----------
    location
        :math:`m`, shape (K, D).
    shape
        Shape matrices :math:`S`, (K, D, D).
    df
        Degrees of freedom :math:`\nu`, shape (K, D); infinite for Normals. They differ between columns only where the
        columns are independent.
    """

    location: Array
    shape: Array
    df: Array

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central credible interval of each coordinate, two arrays of shape (K, D)."""
        quantile = stdtrit(self.df, 0.5 + level / 2)
        half = quantile * np.sqrt(np.diagonal(self.shape, axis1=1, axis2=2))
        return self.location - half, self.location + half

    def region(self, columns: tuple[int, int], level: float) -> Array:
        r"""Return matrices M: two coordinates lie in :math:`(x - m)' M^{-1} (x - m) \le 1` with this probability.

        Their squared distance in units of S exceeds r with probability :math:`(1 + r / \nu)^{-\nu / 2}`; of independent
        columns the fewer degrees of freedom are taken for both.

        Returns
        -------
        Array
            Shape (K, 2, 2).
        """
        block = self.shape[:, columns][:, :, columns]
        df = self.df[:, columns].min(axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            heavy = df * np.expm1(-2 / df * np.log1p(-level))
        radius = np.where(np.isinf(df), -2 * np.log1p(-level), heavy)
        return block * radius[:, np.newaxis, np.newaxis]


def _of_normal_wishart(factor: NormalWishart | TiedNormalWishart) -> MeanMarginal:
    """Return St with nu - D + 1 degrees of freedom and shape B / (kappa (nu - D + 1))."""
    kappa = factor.mean_precision
    df = np.broadcast_to(factor.df - factor.mean.shape[-1] + 1.0, kappa.shape)
    shape = factor.inverse_scale / (kappa * df)[:, None, None]
    return MeanMarginal(factor.mean, shape, np.broadcast_to(df[:, None], factor.mean.shape))


def _of_normal_gamma(factor: NormalGamma | TiedNormalGamma) -> MeanMarginal:
    """Return St with 2a degrees of freedom and squared scale b / (a kappa) in each column."""
    a, b = (
        parameter if parameter.ndim == 2 else parameter[:, None] for parameter in (factor.shape, factor.rate)
    )
    squared_scales = b / (a * factor.mean_precision)
    return MeanMarginal(factor.mean, _diagonal(squared_scales), np.broadcast_to(2 * a, factor.mean.shape))


def _of_multivariate_normal(factor: MultivariateNormal) -> MeanMarginal:
    return MeanMarginal(factor.mean, factor.covariance, np.full(factor.mean.shape, np.inf))


def _of_normal(factor: Normal) -> MeanMarginal:
    """Return Normals of independent columns; of one column where there is no plate of columns."""
    mean, variance = (np.reshape(array, (len(array), -1)) for array in (factor.mean, factor.variance))
    return MeanMarginal(mean, _diagonal(variance), np.full(mean.shape, np.inf))


def _diagonal(values: Array) -> Array:
    return values[:, :, None] * np.eye(values.shape[1])


_MARGINALS: dict[type[ExponentialFamily], Callable[[Any], MeanMarginal]] = {
    NormalWishart: _of_normal_wishart,
    TiedNormalWishart: _of_normal_wishart,
    NormalGamma: _of_normal_gamma,
    TiedNormalGamma: _of_normal_gamma,
    MultivariateNormal: _of_multivariate_normal,
    Normal: _of_normal,
}


def _of_partly_known(factor: ClampedFactor) -> MeanMarginal:
    """Return the marginals of the means that are learnt, and points for those that are known."""
    every = factor.everywhere()
    learnt = _MARGINALS[type(every)](every)
    is_known = np.broadcast_to(
        factor.is_known if factor.is_known.ndim == 2 else factor.is_known[:, None], learnt.location.shape
    )
    varies = ~is_known
    return MeanMarginal(
        factor.mean,
        learnt.shape * varies[:, :, None] * varies[:, None, :],
        np.where(is_known, np.inf, learnt.df),
    )


def _of_known(means: Array) -> MeanMarginal:
    """Return points for means that are all known, beside other parameters that are learnt."""
    return MeanMarginal(means, _diagonal(np.zeros(means.shape)), np.full(means.shape, np.inf))


def mean_marginal(estimator: Any) -> MeanMarginal | None:
    """Return the marginals of the means of a fitted mixture; None of points without standard errors."""
    own, shown = _of_factors(estimator), _shown(estimator)
    if shown is None:
        return own
    means, sds = shown.mean, shown.sd
    if own is None:
        return MeanMarginal(means, _diagonal(sds**2), np.full(sds.shape, np.inf))
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = np.diagonal(own.shape, axis1=1, axis2=2) / (1.0 - 2.0 / own.df)
        ratio = np.sqrt(sds**2 / variances)
    # few degrees of freedom have no variance, and known means none to widen
    ratio = np.where(np.isfinite(ratio) & (own.df > 2), ratio, 1.0)
    return MeanMarginal(means, own.shape * ratio[:, :, None] * ratio[:, None, :], own.df)


def _shown(estimator: Any, level: float = 0.95) -> Any:
    """Return the figures of the locations beyond mean field, with (K, D) entries; None if none are shown."""
    posterior = estimator.posterior_
    name = next((name for name in ("theta", "mean") if name in posterior), None)
    if name is None or posterior.uncertainty == "mean_field":
        return None
    own = posterior.marginals(name, level)[0]
    shape = len(estimator.means_), -1
    if own.sd is None:
        return None
    lower, upper = (None if end is None else np.reshape(end, shape) for end in (own.lower, own.upper))
    return replace(
        own, mean=np.reshape(own.mean, shape), sd=np.reshape(own.sd, shape), lower=lower, upper=upper
    )


def mean_interval(estimator: Any, level: float) -> tuple[Array, Array] | None:
    """Return the ends of the credible interval of each mean, two arrays (K, D); None of points without any."""
    marginal = mean_marginal(estimator)
    if marginal is None:
        return None
    lower, upper = marginal.interval(level)
    shown = _shown(estimator, level)
    if shown is None or shown.lower is None or shown.upper is None:
        return lower, upper
    # known means have no interval
    return np.where(np.isnan(shown.lower), lower, shown.lower), np.where(
        np.isnan(shown.upper), upper, shown.upper
    )


def mean_sds(estimator: Any) -> Array | None:
    """Return the standard deviations of the means, (K, D), 0 of known ones; None of points without standard errors."""
    own, shown = _of_factors(estimator), _shown(estimator)
    if shown is not None:
        return np.nan_to_num(shown.sd, nan=0.0, posinf=np.inf)
    if own is None:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        factors = np.where(own.df > 2, 1.0 / (1.0 - 2.0 / own.df), np.inf)
        return np.sqrt(np.diagonal(own.shape, axis1=1, axis2=2) * factors)


def weight_sds(estimator: Any) -> Array | None:
    """Return the standard deviations of the weights, (K,), 0 of known ones; None of points without standard errors."""
    posterior = estimator.posterior_
    name = estimator._weights_variable
    if name not in posterior:
        return np.zeros(len(estimator.weights_))
    sd = posterior.marginals(name)[0].sd
    return None if sd is None else np.nan_to_num(sd, nan=0.0, posinf=np.inf)


def known_sds(sds: Array | None, name: str) -> Array:
    """Return standard deviations after checking that there are any.

    Raises
    ------
    AttributeError
        If there are no standard deviations.
    """
    if sds is None:
        raise AttributeError(
            f"the {name} of this fit are points, without standard deviations; fit with uncertainty='linear_response' "
            f"for standard errors"
        )
    return sds


def _of_factors(estimator: Any) -> MeanMarginal | None:
    """Return the marginals of the means under their factors; None where they are points, as in maximum likelihood."""
    posterior = estimator.posterior_
    if all(posterior[name].learnt is None for name in posterior):
        return None
    factor = next((posterior[name] for name in ("theta", "mean") if name in posterior), None)
    if factor is None or factor.learnt is None:
        return _of_known(estimator.means_)
    if factor.learnt is not factor:
        return _of_partly_known(factor)
    marginal = _MARGINALS.get(type(factor))
    return None if marginal is None else marginal(factor)


def weight_interval(estimator: Any, level: float) -> tuple[Array, Array] | None:
    r"""Return the ends of the credible interval of each weight, two arrays (K,); None for points and known weights.

    The marginal of :math:`\mathrm{Dir}(\alpha)` is :math:`\mathrm{Beta}(\alpha_k, \sum_j \alpha_j - \alpha_k)`.
    """
    posterior = estimator.posterior_
    name = estimator._weights_variable
    if name in posterior and posterior.uncertainty != "mean_field":
        shown = posterior.marginals(name, level)[0]
        return None if shown.lower is None or shown.upper is None else (shown.lower, shown.upper)
    if name not in posterior or not isinstance(posterior[name], Dirichlet):
        return None
    factor = posterior[name]
    others = factor.concentration.sum() - factor.concentration
    if len(others) == 1:
        return np.ones(1), np.ones(1)
    lower, upper = (betaincinv(factor.concentration, others, end) for end in central_ends(level))
    return lower, upper
