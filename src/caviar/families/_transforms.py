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


class Transform(ABC):
    """A one-to-one map between values (..., event...) and vectors (..., m)."""

    event_ndim: ClassVar[int] = 0
    """Axes of one value."""

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
            found[..., entry] = np.where(i == j, own / lower[..., i, j], own)
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
