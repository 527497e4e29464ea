"""Scales of uncorrelated columns that are alike: one number for each component."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import AnyArray, Array
from .scales import Scales

__all__ = ["SphericalScales"]


@dataclass(frozen=True, eq=False)
class SphericalScales(Scales):
    """Reciprocal deviations :math:`w_k`, shape (K,), or (1,) where all components share one."""

    @property
    def separable(self) -> bool:
        return True

    def whitened(self, k: int, differences: Array) -> Array:
        return differences * self.of(k)

    def log_determinants(self, observed: AnyArray | None) -> Array:
        counts = np.array([self.n_features]) if observed is None else observed.sum(axis=1)
        return np.log(self.whitening)[:, None] * counts

    def split(self, observed: AnyArray, wanted: AnyArray) -> tuple[Array, Array, Array | None]:
        return self.whitening, self.whitening, None

    def deviations(self) -> Array:
        return 1.0 / self.whitening[:, None]

    def shapes(self) -> Array:
        return np.square(self.deviations())[..., None] * np.eye(self.n_features)

    def coloured(self, labels: AnyArray, noise: Array) -> Array:
        deviations = self.deviations()
        return noise * deviations[labels if len(deviations) > 1 else np.zeros_like(labels)]
