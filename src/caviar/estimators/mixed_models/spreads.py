"""Standard deviations and correlations of the effects of groups, from their precision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincinv, gammaln

from ..._typing import Array
from ...numerics.arguments import central_ends
from ...posterior.weighted import Weighted

_DRAWS = 4_000


class Figures(NamedTuple):
    """Moments of a number, and ends of its central interval."""

    mean: float
    sd: float
    lower: float
    upper: float


def sds_of_variances(
    shape: Array | float, scale: Array | float, level: float
) -> tuple[Array, Array, tuple[Array, Array]]:
    """Return mean, standard deviation and interval of the square roots of inverse Gamma numbers; infinite if so."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.sqrt(scale) * np.exp(gammaln(np.subtract(shape, 0.5)) - gammaln(shape))
        mean = np.where(np.greater(shape, 0.5), mean, np.inf)
        variance = np.where(np.greater(shape, 1.0), scale / np.subtract(shape, 1.0) - mean**2, np.inf)
        lower, upper = (np.sqrt(scale / gammaincinv(shape, 1.0 - end)) for end in central_ends(level))
    return mean, np.sqrt(np.maximum(variance, 0.0)), (lower, upper)


class Spread(ABC):
    """The posterior of a covariance."""

    @abstractmethod
    def sds(self, level: float) -> Iterator[Figures]:
        """Yield mean, standard deviation and interval of each standard deviation."""

    @abstractmethod
    def correlations(self, level: float) -> Iterator[tuple[tuple[int, int], Figures]]:
        """Yield for each pair of effects mean, standard deviation and interval of their correlation."""


def spread_of(posterior: Any, name: str) -> Spread:
    """Return the covariance that belongs to a precision of a posterior, as the posterior shows it."""
    weighted = posterior._weighted(name)
    if weighted is None:
        return InverseWishart.of(posterior, name)
    values = np.asarray(weighted.values)
    precisions = values if values.ndim == 3 else values.reshape(-1, 1, 1)
    return Values(np.linalg.inv(precisions), weighted.weights)


@dataclass(frozen=True, eq=False)
class Values(Spread):
    """A covariance as weighted values.

    Attributes
    ----------
    covariances
        Shape (n, q, q).
    weights
        Shape (n,); they sum to one.
    """

    covariances: Array
    weights: Array

    def sds(self, level: float) -> Iterator[Figures]:
        for own in self._sds.T:
            yield _figures(Weighted(own, self.weights), level)

    @property
    def _sds(self) -> Array:
        return np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))

    def correlations(self, level: float) -> Iterator[tuple[tuple[int, int], Figures]]:
        sds = self._sds
        for i, j in combinations(range(sds.shape[1]), 2):
            own = self.covariances[:, i, j] / (sds[:, i] * sds[:, j])
            yield (i, j), _figures(Weighted(own, self.weights), level)


def _figures(own: Weighted, level: float) -> Figures:
    lower, upper = own.interval(level)
    return Figures(float(own.mean), float(own.sd), float(lower), float(upper))


@dataclass(frozen=True, eq=False)
class InverseWishart(Spread):
    r"""A covariance with an inverse Wishart distribution: its inverse is :math:`W(\nu, B^{-1})`.

    Attributes
    ----------
    df
        :math:`\nu`.
    inverse_scale
        B, (q, q).
    each
        The same with the degrees of freedom of each effect, which its standard deviation has.
    """

    df: float
    inverse_scale: Array
    each: tuple[InverseWishart, ...] = ()

    @classmethod
    def of(cls, posterior: Any, name: str) -> InverseWishart:
        """Return that of a precision in a posterior: its factor, as wide as the posterior shows it.

        If that is wider than the factor, the degrees of freedom are fewer: of each standard deviation its own, because
        one effect may be well known beside another that may be zero, but no fewer than on average. The standard
        deviations keep the means that they have under the factor; in sleepstudy these are nearer to those of a Gibbs
        sampler (27.8 and 6.6; 27.3 and 6.6) than with the mean of the precision kept (30.2 and 7.2).
        """
        factor, sd = posterior[name], np.asarray(posterior.sd(name))
        if sd.ndim == 0:
            own, shown = cls(2.0 * float(factor.shape), np.array([[2.0 * float(factor.rate)]])), sd[None]
            of_factor = np.sqrt([factor.variance])
        else:
            own, shown = cls(float(factor.df), np.asarray(factor.inverse_scale)), np.diagonal(sd)
            of_factor = np.sqrt(2.0 / factor.df) * np.diagonal(factor.mean)
        # with one degree of freedom less the mean of a standard deviation would be infinite
        least = len(own.inverse_scale) + 1.0
        if own.df <= least:
            return own
        every = own.df * (of_factor / shown) ** 2
        joint = own._with_df(max(float(np.mean(every)), least))
        return replace(joint, each=tuple(own._with_df(max(float(df), joint.df)) for df in every))

    def _with_df(self, df: float) -> InverseWishart:
        """Return that with other degrees of freedom and the same means of the standard deviations."""
        size = len(self.inverse_scale)
        one, other = 0.5 * (self.df - size + 1.0), 0.5 * (df - size + 1.0)
        log_ratio = gammaln(one - 0.5) - gammaln(one) - gammaln(other - 0.5) + gammaln(other)
        return InverseWishart(df, self.inverse_scale * float(np.exp(2.0 * log_ratio)))

    def sds(self, level: float) -> Iterator[Figures]:
        r"""Yield mean, standard deviation and interval of each standard deviation.

        A variance is an inverse Gamma number with shape :math:`(\nu - q + 1)/2` and scale :math:`B_{kk} / 2`.
        """
        for place, own in enumerate(self.each or (self,) * len(self.inverse_scale)):
            shape = 0.5 * (own.df - len(own.inverse_scale) + 1.0)
            mean, sd, (lower, upper) = sds_of_variances(shape, 0.5 * own.inverse_scale[place, place], level)
            yield Figures(float(mean), float(sd), float(lower), float(upper))

    def correlations(self, level: float) -> Iterator[tuple[tuple[int, int], Figures]]:
        """Yield for each pair of effects mean, standard deviation and interval of their correlation, from draws."""
        size = len(self.inverse_scale)
        if size < 2:
            return
        draws = self._draws()
        sds = np.sqrt(np.diagonal(draws, axis1=1, axis2=2))
        for i, j in combinations(range(size), 2):
            own = draws[:, i, j] / (sds[:, i] * sds[:, j])
            lower, upper = np.quantile(own, central_ends(level))
            yield (i, j), Figures(float(own.mean()), float(own.std()), float(lower), float(upper))

    def _draws(self) -> Array:
        """Return draws of the covariance, the same in each call, by Bartlett's decomposition."""
        size, rng = len(self.inverse_scale), np.random.default_rng(0)
        lower = np.tril(rng.standard_normal((_DRAWS, size, size)), -1)
        for k in range(size):
            lower[:, k, k] = np.sqrt(rng.chisquare(self.df - k, _DRAWS))
        root = np.linalg.cholesky(np.linalg.inv(self.inverse_scale)) @ lower
        return np.asarray(np.linalg.inv(root @ root.swapaxes(1, 2)), dtype=np.float64)
