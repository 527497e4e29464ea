"""Mixtures of components whose columns are independent Student-t distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from .._typing import AnyArray, Array
from .components.parameters import as_df, as_locations, as_positive, as_weights
from .components.scales import lengths
from .components.student_t import log_kernel, log_normaliser, random_stretch
from .conditioning import Regression
from .mixture import MixtureDensity

_ONE = np.array(1.0)


@dataclass(frozen=True, eq=False, repr=False)
class ProductStudentMixture(MixtureDensity):
    r"""A mixture of products of Student-t distributions, one for each column.

    .. math:: p(x) = \sum_k w_k \prod_d \mathrm{St}_{\nu_{kd}}(x_d; m_{kd}, s_{kd}^2)

    It is the predictive distribution of mixtures with diagonal precisions. Given the component, columns are
    independent, so observed columns only determine the probabilities of the components. With Normal columns it would be
    a :class:`NormalMixture` with diagonal covariances.

    Attributes
    ----------
    weights
        Shape (K,), summing to one.
    locations, scales, df
        :math:`m_{kd}`, :math:`s_{kd}` and :math:`\nu_{kd}`, shape (K, D) each.
    feature_names
        Names of the columns, or None.

    Examples
    --------
    >>> one = np.ones((1, 2))
    >>> np.exp(ProductStudentMixture(np.array([1.0]), 0 * one, one, one).log_density([[0.0, 1.0]])) * np.pi**2
    array([0.5])
    """

    scales: Array
    df: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.shape(self.scales) == np.shape(self.df) == self.locations.shape:
            raise ParameterError(
                f"scales and df must have the shape of locations, {self.locations.shape}; got shapes "
                f"{np.shape(self.scales)} and {np.shape(self.df)}"
            )

    @classmethod
    def from_scales(
        cls,
        weights: ArrayLike,
        locations: ArrayLike,
        scales: ArrayLike,
        df: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> ProductStudentMixture:
        """Return the mixture with these locations, scales and degrees of freedom.

        Parameters
        ----------
        weights
            Shape (K,), summing to one.
        locations
            Centres, shape (K, D), or (K,) for one column.
        scales
            Scales :math:`s_{kd}`, positive, in the same shape as ``locations``.
        df
            Degrees of freedom, positive: the same shape, or one that broadcasts to (K, D).
        feature_names
            Names of the columns.

        Raises
        ------
        ParameterError
            If a shape or a value is invalid.

        Examples
        --------
        >>> ProductStudentMixture.from_scales([1.0], [[0.0, 1.0]], [[1.0, 2.0]], df=[4.0, 3.0]).covariance
        array([[ 2.,  0.],
               [ 0., 12.]])
        """
        shares = as_weights(weights)
        centres = as_locations(locations, len(shares))
        given = as_positive("scales", scales)
        given = given[:, None] if given.ndim == 1 and centres.shape[1] == 1 else given
        names = None if feature_names is None else tuple(feature_names)
        return cls(shares, centres, given, as_df(df, centres.shape), feature_names=names)

    @property
    def separable(self) -> bool:
        return True

    def component_log_densities(self, X: Array) -> Array:
        constants = log_normaliser(self.df, _ONE) - np.log(self.scales)
        observed = ~np.isnan(X)
        result = np.empty((self.n_components, len(X)))
        for k in range(self.n_components):
            logarithms = constants[k] + log_kernel(np.abs(self._whitened(k, X)), self.df[k], _ONE)
            result[k] = np.where(observed, logarithms, 0.0).sum(axis=1)
        return result

    def distances(self, X: Array) -> Array:
        whitened = (self._whitened(k, X) for k in range(self.n_components))
        return np.stack([lengths(np.where(np.isnan(t), 0.0, t)) for t in whitened])

    def _whitened(self, k: int, X: Array) -> Array:
        # signalling NaNs are missing values, too
        with np.errstate(over="ignore", invalid="ignore"):
            return (X - self.locations[k]) / self.scales[k]

    def component_scales(self) -> Array:
        return self.scales

    def component_df(self) -> Array | None:
        return self.df

    def component_shapes(self) -> Array:
        return np.square(self.scales)[..., None] * np.eye(self.n_features)

    def draw_residuals(self, labels: AnyArray, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal((len(labels), self.n_features))
        with np.errstate(over="ignore"):
            return noise * random_stretch(self.df[labels], rng) * self.scales[labels]

    def regression(self, observed: AnyArray, wanted: AnyArray) -> Regression:
        return Regression(self._part(observed) if len(observed) else None, self._part(wanted))

    def stretched(self, factors: Array) -> Self:
        return replace(self, scales=self.scales * factors[:, None])

    def _part(self, columns: AnyArray) -> Self:
        return replace(
            self,
            locations=self.locations[:, columns],
            scales=self.scales[:, columns],
            df=self.df[:, columns],
            feature_names=self.names_of(columns),
        )
