"""Mixtures of Student-t distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..numerics.cached import cached_property
from .components.parameters import as_df, as_locations, as_weights, whitening_of
from .components.student_t import log_kernel, log_normaliser, random_stretch
from .elliptical import EllipticalMixture


@dataclass(frozen=True, eq=False, repr=False)
class StudentMixture(EllipticalMixture):
    r"""A mixture of Student-t distributions, :math:`\sum_k w_k \mathrm{St}_{\nu_k}(x; m_k, T_k)`.

    .. math::
        \mathrm{St}_\nu(x; m, T) = \frac{\Gamma((\nu + D)/2)}{\Gamma(\nu/2)} |\nu \pi T|^{-1/2}
        \Bigl( 1 + \tfrac1\nu (x - m)' T^{-1} (x - m) \Bigr)^{-(\nu + D)/2}

    Use :meth:`from_shapes` to make one from shape matrices. The constructor takes the stored arrays and checks only
    their shapes.

    Attributes
    ----------
    weights
        Shape (K,), summing to one.
    locations
        :math:`m_k`, shape (K, D).
    whitening
        :math:`W_k` with :math:`(W_k' W_k)^{-1} = T_k`, shape (K, D, D), triangular; (K, D) for diagonal shapes, (K,)
        for spherical ones; a first axis of length 1 for one that all components share.
    df
        Degrees of freedom :math:`\nu_k`, shape (K,).
    feature_names
        Names of the columns, or None.

    Notes
    -----
    With a diagonal shape matrix, columns are uncorrelated but not independent, because they share the distance from the
    centre. :class:`ProductStudentMixture` has independent columns.

    Examples
    --------
    >>> mixture = StudentMixture(np.array([1.0]), np.zeros((1, 1)), np.ones((1, 1, 1)), np.array([1.0]))
    >>> np.exp(mixture.log_density(np.array([[0.0]]))) * np.pi  # the Cauchy density
    array([1.])
    """

    df: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.shape(self.df) != self.weights.shape:
            raise ParameterError(f"df must have shape {self.weights.shape}; got shape {np.shape(self.df)}")

    @classmethod
    def from_shapes(
        cls,
        weights: ArrayLike,
        locations: ArrayLike,
        shapes: ArrayLike,
        df: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> StudentMixture:
        r"""Return the mixture with these locations, shape matrices and degrees of freedom.

        Parameters
        ----------
        weights
            Shape (K,), summing to one.
        locations
            Centres, shape (K, D), or (K,) for one column.
        shapes
            Matrices :math:`T_k`, (K, D, D); diagonals (K, D), or multiples of the identity (K,). A first axis of length
            1 is shared by all components. The covariance matrix is :math:`T_k \nu_k / (\nu_k - 2)`.
        df
            :math:`\nu_k`, positive, shape (K,), or one number for all components.
        feature_names
            Names of the columns.

        Raises
        ------
        ParameterError
            If a shape or a value is invalid.

        Examples
        --------
        >>> StudentMixture.from_shapes(
        ...     [1.0], [[0.0, 0.0]], [[[2.0, 1.0], [1.0, 2.0]]], df=4.0
        ... ).covariance.round(9)
        array([[4., 2.],
               [2., 4.]])
        """
        shares = as_weights(weights)
        centres = as_locations(locations, len(shares))
        whitening = whitening_of("shapes", shapes, *centres.shape)
        names = None if feature_names is None else tuple(feature_names)
        return cls(shares, centres, whitening, as_df(df, shares.shape), feature_names=names)

    def component_df(self) -> Array | None:
        return np.broadcast_to(self.df[:, None], self.locations.shape)

    def _log_kernels(self, distances: Array, counts: AnyArray) -> Array:
        df = self.df[:, None]
        if len(counts) == 1 and counts[0] == self.n_features:
            normalisers = self._log_normaliser
        else:
            # few numbers of columns, many rows
            sizes, which = np.unique(counts, return_inverse=True)
            normalisers = log_normaliser(df, sizes.astype(np.float64))[:, which]
        return normalisers + log_kernel(distances, df, counts)

    @cached_property
    def _log_normaliser(self) -> Array:
        """Of complete rows, (K, 1)."""
        return log_normaliser(self.df[:, None], np.array([self.n_features], dtype=np.float64))

    def _stretch(self, labels: AnyArray, rng: np.random.Generator) -> Array:
        return random_stretch(self.df[labels], rng)[:, None]

    def _after(self, n_observed: int) -> dict[str, Array]:
        return {"df": self.df + n_observed}

    def _stretching_df(self) -> Array | None:
        return self.df
