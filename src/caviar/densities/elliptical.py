"""Mixtures of elliptical components: functions of the distance from a centre, in the metric of a matrix."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._errors import ParameterError
from .._typing import AnyArray, Array
from .components.scales import DiagonalScales, FullScales, Scales, SphericalScales
from .conditioning import Regression
from .mixture import MixtureDensity

_STRUCTURES: dict[int, type[Scales]] = {1: SphericalScales, 2: DiagonalScales, 3: FullScales}
"""The structure of the scales by the number of axes of their whitening."""


@dataclass(frozen=True, eq=False, repr=False)
class EllipticalMixture(MixtureDensity):
    r"""A mixture of elliptical densities, functions of the distances :math:`|W_k (x - m_k)|`.

    Attributes
    ----------
    weights
        Shape (K,), summing to one.
    locations
        :math:`m_k`, shape (K, D).
    whitening
        Triangular matrices :math:`W_k`, shape (K, D, D); :math:`(W_k' W_k)^{-1}` is the covariance matrix of a Normal,
        the shape matrix of a Student-t. Shape (K, D) for diagonal ones, (K,) for multiples of the identity; a first
        axis of length 1 for one that all components share.
    """

    whitening: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        K, D = self.locations.shape
        shape = np.shape(self.whitening)
        tail = {1: (), 2: (D,), 3: (D, D)}.get(len(shape))
        if tail is None or shape[1:] != tail or shape[0] not in (1, K):
            raise ParameterError(
                f"whitening must have shape {(K, D, D)}, {(K, D)} or {(K,)}, or 1 in place of {K}; got shape {shape}"
            )

    @abstractmethod
    def _log_kernels(self, distances: Array, counts: AnyArray) -> Array:
        """Return log densities of components with unit determinant at distances, (K, B), in this many columns, (B,)."""

    @abstractmethod
    def _stretch(self, labels: AnyArray, rng: np.random.Generator) -> Array:
        """Return what standard normal draws of these components are multiplied by, shape (n, 1)."""

    @abstractmethod
    def _after(self, n_observed: int) -> dict[str, Array]:
        """Return the fields that depend on the number of observed columns."""

    @property
    def scales(self) -> Scales:
        """The whitening maps, by their structure."""
        return _STRUCTURES[self.whitening.ndim](self.whitening, self.n_features)

    @property
    def separable(self) -> bool:
        return self.scales.separable

    def component_log_densities(self, X: Array) -> Array:
        scales = self.scales
        observed, counts = None, np.array([self.n_features])
        if scales.separable:
            observed = ~np.isnan(X)
            if observed.all():
                observed = None
            else:
                counts = observed.sum(axis=1)
        kernels = self._log_kernels(scales.norms(X, self.locations), counts)
        return kernels + scales.log_determinants(observed)

    def distances(self, X: Array) -> Array:
        return self.scales.norms(X, self.locations)

    def component_scales(self) -> Array:
        return np.broadcast_to(self.scales.deviations(), self.locations.shape)

    def component_shapes(self) -> Array:
        K, D = self.locations.shape
        return np.broadcast_to(self.scales.shapes(), (K, D, D))

    def draw_residuals(self, labels: AnyArray, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal((len(labels), self.n_features)) * self._stretch(labels, rng)
        with np.errstate(over="ignore"):
            return self.scales.coloured(labels, noise)

    def regression(self, observed: AnyArray, wanted: AnyArray) -> Regression:
        known, rest, coefficients = self.scales.split(observed, wanted)
        after = self._after(len(observed))
        return Regression(
            self._part(observed, known, {}) if len(observed) else None,
            self._part(wanted, rest, after),
            coefficients,
            self._stretching_df(),
        )

    def _stretching_df(self) -> Array | None:
        """Return the degrees of freedom by which observed columns stretch the scale of the others; None if not."""
        return None

    def stretched(self, factors: Array) -> Self:
        return replace(self, whitening=self.scales.stretched(factors))

    def _part(self, columns: AnyArray, whitening: Array, changes: dict[str, Array]) -> Self:
        return replace(
            self,
            locations=self.locations[:, columns],
            whitening=whitening,
            feature_names=self.names_of(columns),
            **changes,
        )
