"""The multivariate Student-t distribution: a proposal whose tails are longer than those of what it proposes for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from ..._typing import Array
from ...numerics.linalg import cholesky, inverse

_JITTER = 1e-10
"""Of the diagonal of a scale matrix, relative to it."""


@dataclass(frozen=True, eq=False)
class Student:
    """A multivariate Student-t distribution.

    Attributes
    ----------
    location
        Shape (d,).
    scale
        Scale matrix, (d, d).
    df
        Degrees of freedom.
    """

    location: Array
    scale: Array
    df: float

    @cached_property
    def _lower(self) -> Array:
        sd = np.sqrt(np.diagonal(self.scale))
        correlation = self.scale / sd[:, None] / sd
        return sd[:, None] * cholesky(correlation + _JITTER * np.eye(len(sd)))

    @cached_property
    def _inverse(self) -> Array:
        return inverse(self._lower, is_lower=True)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return draws, (n, d)."""
        noise = rng.standard_normal((n, len(self.location)))
        return self.at(noise / np.sqrt(rng.chisquare(self.df, n) / self.df)[:, None])

    def at(self, standard: Array) -> Array:
        """Return the vectors (n, d) that those of the standard distribution, with unit scale, become."""
        return self.location + standard @ self._lower.T

    def log_density(self, vectors: Array) -> Array:
        """Return the log densities at vectors (n, d)."""
        d, df = len(self.location), self.df
        squares = np.square((vectors - self.location) @ self._inverse.T).sum(axis=1)
        constant = gammaln((df + d) / 2) - gammaln(df / 2) - 0.5 * d * np.log(df * np.pi)
        log_volume = np.log(np.diagonal(self._lower)).sum()
        return constant - log_volume - 0.5 * (df + d) * np.log1p(squares / df)

    def moved(self, vectors: Array, weights: Array) -> Student:
        r"""Return the distribution with the moments of weighted draws, as far as these are known.

        The d numbers of the mean are known well from few draws, the d (d + 1) / 2 of the covariance only from many: of
        effectively n draws the mean counts :math:`n / (n + d)`, and the covariance :math:`n / (n + d^2)`.

        Parameters
        ----------
        vectors
            Draws, (n, d).
        weights
            Normalised, (n,).
        """
        d, effective = len(self.location), 1.0 / float(np.square(weights).sum())
        location = self.location + effective / (effective + d) * (weights @ vectors - self.location)
        deviations = vectors - location
        share = effective / (effective + d * d)
        found = (deviations * weights[:, None]).T @ deviations
        return Student(location, share * found + (1.0 - share) * self.scale, self.df)
