"""Mixtures of Normal distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._typing import AnyArray, Array
from .components.parameters import as_locations, as_weights, whitening_of
from .elliptical import EllipticalMixture


@dataclass(frozen=True, eq=False, repr=False)
class NormalMixture(EllipticalMixture):
    r"""A mixture of Normal distributions, :math:`\sum_k w_k N(x; m_k, (W_k' W_k)^{-1})`.

    Use :meth:`from_covariances` to make one from covariances. The constructor takes the stored arrays and checks only
    their shapes.

    Attributes
    ----------
    weights
        Shape (K,), summing to one.
    locations
        Means :math:`m_k`, shape (K, D).
    whitening
        :math:`W_k`, shape (K, D, D), triangular; (K, D) for diagonal covariances, (K,) for spherical ones; a first
        axis of length 1 for one that all components share.
    feature_names
        Names of the columns, or None.

    Examples
    --------
    >>> mixture = NormalMixture(np.array([1.0]), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> mixture
    NormalMixture(n_components=1, n_features=1)
    >>> mixture.log_density(np.array([[0.0], [1.0]])).round(4)
    array([-0.9189, -1.4189])
    """

    @classmethod
    def from_covariances(
        cls,
        weights: ArrayLike,
        locations: ArrayLike,
        covariances: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> NormalMixture:
        """Return the mixture with these means and covariances.

        Parameters
        ----------
        weights
            Shape (K,), summing to one.
        locations
            Means, shape (K, D), or (K,) for one column.
        covariances
            Covariance matrices (K, D, D); variances (K, D) for diagonal, or (K,) for spherical covariances. A first
            axis of length 1 is shared by all components.
        feature_names
            Names of the columns.

        Raises
        ------
        ParameterError
            If a shape or a value is invalid.

        Examples
        --------
        >>> NormalMixture.from_covariances([0.5, 0.5], [0.0, 2.0], [1.0, 3.0]).covariance
        array([[3.]])
        """
        shares = as_weights(weights)
        centres = as_locations(locations, len(shares))
        whitening = whitening_of("covariances", covariances, *centres.shape)
        names = None if feature_names is None else tuple(feature_names)
        return cls(shares, centres, whitening, feature_names=names)

    def component_df(self) -> Array | None:
        return None

    def _log_kernels(self, distances: Array, counts: AnyArray) -> Array:
        with np.errstate(over="ignore"):
            return -0.5 * (np.square(distances) + counts * math.log(2 * math.pi))

    def _stretch(self, labels: AnyArray, rng: np.random.Generator) -> Array:
        return np.ones((len(labels), 1))

    def _after(self, n_observed: int) -> dict[str, Array]:
        return {}
