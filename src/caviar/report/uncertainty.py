"""How well the means and weights of a fitted mixture are known: their marginal distributions under the posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtrit

from .._typing import Array
from ..families import Dirichlet, ExponentialFamily, MultivariateNormal, Normal, NormalWishart

__all__ = ["MeanMarginal", "mean_marginal", "weight_interval"]


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
        Degrees of freedom :math:`\nu`, shape (K,); infinite for Normals.
    """

    location: Array
    shape: Array
    df: Array

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central credible interval of each coordinate, two arrays of shape (K, D)."""
        quantile = stdtrit(self.df, 0.5 + level / 2)[:, np.newaxis]
        half = quantile * np.sqrt(np.diagonal(self.shape, axis1=1, axis2=2))
        return self.location - half, self.location + half

    def region(self, columns: tuple[int, int], level: float) -> Array:
        r"""Return matrices M: two coordinates lie in :math:`(x - m)' M^{-1} (x - m) \le 1` with this probability.

        Their squared distance in units of S exceeds r with probability :math:`(1 + r / \nu)^{-\nu / 2}`.

        Returns
        -------
        Array
            Shape (K, 2, 2).
        """
        block = self.shape[:, columns][:, :, columns]
        with np.errstate(invalid="ignore", over="ignore"):
            heavy = self.df * np.expm1(-2 / self.df * np.log1p(-level))
        radius = np.where(np.isinf(self.df), -2 * np.log1p(-level), heavy)
        return block * radius[:, np.newaxis, np.newaxis]


def _of_normal_wishart(factor: NormalWishart) -> MeanMarginal:
    """Return St with nu - D + 1 degrees of freedom and shape B / (kappa (nu - D + 1))."""
    df = factor.df - factor.mean.shape[-1] + 1
    return MeanMarginal(
        factor.mean, factor.inverse_scale / (factor.mean_precision * df)[:, np.newaxis, np.newaxis], df
    )


def _of_multivariate_normal(factor: MultivariateNormal) -> MeanMarginal:
    return MeanMarginal(factor.mean, factor.covariance, np.full(len(factor.mean), np.inf))


def _of_normal(factor: Normal) -> MeanMarginal:
    variance = factor.variance[:, np.newaxis, np.newaxis]
    return MeanMarginal(factor.mean[:, np.newaxis], variance, np.full(len(factor.mean), np.inf))


_MARGINALS: dict[type[ExponentialFamily], Callable[[Any], MeanMarginal]] = {
    NormalWishart: _of_normal_wishart,
    MultivariateNormal: _of_multivariate_normal,
    Normal: _of_normal,
}


def mean_marginal(estimator: Any) -> MeanMarginal | None:
    """Return the marginals of the means of a fitted mixture; None where they are points, as in maximum likelihood."""
    posterior = estimator.posterior_
    factor = posterior["theta"] if "theta" in posterior else posterior["mean"]
    marginal = _MARGINALS.get(type(factor))
    return None if marginal is None else marginal(factor)


def weight_interval(estimator: Any, level: float) -> tuple[Array, Array] | None:
    r"""Return the ends of the credible interval of each weight, two arrays (K,); None for points and known weights.

    The marginal of :math:`\mathrm{Dir}(\alpha)` is :math:`\mathrm{Beta}(\alpha_k, \sum_j \alpha_j - \alpha_k)`.
    """
    posterior = estimator.posterior_
    if "weights" not in posterior or not isinstance(posterior["weights"], Dirichlet):
        return None
    factor = posterior["weights"]
    others = factor.concentration.sum() - factor.concentration
    if len(others) == 1:
        return np.ones(1), np.ones(1)
    return (
        betaincinv(factor.concentration, others, 0.5 - level / 2),
        betaincinv(factor.concentration, others, 0.5 + level / 2),
    )
