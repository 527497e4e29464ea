"""The joint Normal-Wishart distribution of a vector, or several, and their one precision matrix."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError, ParameterError
from caviar._typing import Array, Statistics
from caviar.families.base.family import LOG_TWO_PI, MeanPrecision, Seed, Size, as_value, draw_shape
from caviar.families.base.joint import Joint, SeveralLocations, scaled
from caviar.families.base.marginals import Ends, Marginals, student_marginals
from caviar.families.base.transforms import LogCholesky, Transform, Unconstrained
from caviar.families.wishart import Wishart
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import ratio_excess
from caviar.numerics.linalg import cholesky, log_determinant, outer, symmetric_part, times_vector


@dataclass(frozen=True, eq=False, repr=False, init=False)
class _NormalWisharts(Joint):
    """Vectors and one precision matrix: one vector, or M along the axis before the last."""

    df: Array
    inverse_scale: Array

    statistics: ClassVar[tuple[str, ...]] = ("precision_x", "precision_xx", "log_det", "precision")
    transforms: ClassVar[tuple[Transform, ...]] = (Unconstrained(), LogCholesky())
    precision_family = Wishart

    def __init__(
        self, mean: ArrayLike, mean_precision: ArrayLike, df: ArrayLike, inverse_scale: ArrayLike
    ) -> None:
        values = {"mean": mean, "mean_precision": mean_precision, "df": df, "inverse_scale": inverse_scale}
        parameters = self._read(values)
        self._require_positive(parameters, "mean_precision")
        size, scale = parameters["mean"].shape[-1], parameters["inverse_scale"]
        if scale.shape[-2:] != (size, size):
            raise ParameterError(
                f"{type(self).__name__}: inverse_scale must have shape (..., {size}, {size}) to go with "
                f"{'means' if self.is_shared else 'a mean'} of {size} entries, got shape {scale.shape}."
            )
        marginal = Wishart(parameters["df"], scale)
        parameters["inverse_scale"] = marginal.inverse_scale
        vars(self).update(parameters, precision_marginal=marginal)

    @classmethod
    def _weighted(cls, precision: Array, vectors: Array) -> Array:
        """Return a precision matrix times the vector of each location."""
        return times_vector(precision, vectors)

    @classmethod
    def _whitened(cls, factor: Array, vectors: Array) -> Array:
        """Return F' x for the vector x of each location."""
        return times_vector(factor.swapaxes(-1, -2), vectors)

    @classmethod
    def _scatter(cls, mean: Array, weights: Array) -> Array:
        """Return the sum of k m m' over the locations, exactly symmetric."""
        return weights[..., np.newaxis, np.newaxis] * outer(mean)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the four statistics: a vector and a number for each location, a number, and (D, D)."""
        return event_shape, event_shape[:-1], (), event_shape[-1:] * 2

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (k m, -k/2, (df + M)/2, -(B + sum k m m')/2)."""
        linear, quadratic, half_df, negative_scale = natural
        mean_precision = cls._mean_precision_of(quadratic)
        mean = linear / mean_precision[..., np.newaxis]
        inverse_scale = -2.0 * negative_scale - cls._scatter(mean, mean_precision)
        n_locations = cls._count(mean_precision)
        marginal = Wishart._checked(2.0 * half_df - n_locations, inverse_scale, cls.__name__)
        return cls._of_parts(mean, mean_precision, marginal, natural)

    @classmethod
    def statistics_of(cls, value: Any) -> Statistics:
        """Return the four statistics of a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        weighted = cls._weighted(precision, location)
        log_det = Wishart.statistics_of(precision)[0]
        return weighted, (weighted * location).sum(axis=-1), log_det, precision

    @property
    def _own_scatter(self) -> Array:
        return self._scatter(self.mean, self.mean_precision)

    @cached_property
    def natural(self) -> Statistics:
        """(k m, -k/2, (df + M)/2, -(B + sum k m m')/2)."""
        return (
            self.mean_precision[..., np.newaxis] * self.mean,
            -0.5 * self.mean_precision,
            0.5 * (self.df + self._n_locations),
            -0.5 * (self.inverse_scale + self._own_scatter),
        )

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(E Lambda m, D / k + m' E Lambda m, E log|Lambda|, df B^-1)."""
        expected_log_det, expected = self.precision_marginal.expected_statistics
        weighted = self._weighted(expected, self.mean)
        quadratic = np.add.reduce(weighted * self.mean, axis=-1) + self.mean.shape[-1] / self.mean_precision
        return weighted, quadratic, expected_log_det, expected

    def _response(self, change: Statistics) -> tuple[Array, Array, Statistics]:
        """Return the changes of the locations, of their precision, and of the precision's natural parameters."""
        linear, quadratic, half_df, negative_scale = change
        mean_precision = -2.0 * quadratic
        mean = (linear - mean_precision[..., np.newaxis] * self.mean) / self.mean_precision[..., np.newaxis]
        # half of k m m': its change is symmetric in what the two means are
        beside = (linear - 0.5 * mean_precision[..., np.newaxis] * self.mean)[..., :, np.newaxis]
        products = beside * self.mean[..., np.newaxis, :]
        scatter = symmetric_part(products.sum(axis=-3) if self.is_shared else products)
        return mean, mean_precision, (half_df, negative_scale + scatter)

    def response(self, change: Statistics) -> Statistics:
        mean, mean_precision, natural = self._response(change)
        log_det, precision = self.precision_marginal.response(natural)
        expected = self.precision_marginal.mean
        weighted = self._weighted(precision, self.mean) + self._weighted(expected, mean)
        quadratic = (weighted * self.mean + self.expected_statistics[0] * mean).sum(axis=-1)
        size = self.mean.shape[-1]
        return weighted, quadratic - size * mean_precision / self.mean_precision**2, log_det, precision

    @cached_property
    def _log_determinant(self) -> Array:
        return self.mean.shape[-1] * self._total(np.log(self.mean_precision))

    @property
    def covariance(self) -> Array:
        """Marginal covariance of each location, shape (..., D, D); infinite entries where df <= D + 1."""
        surplus = np.maximum(self.df - self.mean.shape[-1] - 1.0, 0.0)
        with np.errstate(divide="ignore"):
            factor = 1.0 / (self.mean_precision * self._each(surplus))
        return scaled(self._each(self.inverse_scale, 2), factor[..., np.newaxis, np.newaxis])

    @property
    def _spread(self) -> Array:
        return self.covariance

    def _location_marginals(self, ends: Ends) -> Marginals:
        df = self._each(self.df - self.mean.shape[-1] + 1)[..., np.newaxis]
        diagonal = self._each(np.diagonal(self.inverse_scale, axis1=-2, axis2=-1), 1)
        scale = np.sqrt(diagonal / (self.mean_precision[..., np.newaxis] * df))
        sd = np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))
        return student_marginals(self.mean, scale, df, sd, ends)

    def log_density(self, value: Any) -> Array:
        """Return the log-density at a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        marginal = self.precision_marginal.log_density(precision)
        inside, size = np.isfinite(marginal), self.mean.shape[-1]
        lower = cholesky(np.where(inside[..., np.newaxis, np.newaxis], precision, np.eye(size)))
        whitened = self._whitened(lower, location - self.mean)
        distance = self._total(self.mean_precision * (whitened**2).sum(axis=-1))
        return marginal + 0.5 * (self._log_normaliser + self._n_locations * log_determinant(lower) - distance)

    def _divergence(self, other: Self) -> Array:
        whitened = self._whitened(
            self.precision_marginal._inverse_lower.swapaxes(-1, -2), self.mean - other.mean
        )
        distance = other.mean_precision * self._each(self.df) * (whitened**2).sum(axis=-1)
        spread = self.mean.shape[-1] * ratio_excess(other.mean_precision, self.mean_precision)
        return self.precision_marginal.kl(other.precision_marginal) + 0.5 * self._total(spread + distance)

    def mode(self) -> MeanPrecision:
        """Return the joint mode: the means, and (df + M - D - 1) B^-1.

        Raises
        ------
        ImproperError
            If df <= D + 1 - M: there is no largest density at a positive definite precision.
        """
        size, n_locations = self.mean.shape[-1], self._n_locations
        surplus = self.df + (n_locations - size - 1)
        if (surplus <= 0).any():
            raise ImproperError(
                f"A Normal-Wishart distribution{self._locations_described} in {size} dimensions has a mode if df is "
                f"greater than {size + 1 - n_locations}, got {self.df.min()}. Use the mean, or a prior with more "
                f"degrees of freedom."
            )
        return MeanPrecision(self.mean, surplus[..., np.newaxis, np.newaxis] * self.precision_marginal._scale)

    def sample(self, size: Size = None, seed: Seed = None) -> MeanPrecision:
        """Return draws of (mean, precision), of shapes size + batch + event and size + batch + (D, D)."""
        generator = np.random.default_rng(seed)
        shape = draw_shape(size, self.batch_shape)
        factor = self.precision_marginal._sample_factor(shape, generator)
        noise = generator.standard_normal(shape + self.event_shape)
        noise /= np.sqrt(self.mean_precision)[..., np.newaxis]
        # with Lambda = F F', the vector F'^-1 z has covariance Lambda^-1
        columns = noise.reshape(*shape, -1, self.mean.shape[-1]).swapaxes(-1, -2)
        deviation = np.linalg.solve(factor.swapaxes(-1, -2), columns).swapaxes(-1, -2)
        return MeanPrecision(self.mean + deviation.reshape(noise.shape), factor @ factor.swapaxes(-1, -2))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class NormalWishart(_NormalWisharts):
    r"""Joint distributions of a location :math:`\mu` in :math:`R^D` and a precision matrix :math:`\Lambda`.

    .. math:: \mu \mid \Lambda \sim N(m,\, (k \Lambda)^{-1}), \quad \Lambda \sim \mathrm{Wishart}(\nu, B)

    .. math:: t = (\Lambda\mu,\; \mu'\Lambda\mu,\; \log|\Lambda|,\; \Lambda), \quad
              \eta = (k m,\; -k/2,\; (\nu + 1)/2,\; -(B + k m m')/2), \quad c = (0,\, 0,\, -(D + 1)/2,\, 0)

    Parameters
    ----------
    mean
        Location m, shape (..., D).
    mean_precision
        Precision k > 0 of the location, in units of :math:`\Lambda`.
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
    A value is a pair ``(mean, precision)``, such as the named pair that ``sample`` and ``mode`` return.

    Examples
    --------
    >>> q = NormalWishart([0.0, 1.0], 2.0, 6.0, [[2.0, 0.0], [0.0, 4.0]])
    >>> q.covariance  # of the location, with its precision integrated out
    array([[0.33333333, 0.        ],
           [0.        , 0.66666667]])
    >>> q.mode().precision
    array([[2., 0.],
           [0., 1.]])
    """

    parameter_letters: ClassVar[tuple[str, ...]] = ("d", "", "", "dd")

    @property
    def _n_numbers(self) -> int:
        return self.mean.shape[-1]

    @property
    def _own_scatter(self) -> Array:
        linear = self.mean_precision[..., np.newaxis] * self.mean
        return linear[..., :, np.newaxis] * self.mean[..., np.newaxis, :]

    @property
    def _log_normaliser(self) -> Array:
        return self.mean.shape[-1] * (np.log(self.mean_precision) - LOG_TWO_PI)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TiedNormalWishart(SeveralLocations, _NormalWisharts):
    r"""Joint distributions of M locations :math:`\mu_m` in :math:`R^D` and their one precision matrix :math:`\Lambda`.

    .. math:: \mu_m \mid \Lambda \sim N(m_m,\, (k_m \Lambda)^{-1}), \quad m = 1 \ldots M, \qquad
              \Lambda \sim \mathrm{Wishart}(\nu, B)

    .. math:: t = (\Lambda\mu_m,\; \mu_m'\Lambda\mu_m,\; \log|\Lambda|,\; \Lambda), \quad
              \eta = \bigl(k_m m_m,\; -k_m/2,\; (\nu + M)/2,\; -(B + \textstyle\sum_m k_m m_m m_m')/2\bigr), \quad
              c = (0,\, 0,\, -(D + 1)/2,\, 0)

    The conjugate prior of groups of rows with separate means and a common covariance.

    Parameters
    ----------
    mean
        Locations m, shape (..., M, D).
    mean_precision
        Precisions k > 0 of the locations, in units of :math:`\Lambda`, shape (..., M), or one number for all.
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
    >>> q.covariance[1]  # of the second location, with the precision integrated out
    array([[0.16666667, 0.        ],
           [0.        , 0.33333333]])
    >>> q.mode().precision
    array([[2.5 , 0.  ],
           [0.  , 1.25]])
    """

    parameter_letters: ClassVar[tuple[str, ...]] = ("md", "m", "", "dd")
    of_one = NormalWishart

    @classmethod
    def _weighted(cls, precision: Array, vectors: Array) -> Array:
        return vectors @ precision

    @classmethod
    def _whitened(cls, factor: Array, vectors: Array) -> Array:
        return vectors @ factor

    @classmethod
    def _scatter(cls, mean: Array, weights: Array) -> Array:
        return symmetric_part((weights[..., np.newaxis] * mean).swapaxes(-1, -2) @ mean)
