r"""Values with constraints as vectors of real numbers: one-to-one maps, with the volume that they change.

.. math:: p(u) = p(x) \left| \frac{\partial x}{\partial u} \right|

Volumes go with the measures of the families' densities: the first K - 1 of K weights that sum to one, and the lower
triangle of a symmetric matrix.

Source: Stan Reference Manual, "Constraint transforms".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit, logit

from caviar._typing import Array
from caviar.numerics.linalg import cholesky

_TINY, _MOST_CORRELATED, _STEP = 1e-24, 1.0 - 1e-12, 1e-5
"""Least square of what is left of a unit length, largest partial correlation, and step of differences."""


class Transform(ABC):
    """A one-to-one map between values (..., event...) and vectors (..., m)."""

    event_ndim: ClassVar[int] = 0
    """Axes of one value."""

    constrains: ClassVar[bool] = True
    """Whether there are vectors that are not values."""

    @abstractmethod
    def forward(self, value: Array) -> Array:
        """Return the vectors of values, (..., m)."""

    @abstractmethod
    def inverse(self, vectors: Array) -> Array:
        """Return the values of vectors (..., m)."""

    @abstractmethod
    def log_volume(self, vectors: Array) -> Array:
        """Return log |dx / du| at vectors (..., m), shape (...)."""

    @abstractmethod
    def slopes(self, value: Array) -> Array:
        """Return du / dx at values, shape (..., m, E) with the E entries of a value."""


class Unconstrained(Transform):
    """Real numbers, as they are."""

    constrains = False

    def forward(self, value: Array) -> Array:
        return value[..., None]

    def inverse(self, vectors: Array) -> Array:
        return vectors[..., 0]

    def log_volume(self, vectors: Array) -> Array:
        return np.zeros(vectors.shape[:-1])

    def slopes(self, value: Array) -> Array:
        return np.ones((*value.shape, 1, 1))


class LogScale(Transform):
    """Positive numbers, by their logarithms."""

    def forward(self, value: Array) -> Array:
        return np.log(value)[..., None]

    def inverse(self, vectors: Array) -> Array:
        return np.exp(vectors[..., 0])

    def log_volume(self, vectors: Array) -> Array:
        return vectors[..., 0]

    def slopes(self, value: Array) -> Array:
        return (1.0 / value)[..., None, None]


class LogOdds(Transform):
    """Numbers between 0 and 1, by their log odds."""

    def forward(self, value: Array) -> Array:
        return logit(value)[..., None]

    def inverse(self, vectors: Array) -> Array:
        return expit(vectors[..., 0])

    def log_volume(self, vectors: Array) -> Array:
        return (log_expit(vectors) + log_expit(-vectors))[..., 0]

    def slopes(self, value: Array) -> Array:
        return (1.0 / (value * (1.0 - value)))[..., None, None]


class LogRatios(Transform):
    """Weights that sum to one, by the logarithms of their ratios to the last."""

    event_ndim = 1

    def forward(self, value: Array) -> Array:
        logs = np.log(value)
        return logs[..., :-1] - logs[..., -1:]

    def inverse(self, vectors: Array) -> Array:
        return np.exp(self._logs(vectors))

    def log_volume(self, vectors: Array) -> Array:
        return self._logs(vectors).sum(axis=-1)

    def slopes(self, value: Array) -> Array:
        inverse = 1.0 / value
        found = np.zeros((*value.shape[:-1], value.shape[-1] - 1, value.shape[-1]))
        places = np.arange(value.shape[-1] - 1)
        found[..., places, places] = inverse[..., :-1]
        found[..., -1] = -inverse[..., -1:]
        return found

    @staticmethod
    def _logs(vectors: Array) -> Array:
        whole = np.concatenate([vectors, np.zeros((*vectors.shape[:-1], 1))], axis=-1)
        return whole - np.logaddexp.reduce(whole, axis=-1, keepdims=True)


class LogCholesky(Transform):
    """Positive definite matrices, by the lower Cholesky factor with the logarithm of its diagonal."""

    event_ndim = 2

    def forward(self, value: Array) -> Array:
        lower = cholesky(value)
        size = value.shape[-1]
        places = np.arange(size)
        found = np.array(lower)
        found[..., places, places] = np.log(lower[..., places, places])
        return found[(..., *np.tril_indices(size))]

    def inverse(self, vectors: Array) -> Array:
        lower = self._lower(vectors)
        return lower @ lower.swapaxes(-1, -2)

    def log_volume(self, vectors: Array) -> Array:
        size = self._size(vectors)
        i, j = np.tril_indices(size)
        powers = (size + 1.0) - np.arange(size)
        return size * math.log(2.0) + vectors[..., i == j] @ powers

    def slopes(self, value: Array) -> Array:
        r"""Return du / dx: :math:`dL = L\, \Phi(L^{-1} dX L^{-T})`, with the lower triangle and half the diagonal."""
        lower, size = cholesky(value), value.shape[-1]
        inverse = np.linalg.inv(lower)
        i, j = np.tril_indices(size)
        half = np.tril(np.ones((size, size))) - 0.5 * np.eye(size)
        found = np.empty((*value.shape[:-2], len(i), size * size))
        for entry, (a, b) in enumerate(np.ndindex(size, size)):
            change = np.zeros((size, size))
            change[a, b] += 0.5
            change[b, a] += 0.5
            moved = lower @ (half * (inverse @ change @ inverse.swapaxes(-1, -2)))
            own = moved[..., i, j]
            found[..., entry] = own / np.where(i == j, lower[..., i, j], 1.0)
        return found

    def _lower(self, vectors: Array) -> Array:
        size = self._size(vectors)
        lower = np.zeros((*vectors.shape[:-1], size, size))
        lower[(..., *np.tril_indices(size))] = vectors
        places = np.arange(size)
        lower[..., places, places] = np.exp(lower[..., places, places])
        return lower

    @staticmethod
    def _size(vectors: Array) -> int:
        return int((math.isqrt(8 * vectors.shape[-1] + 1) - 1) // 2)


class SpreadsAndCorrelations(Transform):
    r"""Precision matrices, by the logarithms of the standard deviations and the correlations of their inverses.

    With :math:`\Sigma = D R D` and :math:`R = L L'`, the correlations follow from the partial ones,
    :math:`p_{ij} = L_{ij} / r_{ij}, r_{ij}^2 = 1 - \sum_{k < j} L_{ik}^2`, through :math:`\operatorname{artanh} p`.
    Where the data say little of a standard deviation or a correlation, a posterior is simpler in these than in the
    entries of a Cholesky factor of the precision.
    """

    event_ndim = 2

    def forward(self, value: Array) -> Array:
        covariance = np.linalg.inv(value)
        size = value.shape[-1]
        sds = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
        lower = cholesky(covariance / (sds[..., :, None] * sds[..., None, :]))
        partial = lower / np.maximum(self._left(lower), _TINY)
        i, j = np.tril_indices(size, -1)
        partial = np.clip(partial[..., i, j], -_MOST_CORRELATED, _MOST_CORRELATED)
        return np.concatenate([np.log(sds), np.arctanh(partial)], axis=-1)

    def inverse(self, vectors: Array) -> Array:
        sds, lower = self._parts(vectors)
        root = sds[..., :, None] * lower
        return np.asarray(np.linalg.inv(root @ root.swapaxes(-1, -2)), dtype=np.float64)

    def log_volume(self, vectors: Array) -> Array:
        sds, lower = self._parts(vectors)
        size = sds.shape[-1]
        i, j = np.tril_indices(size, -1)
        pivots, left = np.diagonal(lower, axis1=-2, axis2=-1), self._left(lower)
        of_correlations = np.log(pivots)[..., j] + np.log(left)[..., i, j]
        of_correlations = of_correlations - 2.0 * np.log(np.cosh(vectors[..., size:]))
        log_sds, of_pivots = np.log(sds).sum(axis=-1), np.log(pivots).sum(axis=-1)
        of_precision = size * math.log(2.0) - (size + 1.0) * (log_sds + 2.0 * of_pivots)
        return of_precision + of_correlations.sum(axis=-1)

    def slopes(self, value: Array) -> Array:
        """Return du / dx, by differences of the second order along symmetric changes of the entries."""
        size = value.shape[-1]
        found = []
        for a, b in np.ndindex(size, size):
            size_of_step = _STEP * np.sqrt(value[..., a, a] * value[..., b, b])
            change = np.zeros(value.shape)
            change[..., a, b] += 0.5 * size_of_step
            change[..., b, a] += 0.5 * size_of_step
            moved = self.forward(value + change) - self.forward(value - change)
            found.append(moved / (2.0 * size_of_step)[..., None])
        return np.stack(found, axis=-1)

    def _parts(self, vectors: Array) -> tuple[Array, Array]:
        """Return the standard deviations, and the Cholesky factor of the correlations."""
        size = (math.isqrt(8 * vectors.shape[-1] + 1) - 1) // 2
        partial = np.zeros((*vectors.shape[:-1], size, size))
        partial[(..., *np.tril_indices(size, -1))] = np.tanh(vectors[..., size:])
        lower, left = np.zeros(partial.shape), np.ones(partial.shape[:-1])
        for j in range(size):
            lower[..., j:, j] = partial[..., j:, j] * left[..., j:]
            lower[..., j, j] = left[..., j]
            left = np.sqrt(np.maximum(left**2 - lower[..., j] ** 2, _TINY))
        return np.exp(vectors[..., :size]), lower

    @staticmethod
    def _left(lower: Array) -> Array:
        """Return what is left of the unit length of each row before each column, r."""
        before = np.cumsum(lower**2, axis=-1) - lower**2
        return np.sqrt(np.maximum(1.0 - before, _TINY))
