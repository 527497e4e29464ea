"""The joint distribution of several vectors and the one precision matrix that they share."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError, ParameterError
from caviar._typing import Array, Statistics
from caviar.families._base import ExponentialFamily, MeanPrecision, Seed, Size, as_value, draw_shape
from caviar.families._marginals import Ends, Marginals
from caviar.families._parameters import matched_locations, read_parameters, refuse_improper, require
from caviar.families.normal_wishart import NormalWishart
from caviar.families.wishart import Wishart
from caviar.numerics.gamma_function import ratio_excess
from caviar.numerics.linalg import cholesky

_LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False, repr=False)
class TiedNormalWishart(ExponentialFamily):
    r"""Joint distributions of M locations :math:`\mu_m` in :math:`R^D` and their one precision matrix :math:`\Lambda`.

    .. math:: \mu_m \mid \Lambda \sim N(m_m,\, (k_m \Lambda)^{-1}), \quad m = 1 \ldots M, \qquad
              \Lambda \sim \mathrm{Wishart}(\nu, B)

    .. math:: t = (\Lambda\mu_m,\; \mu_m'\Lambda\mu_m,\; \log|\Lambda|,\; \Lambda), \quad
              \eta = \bigl(k_m m_m,\; -k_m/2,\; (\nu + M)/2,\; -(B + \textstyle\sum_m k_m m_m m_m')/2\bigr), \quad
              c = (0,\, 0,\, -(D + 1)/2,\, 0)

    The conjugate prior of groups of rows with means of their own and a common covariance.

    Parameters
    ----------
    mean
        Locations m, shape (..., M, D).
    mean_precision
        Precisions k > 0 of the locations, in units of :math:`\Lambda`, shape (..., M); a number stands for all.
    df
        Degrees of freedom :math:`\nu > D - 1`.
    inverse_scale
        Inverse scale B, shape (..., D, D), positive definite.

    Raises
    ------
    ParameterError
        If a parameter is outside its domain, or the shapes do not fit.

    Notes
    -----
    A value is a pair ``(mean, precision)``, such as the named pair that ``sample`` and ``mode`` return. With M = 1 it
    is :class:`NormalWishart` with an axis more.

    Examples
    --------
    >>> q = TiedNormalWishart([[0.0, 1.0], [3.0, 1.0]], [2.0, 4.0], 6.0, [[2.0, 0.0], [0.0, 4.0]])
    >>> q.covariance[1]  # of the second location, whatever the precision
    array([[0.16666667, 0.        ],
           [0.        , 0.33333333]])
    >>> q.mode().precision
    array([[2.5 , 0.  ],
           [0.  , 1.25]])
    """

    mean: Array
    mean_precision: Array
    df: Array
    inverse_scale: Array

    statistics: ClassVar[tuple[str, ...]] = ("precision_x", "precision_xx", "log_det", "precision")
    parameter_letters: ClassVar[tuple[str, ...]] = ("md", "m", "", "dd")

    def __init__(
        self, mean: ArrayLike, mean_precision: ArrayLike, df: ArrayLike, inverse_scale: ArrayLike
    ) -> None:
        values = {"mean": mean, "mean_precision": mean_precision, "df": df, "inverse_scale": inverse_scale}
        if np.ndim(mean_precision) == 0:
            values["mean_precision"] = np.reshape(mean_precision, 1)
        parameters = read_parameters("TiedNormalWishart", values, self.parameter_ndims)
        require(
            parameters["mean_precision"] > 0,
            parameters["mean_precision"],
            "TiedNormalWishart: mean_precision must be positive",
        )
        size = parameters["mean"].shape[-1]
        if parameters["inverse_scale"].shape[-2:] != (size, size):
            raise ParameterError(
                f"TiedNormalWishart: inverse_scale must have shape (..., {size}, {size}) to go with means of {size} "
                f"entries, got shape {parameters['inverse_scale'].shape}."
            )
        matched_locations("TiedNormalWishart", parameters, axis=-2)
        marginal = Wishart(parameters["df"], parameters["inverse_scale"])
        parameters["inverse_scale"] = marginal.inverse_scale
        vars(self).update(parameters, precision_marginal=marginal)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the four statistics: (M, D), (M,), () and (D, D)."""
        return event_shape, event_shape[:1], (), event_shape[1:] * 2

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (k m, -k/2, (df + M)/2, -(B + sum k m m')/2)."""
        linear, quadratic, half_df, negative_scale = natural
        mean_precision = -2.0 * quadratic
        good = (mean_precision > 0) & (mean_precision < np.inf)
        if not np.logical_and.reduce(good, axis=None):
            refuse_improper(cls.__name__, good, "mean_precision must be positive and finite")
        mean = linear / mean_precision[..., np.newaxis]
        inverse_scale = -2.0 * negative_scale - _scatter(mean, mean_precision)
        n_locations, size = mean.shape[-2:]
        marginal = Wishart._checked(2.0 * half_df - n_locations, inverse_scale, cls.__name__)
        batch = np.broadcast_shapes(marginal.df.shape, mean.shape[:-2], mean_precision.shape[:-1])
        if marginal.df.shape != batch:
            marginal = Wishart._trusted(
                df=np.broadcast_to(marginal.df, batch),
                inverse_scale=np.broadcast_to(marginal.inverse_scale, (*batch, size, size)),
            )
        return cls._trusted(
            mean=np.broadcast_to(mean, (*batch, n_locations, size)),
            mean_precision=np.broadcast_to(mean_precision, (*batch, n_locations)),
            df=marginal.df,
            inverse_scale=marginal.inverse_scale,
            natural=natural,
            precision_marginal=marginal,
        )

    @classmethod
    def statistics_of(cls, value: Any) -> Statistics:
        """Return the four statistics of a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        weighted = location @ precision
        log_det = Wishart.statistics_of(precision)[0]
        return weighted, (weighted * location).sum(axis=-1), log_det, precision

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(M, D), the shape of the locations."""
        return self.mean.shape[-2:]

    @property
    def base_measure(self) -> tuple[float, ...]:
        """|precision|^(-(D + 1) / 2)."""
        return (0.0, 0.0, -0.5 * (self.mean.shape[-1] + 1), 0.0)

    @cached_property
    def precision_marginal(self) -> Wishart:
        """Distribution of the precision matrix alone."""
        return Wishart._trusted(df=self.df, inverse_scale=self.inverse_scale)

    @property
    def marginals(self) -> NormalWishart:
        """Joint distribution of each location and the precision, the other locations left out: batch (..., M)."""
        df = np.broadcast_to(self.df[..., np.newaxis], self.mean.shape[:-1])
        scale = self.inverse_scale[..., np.newaxis, :, :]
        return NormalWishart._trusted(
            mean=self.mean,
            mean_precision=self.mean_precision,
            df=df,
            inverse_scale=np.broadcast_to(scale, (*df.shape, *scale.shape[-2:])),
        )

    def repeated(self, n_locations: int) -> Self:
        """Return the distributions of so many locations, where there is one to stand for all."""
        n_axes, size = self.mean.ndim - 2, self.mean.shape[-1]
        mean = np.broadcast_to(self.mean, (*self.mean.shape[:n_axes], n_locations, size))
        mean_precision = np.broadcast_to(self.mean_precision, mean.shape[:-1])
        return self._trusted(
            mean=mean, mean_precision=mean_precision, df=self.df, inverse_scale=self.inverse_scale
        )

    @cached_property
    def natural(self) -> Statistics:
        """(k m, -k/2, (df + M)/2, -(B + sum k m m')/2)."""
        linear = self.mean_precision[..., np.newaxis] * self.mean
        products = _scatter(self.mean, self.mean_precision)
        return (
            linear,
            -0.5 * self.mean_precision,
            0.5 * (self.df + self.mean.shape[-2]),
            -0.5 * (self.inverse_scale + products),
        )

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(E Lambda m, D / k + m' E Lambda m, E log|Lambda|, df B^-1)."""
        expected_log_det, expected = self.precision_marginal.expected_statistics
        weighted = self.mean @ expected
        quadratic = np.add.reduce(weighted * self.mean, axis=-1) + self.mean.shape[-1] / self.mean_precision
        return weighted, quadratic, expected_log_det, expected

    @cached_property
    def _log_spread(self) -> Array:
        """D times the sum of log k."""
        return self.mean.shape[-1] * np.log(self.mean_precision).sum(axis=-1)

    @property
    def _n_numbers(self) -> int:
        """M D, how many numbers the locations are."""
        return self.mean.shape[-1] * self.mean.shape[-2]

    @cached_property
    def log_partition(self) -> Array:
        """Log-partition of the Wishart marginal, minus D/2 log(k / 2 pi) of each location."""
        return self.precision_marginal.log_partition - 0.5 * (
            self._log_spread - self._n_numbers * _LOG_TWO_PI
        )

    @property
    def covariance(self) -> Array:
        """Marginal covariance of each location, shape (..., M, D, D); infinite entries where df <= D + 1."""
        return self.marginals.covariance

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        locations = self.marginals.entry_marginals(ends)[0]
        (precision,) = self.precision_marginal.entry_marginals(ends)
        return [locations, replace(precision, part=".precision", is_shared=True)]

    def log_density(self, value: Any) -> Array:
        """Return the log-density at a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        marginal = self.precision_marginal.log_density(precision)
        inside = np.isfinite(marginal)
        size = self.mean.shape[-1]
        lower = cholesky(np.where(inside[..., np.newaxis, np.newaxis], precision, np.eye(size)))
        distance = (self.mean_precision * (((location - self.mean) @ lower) ** 2).sum(axis=-1)).sum(axis=-1)
        log_det = 2.0 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
        conditional = self._log_spread - self._n_numbers * _LOG_TWO_PI + self.mean.shape[-2] * log_det
        return marginal + 0.5 * (conditional - distance)

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure, from the scales alone: no location can cancel."""
        return self.entropy() + self.base_measure[2] * self.expected_statistics[2]

    def entropy(self) -> Array:
        """Return the entropy of the precision plus that expected of the locations given it."""
        expected_log_det = self._log_spread + self.mean.shape[-2] * self.expected_statistics[2]
        return self.precision_marginal.entropy() + 0.5 * (
            self._n_numbers * (1.0 + _LOG_TWO_PI) - expected_log_det
        )

    def _divergence(self, other: Self) -> Array:
        whitened = (self.mean - other.mean) @ self.precision_marginal._inverse_lower.swapaxes(-1, -2)
        distance = other.mean_precision * self.df[..., np.newaxis] * (whitened**2).sum(axis=-1)
        spread = self.mean.shape[-1] * ratio_excess(other.mean_precision, self.mean_precision)
        return self.precision_marginal.kl(other.precision_marginal) + 0.5 * (spread + distance).sum(axis=-1)

    def mode(self) -> MeanPrecision:
        """Return the joint mode: the means, and (df + M - D - 1) B^-1.

        Raises
        ------
        ImproperError
            If df <= D + 1 - M: there is no largest density at a positive definite precision.
        """
        n_locations, size = self.mean.shape[-2:]
        surplus = self.df + (n_locations - size - 1)
        if (surplus <= 0).any():
            raise ImproperError(
                f"A Normal-Wishart distribution of {n_locations} locations in {size} dimensions has a mode if df is "
                f"greater than {size + 1 - n_locations}, got {self.df.min()}. Use the mean, or a prior with more "
                f"degrees of freedom."
            )
        return MeanPrecision(self.mean, surplus[..., np.newaxis, np.newaxis] * self.precision_marginal._scale)

    def sample(self, size: Size = None, seed: Seed = None) -> MeanPrecision:
        """Return draws of (mean, precision), of shapes size + batch + (M, D) and size + batch + (D, D)."""
        generator = np.random.default_rng(seed)
        shape = draw_shape(size, self.batch_shape)
        factor = self.precision_marginal._sample_factor(shape, generator)
        noise = generator.standard_normal(shape + self.event_shape)
        noise /= np.sqrt(self.mean_precision)[..., np.newaxis]
        # with Lambda = F F', the vector F'^-1 z has covariance Lambda^-1
        deviation = np.linalg.solve(factor.swapaxes(-1, -2), noise.swapaxes(-1, -2)).swapaxes(-1, -2)
        return MeanPrecision(self.mean + deviation, factor @ factor.swapaxes(-1, -2))

    def translate(self, delta: ArrayLike) -> Self:
        """Return the distribution of (locations + delta, precision)."""
        return type(self)(self.mean + as_value(delta), self.mean_precision, self.df, self.inverse_scale)


def _scatter(mean: Array, weights: Array) -> Array:
    """Return the sum of k_m m_m m_m' over the locations, exactly symmetric."""
    products = (weights[..., np.newaxis] * mean).swapaxes(-1, -2) @ mean
    return 0.5 * (products + products.swapaxes(-1, -2))
