"""The scales of elliptical components: a matrix for each or for all, or a number for each column or for all columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..._typing import AnyArray, Array
from ...numerics.linalg import log_determinant
from .whitening import inverse_of_triangular


def lengths(Z: Array) -> Array:
    """Return the Euclidean length of each row, (B, D) -> (B,), also where its square is out of range.

    Examples
    --------
    >>> lengths(np.array([[3.0, 4.0], [3e200, 4e200]]))
    array([5.e+000, 5.e+200])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.sqrt(np.einsum("bd,bd->b", Z, Z))
        far = ~(result < 1e150)
        if far.any():
            largest = np.abs(Z[far]).max(axis=1)
            # opposite infinities of one sum: what is that far away is infinitely far
            safe = np.where(np.isfinite(largest), largest, 1.0)
            ratio = np.where(np.isfinite(largest)[:, None], Z[far] / safe[:, None], 0.0)
            result[far] = np.where(np.isfinite(largest), safe * np.sqrt(np.square(ratio).sum(axis=1)), np.inf)
    return result


@dataclass(frozen=True, eq=False)
class Scales(ABC):
    """Whitening maps :math:`W_k` of K components in D dimensions, stored in the shape that their structure allows.

    Attributes
    ----------
    whitening
        Shape (K, ...) by structure, or (1, ...) where all components share one.
    n_features
        D.
    """

    whitening: Array
    n_features: int

    @property
    @abstractmethod
    def separable(self) -> bool:
        """Whether columns are uncorrelated: rows with NaN need no work for each pattern of them."""

    @abstractmethod
    def whitened(self, k: int, differences: Array) -> Array:
        """Return :math:`W_k (x - m_k)` of differences, (B, D) -> (B, D)."""

    @abstractmethod
    def log_determinants(self, observed: AnyArray | None) -> Array:
        """Return :math:`log |W_k|`, (K or 1, 1); of the observed columns of each row, (K or 1, B), if separable.

        Parameters
        ----------
        observed
            Which entries of the rows were observed, (B, D), or None for all.
        """

    @abstractmethod
    def split(self, observed: AnyArray, wanted: AnyArray) -> tuple[Array, Array, Array | None]:
        """Return what a conditional distribution of some columns given others is made of.

        Returns
        -------
        tuple
            Whitening of the observed columns by themselves; whitening of the wanted ones given the observed; and the
            coefficients of their regression, (K or 1, M, O), None where they are all zero.
        """

    @abstractmethod
    def deviations(self) -> Array:
        """Return the root of the diagonal of the shape matrices, (K or 1, D or 1)."""

    @abstractmethod
    def shapes(self) -> Array:
        """Return the shape matrices :math:`(W_k' W_k)^{-1}`, (K or 1, D, D)."""

    @abstractmethod
    def coloured(self, labels: AnyArray, noise: Array) -> Array:
        """Return :math:`W_k^{-1} e` for the noise of each draw, (n, D), and the component it comes from, (n,)."""

    def norms(self, X: Array, locations: Array) -> Array:
        """Return the lengths :math:`|W_k (x - m_k)|` over the observed columns of rows, (B, D) -> (K, B)."""
        result = np.empty((len(locations), len(X)))
        with np.errstate(over="ignore", invalid="ignore"):
            for k, location in enumerate(locations):
                differences = X - location
                if self.separable:
                    differences[np.isnan(differences)] = 0.0
                result[k] = lengths(self.whitened(k, differences))
        return result

    def stretched(self, factors: Array) -> Array:
        """Return the whitening of components whose scales are multiplied by positive factors, (K,)."""
        return self.whitening / factors.reshape(-1, *(1,) * (self.whitening.ndim - 1))

    def of(self, k: int) -> Array:
        """Return the entry of ``whitening`` that component k has."""
        return self.whitening[k if len(self.whitening) > 1 else 0]


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
