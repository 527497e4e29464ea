"""Standard deviations and correlations of the effects of groups, from the factor of their precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincinv, gammaln

from ..._typing import Array

_DRAWS = 4_000


class Figures(NamedTuple):
    """Moments of a number, and ends of its central interval."""

    mean: float
    sd: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Spread:
    r"""A covariance with an inverse Wishart distribution: its inverse is :math:`W(\nu, B^{-1})`.

    Attributes
    ----------
    df
        :math:`\nu`.
    inverse_scale
        B, (q, q).
    """

    df: float
    inverse_scale: Array

    @classmethod
    def of(cls, posterior: Any, name: str) -> Spread:
        """Return that of a precision in a posterior: its factor, as wide as the posterior shows it.

        Where that is wider than the factor, the degrees of freedom are fewer, and the mean of the precision is the
        same.
        """
        factor, sd = posterior[name], np.asarray(posterior.sd(name))
        if sd.ndim == 0:
            df = 2.0 * (float(factor.mean) / float(sd)) ** 2
            return cls(df, np.array([[df / float(factor.mean)]]))
        own = np.sqrt(2.0 / factor.df) * np.diagonal(factor.mean)
        df = factor.df * float(np.mean((own / np.diagonal(sd)) ** 2))
        # the mean of the covariance of fewer degrees of freedom would be infinite
        df = max(df, len(sd) + 2.0) if factor.df > len(sd) + 2.0 else float(factor.df)
        return cls(df, factor.inverse_scale * (df / factor.df))

    def sds(self, level: float) -> Iterator[Figures]:
        r"""Yield mean, standard deviation and interval of each standard deviation.

        A variance is an inverse Gamma number with shape :math:`(\nu - q + 1)/2` and scale :math:`B_{kk} / 2`.
        """
        shape = 0.5 * (self.df - len(self.inverse_scale) + 1.0)
        for scale in 0.5 * np.diagonal(self.inverse_scale):
            lower, upper = np.sqrt(scale / gammaincinv(shape, [0.5 + level / 2, 0.5 - level / 2]))
            mean = np.sqrt(scale) * np.exp(gammaln(shape - 0.5) - gammaln(shape)) if shape > 0.5 else np.inf
            variance = scale / (shape - 1.0) - mean**2 if shape > 1.0 else np.inf
            yield Figures(float(mean), float(np.sqrt(variance)), float(lower), float(upper))

    def correlations(self, level: float) -> Iterator[tuple[tuple[int, int], Figures]]:
        """Yield for each pair of effects mean, standard deviation and interval of their correlation, from draws."""
        size = len(self.inverse_scale)
        if size < 2:
            return
        draws = self._draws()
        sds = np.sqrt(np.diagonal(draws, axis1=1, axis2=2))
        for i, j in combinations(range(size), 2):
            own = draws[:, i, j] / (sds[:, i] * sds[:, j])
            lower, upper = np.quantile(own, (0.5 - level / 2, 0.5 + level / 2))
            yield (i, j), Figures(float(own.mean()), float(own.std()), float(lower), float(upper))

    def _draws(self) -> Array:
        """Return draws of the covariance, the same in each call, by Bartlett's decomposition."""
        size, rng = len(self.inverse_scale), np.random.default_rng(0)
        lower = np.tril(rng.standard_normal((_DRAWS, size, size)), -1)
        for k in range(size):
            lower[:, k, k] = np.sqrt(rng.chisquare(self.df - k, _DRAWS))
        root = np.linalg.cholesky(np.linalg.inv(self.inverse_scale)) @ lower
        return np.asarray(np.linalg.inv(root @ root.swapaxes(1, 2)), dtype=np.float64)
