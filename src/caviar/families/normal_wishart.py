"""The joint Normal-Wishart distribution of a vector and its precision matrix."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError, ParameterError
from caviar._typing import Array, Statistics
from caviar.families._base import ExponentialFamily, MeanPrecision, Seed, Size, as_value, draw_shape
from caviar.families._marginals import Ends, Marginals, student_marginals
from caviar.families._parameters import read_parameters, refuse_improper, require
from caviar.families.wishart import Wishart
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import ratio_excess
from caviar.numerics.linalg import cholesky, outer, times_vector

_LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False, repr=False)
class NormalWishart(ExponentialFamily):
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
    >>> q.covariance  # of the location, whatever its precision
    array([[0.33333333, 0.        ],
           [0.        , 0.66666667]])
    >>> q.mode().precision
    array([[2., 0.],
           [0., 1.]])
    """

    mean: Array
    mean_precision: Array
    df: Array
    inverse_scale: Array

    statistics: ClassVar[tuple[str, ...]] = ("precision_x", "precision_xx", "log_det", "precision")
    parameter_letters: ClassVar[tuple[str, ...]] = ("d", "", "", "dd")

    def __init__(
        self, mean: ArrayLike, mean_precision: ArrayLike, df: ArrayLike, inverse_scale: ArrayLike
    ) -> None:
        values = {"mean": mean, "mean_precision": mean_precision, "df": df, "inverse_scale": inverse_scale}
        parameters = read_parameters("NormalWishart", values, self.parameter_ndims)
        require(
            parameters["mean_precision"] > 0,
            parameters["mean_precision"],
            "NormalWishart: mean_precision must be positive",
        )
        size = parameters["mean"].shape[-1]
        if parameters["inverse_scale"].shape[-2:] != (size, size):
            raise ParameterError(
                f"NormalWishart: inverse_scale must have shape (..., {size}, {size}) to go with a mean of {size} "
                f"entries, got shape {parameters['inverse_scale'].shape}."
            )
        marginal = Wishart(parameters["df"], parameters["inverse_scale"])
        parameters["inverse_scale"] = marginal.inverse_scale
        vars(self).update(parameters, precision_marginal=marginal)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the four statistics: (D,), (), () and (D, D)."""
        return event_shape, (), (), event_shape * 2

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (k m, -k/2, (df + 1)/2, -(B + k m m')/2)."""
        linear, quadratic, half_df, negative_scale = natural
        mean_precision = -2.0 * quadratic
        good = (mean_precision > 0) & (mean_precision < np.inf)
        if not np.logical_and.reduce(good, axis=None):
            refuse_improper("NormalWishart", good, "mean_precision must be positive and finite")
        mean = linear / mean_precision[..., np.newaxis]
        # k times m m': exactly symmetric, however much of it cancels
        products = mean_precision[..., np.newaxis, np.newaxis] * outer(mean)
        inverse_scale = -2.0 * negative_scale - products
        marginal = Wishart._checked(2.0 * half_df - 1.0, inverse_scale, "NormalWishart")
        if marginal.df.shape != mean.shape[:-1] or mean_precision.shape != mean.shape[:-1]:
            batch = np.broadcast_shapes(marginal.df.shape, mean.shape[:-1])
            mean = np.broadcast_to(mean, batch + mean.shape[-1:])
            mean_precision = np.broadcast_to(mean_precision, batch)
            size = mean.shape[-1]
            marginal = Wishart._trusted(
                df=np.broadcast_to(marginal.df, batch),
                inverse_scale=np.broadcast_to(marginal.inverse_scale, (*batch, size, size)),
            )
        return cls._trusted(
            mean=mean,
            mean_precision=mean_precision,
            df=marginal.df,
            inverse_scale=marginal.inverse_scale,
            natural=natural,
            precision_marginal=marginal,
        )

    @classmethod
    def statistics_of(cls, value: Any) -> Statistics:
        """Return the four statistics of a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        weighted = times_vector(precision, location)
        log_det = Wishart.statistics_of(precision)[0]
        return weighted, (weighted * location).sum(axis=-1), log_det, precision

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(D,), the shape of the location."""
        return self.mean.shape[-1:]

    @property
    def base_measure(self) -> tuple[float, ...]:
        """|precision|^(-(D + 1) / 2)."""
        return (0.0, 0.0, -0.5 * (self.mean.shape[-1] + 1), 0.0)

    @cached_property
    def precision_marginal(self) -> Wishart:
        """Distribution of the precision matrix alone."""
        return Wishart._trusted(df=self.df, inverse_scale=self.inverse_scale)

    @cached_property
    def natural(self) -> Statistics:
        """(k m, -k/2, (df + 1)/2, -(B + k m m')/2)."""
        linear = self.mean_precision[..., np.newaxis] * self.mean
        products = linear[..., :, np.newaxis] * self.mean[..., np.newaxis, :]
        return (
            linear,
            -0.5 * self.mean_precision,
            0.5 * (self.df + 1.0),
            -0.5 * (self.inverse_scale + products),
        )

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(E Lambda m, D / k + m' E Lambda m, E log|Lambda|, df B^-1)."""
        expected_log_det, expected = self.precision_marginal.expected_statistics
        weighted = times_vector(expected, self.mean)
        quadratic = np.add.reduce(weighted * self.mean, axis=-1) + self.mean.shape[-1] / self.mean_precision
        return weighted, quadratic, expected_log_det, expected

    @cached_property
    def log_partition(self) -> Array:
        """Log-partition of the Wishart marginal, minus D/2 log(k / 2 pi)."""
        location = 0.5 * self.mean.shape[-1] * (np.log(self.mean_precision) - _LOG_TWO_PI)
        return self.precision_marginal.log_partition - location

    @property
    def covariance(self) -> Array:
        """Marginal covariance of the location, shape (..., D, D); infinite entries where df <= D + 1."""
        surplus = np.maximum(self.df - self.mean.shape[-1] - 1.0, 0.0)
        with np.errstate(divide="ignore"):
            factor = 1.0 / (self.mean_precision * surplus)
        matrix, factor = self.inverse_scale, factor[..., np.newaxis, np.newaxis]
        return np.where(matrix == 0, 0.0, matrix) * np.where((matrix == 0) & np.isinf(factor), 1.0, factor)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        df = (self.df - self.mean.shape[-1] + 1)[..., None]
        diagonal = np.diagonal(self.inverse_scale, axis1=-2, axis2=-1)
        scale = np.sqrt(diagonal / (self.mean_precision[..., None] * df))
        sd = np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))
        location = student_marginals(self.mean, scale, df, sd, ends)
        (precision,) = self.precision_marginal.entry_marginals(ends)
        return [location, replace(precision, part=".precision")]

    def log_density(self, value: Any) -> Array:
        """Return the log-density at a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        marginal = self.precision_marginal.log_density(precision)
        inside = np.isfinite(marginal)
        size = self.mean.shape[-1]
        lower = cholesky(np.where(inside[..., np.newaxis, np.newaxis], precision, np.eye(size)))
        whitened = times_vector(lower.swapaxes(-1, -2), location - self.mean)
        distance = self.mean_precision * (whitened**2).sum(axis=-1)
        log_det = 2.0 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
        return marginal + 0.5 * (size * (np.log(self.mean_precision) - _LOG_TWO_PI) + log_det - distance)

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure, from the scales alone: no location can cancel."""
        return self.entropy() + self.base_measure[2] * self.expected_statistics[2]

    def entropy(self) -> Array:
        """Return the entropy of the precision plus that expected of the location given it."""
        size = self.mean.shape[-1]
        expected_log_det = size * np.log(self.mean_precision) + self.expected_statistics[2]
        return self.precision_marginal.entropy() + 0.5 * (size * (1.0 + _LOG_TWO_PI) - expected_log_det)

    def _divergence(self, other: Self) -> Array:
        whitened = times_vector(self.precision_marginal._inverse_lower, self.mean - other.mean)
        distance = other.mean_precision * self.df * (whitened**2).sum(axis=-1)
        spread = self.mean.shape[-1] * ratio_excess(other.mean_precision, self.mean_precision)
        return self.precision_marginal.kl(other.precision_marginal) + 0.5 * (spread + distance)

    def mode(self) -> MeanPrecision:
        """Return the joint mode: the mean, and (df - D) B^-1.

        Raises
        ------
        ImproperError
            If df <= D: there is no largest density at a positive definite precision.
        """
        size = self.mean.shape[-1]
        surplus = self.df - size
        if (surplus <= 0).any():
            raise ImproperError(
                f"A Normal-Wishart distribution in {size} dimensions has a mode if df is greater than {size}, "
                f"got {self.df.min()}. Use the mean, or a prior with more degrees of freedom."
            )
        return MeanPrecision(self.mean, surplus[..., np.newaxis, np.newaxis] * self.precision_marginal._scale)

    def sample(self, size: Size = None, seed: Seed = None) -> MeanPrecision:
        """Return draws of (mean, precision), of shapes size + batch + (D,) and size + batch + (D, D)."""
        generator = np.random.default_rng(seed)
        shape = draw_shape(size, self.batch_shape)
        factor = self.precision_marginal._sample_factor(shape, generator)
        noise = generator.standard_normal(shape + self.event_shape)
        noise /= np.sqrt(self.mean_precision)[..., np.newaxis]
        # with Lambda = F F', the vector F'^-1 z has covariance Lambda^-1
        deviation = np.linalg.solve(factor.swapaxes(-1, -2), noise[..., np.newaxis])[..., 0]
        return MeanPrecision(self.mean + deviation, factor @ factor.swapaxes(-1, -2))

    def translate(self, delta: ArrayLike) -> Self:
        """Return the distribution of (location + delta, precision)."""
        return type(self)(self.mean + as_value(delta), self.mean_precision, self.df, self.inverse_scale)
