"""Scales of uncorrelated columns: a number for each column of each component, or one for all columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import AnyArray, Array
from .scales import Scales


@dataclass(frozen=True, eq=False)
class ColumnScales(Scales):
    """Reciprocal deviations of uncorrelated columns."""

    @property
    def separable(self) -> bool:
        return True

    def whitened(self, k: int, differences: Array) -> Array:
        return differences * self.of(k)

    def deviations(self) -> Array:
        return 1.0 / self.whitening.reshape(len(self.whitening), -1)

    def shapes(self) -> Array:
        return np.square(self.deviations())[..., None] * np.eye(self.n_features)

    def coloured(self, labels: AnyArray, noise: Array) -> Array:
        deviations = self.deviations()
        return noise * deviations[labels if len(deviations) > 1 else np.zeros_like(labels)]


@dataclass(frozen=True, eq=False)
class DiagonalScales(ColumnScales):
    """A number for each column :math:`w_{kd}`, shape (K, D), or (1, D) where all components share them."""

    def log_determinants(self, observed: AnyArray | None) -> Array:
        logarithms = np.log(self.whitening)
        if observed is None:
            return logarithms.sum(axis=1, keepdims=True)
        return logarithms @ observed.T.astype(np.float64)

    def split(self, observed: AnyArray, wanted: AnyArray) -> tuple[Array, Array, Array | None]:
        return self.whitening[:, observed], self.whitening[:, wanted], None


@dataclass(frozen=True, eq=False)
class SphericalScales(ColumnScales):
    """One number for all columns :math:`w_k`, shape (K,), or (1,) where all components share one."""

    def log_determinants(self, observed: AnyArray | None) -> Array:
        counts = np.array([self.n_features]) if observed is None else observed.sum(axis=1)
        return np.log(self.whitening)[:, None] * counts

    def split(self, observed: AnyArray, wanted: AnyArray) -> tuple[Array, Array, Array | None]:
        return self.whitening, self.whitening, None
