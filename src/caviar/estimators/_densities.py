"""Densities of mixtures of Normal and of Student-t distributions: evaluated and sampled."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from .._gamma_function import stirling_remainder
from .._linalg import cholesky, inverse, log_determinant
from .._typing import AnyArray, Array

__all__ = [
    "MixtureDensity",
    "NormalMixture",
    "StudentMixture",
    "whitening_of_precisions",
    "whitening_of_shapes",
]

_BLOCK_ROWS = 4096


def whitening_of_shapes(shapes: Array) -> Array:
    """Return W with (W' W)^-1 equal to each covariance or shape matrix.

    Examples
    --------
    >>> whitening_of_shapes(np.array([[4.0]]))
    array([[0.5]])
    """
    return inverse(_root(shapes))


def whitening_of_precisions(precisions: Array) -> Array:
    """Return W with W' W equal to each precision matrix.

    Examples
    --------
    >>> whitening_of_precisions(np.array([[4.0]]))
    array([[2.]])
    """
    return _root(precisions).swapaxes(-1, -2)


def _root(matrices: Array) -> Array:
    """Return lower triangular L with L L' equal to each matrix; rounding that took it off the cone is mended."""
    try:
        return cholesky(matrices)
    except np.linalg.LinAlgError:
        # the directions that rounding decides get the least positive value
        values, vectors = np.linalg.eigh(matrices)
        least = np.finfo(np.float64).eps * np.abs(values).max(axis=-1, keepdims=True)
        upper = np.sqrt(np.maximum(values, least))[..., None] * vectors.swapaxes(-1, -2)
        triangular = np.linalg.qr(upper)[1]
        signs = np.where(np.diagonal(triangular, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
        return (signs[..., None] * triangular).swapaxes(-1, -2)


@dataclass(frozen=True)
class MixtureDensity(ABC):
    r"""A mixture of elliptical densities, functions of the squared distances :math:`|W_k (x - m_k)|^2`.

    Attributes
    ----------
    weights
        Shape (K,), summing to one.
    locations
        :math:`m_k`, shape (K, D).
    whitening
        Triangular matrices :math:`W_k`, shape (K, D, D); :math:`(W_k' W_k)^{-1}` is the covariance matrix of a Normal.
    """

    weights: Array
    locations: Array
    whitening: Array

    @abstractmethod
    def _log_kernels(self, distances: Array) -> Array:
        """Return the log densities of components with unit determinant at squared distances; both (K, B)."""

    @abstractmethod
    def _stretch(self, labels: AnyArray, rng: np.random.Generator) -> Array:
        """Return what standard normal draws of these components are multiplied by, shape (n,)."""

    def log_density(self, X: AnyArray) -> Array:
        """Return the log density of rows, (N, D) -> (N,)."""
        with np.errstate(divide="ignore"):
            offset = np.log(self.weights) + 0.5 * log_determinant(self.whitening)
        result = np.empty(len(X))
        for start in range(0, len(X), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            distances = self._squared_distances(np.asarray(X[rows], dtype=np.float64))
            result[rows] = logsumexp(self._log_kernels(distances) + offset[:, None], axis=0)
        return result

    def _squared_distances(self, X: Array) -> Array:
        distances = np.empty((len(self.weights), len(X)))
        for k, (location, whiten) in enumerate(zip(self.locations, self.whitening, strict=True)):
            distances[k] = np.square((X - location) @ whiten.T).sum(axis=1)
        return distances

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[Array, AnyArray]:
        """Return independent rows, (n, D), and the components that they come from, (n,)."""
        labels = rng.choice(len(self.weights), size=n_samples, p=self.weights / self.weights.sum())
        noise = (
            rng.standard_normal((n_samples, self.locations.shape[1])) * self._stretch(labels, rng)[:, None]
        )
        rows = np.empty_like(noise)
        for k, (location, colour) in enumerate(zip(self.locations, inverse(self.whitening), strict=True)):
            own = labels == k
            rows[own] = location + noise[own] @ colour.T
        return rows, labels


@dataclass(frozen=True)
class NormalMixture(MixtureDensity):
    r"""A mixture of Normal distributions, :math:`\sum_k w_k N(x; \mu_k, \Sigma_k)`.

    Examples
    --------
    >>> mixture = NormalMixture(np.array([1.0]), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> mixture.log_density(np.array([[0.0], [1.0]])).round(4)
    array([-0.9189, -1.4189])
    """

    def _log_kernels(self, distances: Array) -> Array:
        return -0.5 * (distances + self.locations.shape[1] * math.log(2 * math.pi))

    def _stretch(self, labels: AnyArray, rng: np.random.Generator) -> Array:
        return np.ones(len(labels))


@dataclass(frozen=True)
class StudentMixture(MixtureDensity):
    r"""A mixture of Student-t distributions, :math:`\sum_k w_k \mathrm{St}_{\nu_k}(x; m_k, T_k)`.

    .. math::
        \mathrm{St}_\nu(x; m, T) = \frac{\Gamma((\nu + D)/2)}{\Gamma(\nu/2)} |\nu \pi T|^{-1/2}
        \Bigl( 1 + \tfrac1\nu (x - m)' T^{-1} (x - m) \Bigr)^{-(\nu + D)/2}

    Attributes
    ----------
    df
        Degrees of freedom :math:`\nu_k`, shape (K,).

    Examples
    --------
    >>> mixture = StudentMixture(np.array([1.0]), np.zeros((1, 1)), np.ones((1, 1, 1)), np.array([1.0]))
    >>> np.exp(mixture.log_density(np.array([[0.0]]))) * np.pi  # the Cauchy density
    array([1.])
    """

    df: Array

    def _log_kernels(self, distances: Array) -> Array:
        size, nu = self.locations.shape[1], self.df[:, None]
        # log Gamma(a + h) - log Gamma(a) by Stirling's series: both are huge where a is
        a, h = 0.5 * nu, 0.5 * size
        gammas = (
            a * np.log1p(h / a) + h * np.log(a + h) - h + stirling_remainder(a + h) - stirling_remainder(a)
        )
        return gammas - h * np.log(nu * math.pi) - (a + h) * np.log1p(distances / nu)

    def _stretch(self, labels: AnyArray, rng: np.random.Generator) -> Array:
        half = 0.5 * self.df[labels]
        return np.sqrt(half / rng.standard_gamma(half))
