"""Scales with a matrix for each component, or one for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import AnyArray, Array
from ..numerics.linalg import log_determinant
from .scales import Scales
from .whitening import inverse_of_triangular


@dataclass(frozen=True, eq=False)
class FullScales(Scales):
    """Triangular matrices :math:`W_k`, shape (K, D, D), or (1, D, D) where all components share one (tied)."""

    @property
    def separable(self) -> bool:
        return False

    def whitened(self, k: int, differences: Array) -> Array:
        return differences @ self.of(k).T

    def log_determinants(self, observed: AnyArray | None) -> Array:
        return 0.5 * log_determinant(self.whitening)[:, None]

    def split(self, observed: AnyArray, wanted: AnyArray) -> tuple[Array, Array, Array | None]:
        # rows of a root of the shape matrix, those observed first; a QR decomposition makes it triangular again:
        # [[A, 0], [C, E]], A A' the shape of the observed, C A^-1 the coefficients, E E' the residual shape
        rows = self._roots()[:, np.concatenate([observed, wanted])]
        root = np.linalg.qr(rows.swapaxes(-1, -2))[1].swapaxes(-1, -2)
        n = len(observed)
        # signs of columns are free: a positive diagonal has a logarithm
        signs = np.where(np.diagonal(root, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
        root = root * signs[:, None, :]
        known = inverse_of_triangular(np.ascontiguousarray(root[:, :n, :n]))
        rest = inverse_of_triangular(np.ascontiguousarray(root[:, n:, n : n + len(wanted)]))
        coefficients = root[:, n:, :n] @ known if n and len(wanted) else None
        return known, rest, coefficients

    def deviations(self) -> Array:
        return np.hypot.reduce(self._roots(), axis=-1)

    def shapes(self) -> Array:
        roots = self._roots()
        return roots @ roots.swapaxes(-1, -2)

    def coloured(self, labels: AnyArray, noise: Array) -> Array:
        roots = self._roots()
        if len(roots) == 1:
            return noise @ roots[0].T
        result = np.empty_like(noise)
        for k in np.unique(labels):
            own = labels == k
            result[own] = noise[own] @ roots[k].T
        return result

    def _roots(self) -> Array:
        return inverse_of_triangular(self.whitening)
