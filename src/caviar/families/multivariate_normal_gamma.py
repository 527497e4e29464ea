"""The joint Normal-Gamma distribution of a vector and the precision that it shares with the noise of its data."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families.base.factored import Factored
from caviar.families.base.family import LOG_TWO_PI, MeanPrecision, Seed, Size, as_value, draw_shape, safe_log
from caviar.families.base.joint import Joint, scaled
from caviar.families.base.marginals import Ends, Marginals, student_marginals
from caviar.families.base.parameters import precision_of_vector, refuse_improper
from caviar.families.base.transforms import LogScale, Transform, Unconstrained
from caviar.families.gamma import Gamma
from caviar.families.normal_gamma import gamma_peak
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import ratio_excess
from caviar.numerics.linalg import (
    cholesky,
    inverse,
    inverse_from_factor,
    outer,
    positive_definite,
    relative_spectrum,
    times_vector,
)


@dataclass(frozen=True, eq=False, repr=False)
class MultivariateNormalGamma(Factored, Joint):
    r"""Joint distributions of a location vector :math:`w \in R^D` and one precision :math:`\tau`.

    .. math:: w \mid \tau \sim N(m,\, (\tau K)^{-1}), \quad \tau \sim \mathrm{Gamma}(s, r), \qquad
              t = (\tau w,\, \tau w w',\, \log\tau,\, \tau), \quad
              \eta = (K m,\, -K/2,\, s + \tfrac D2,\, -(r + m' K m/2)), \quad c = (0, 0, -1, 0)

    The conjugate prior of linear regression with unknown noise: coefficients w, noise of precision :math:`\tau`.

    Parameters
    ----------
    mean
        Location m, shape (..., D).
    mean_precision
        Precision matrix K of the location in units of :math:`\tau`, shape (..., D, D), positive definite.
    shape, rate
        Parameters s > 0 and r > 0 of the Gamma distribution of the precision.

    Raises
    ------
    ParameterError
        If a matrix is not symmetric and positive definite, shape or rate is not positive, or the shapes do not fit.

    Notes
    -----
    A value is a pair ``(mean, precision)``, such as the named pair that ``sample`` and ``mode`` return. With D = 1
    it is :class:`NormalGamma` with an axis more.

    Examples
    --------
    >>> q = MultivariateNormalGamma([1.0, 0.0], [[2.0, 0.0], [0.0, 4.0]], 3.0, 4.0)
    >>> q.covariance  # of the location, with the precision integrated out
    array([[1. , 0. ],
           [0. , 0.5]])
    >>> print(q.mode().precision)
    0.75
    """

    shape: Array
    rate: Array

    factored: ClassVar[str] = "mean_precision"
    statistics: ClassVar[tuple[str, ...]] = ("precision_x", "precision_xx", "log_precision", "precision")
    transforms: ClassVar[tuple[Transform, ...]] = (Unconstrained(), LogScale())
    parameter_letters: ClassVar[tuple[str, ...]] = ("d", "dd", "", "")
    precision_family = Gamma

    def __init__(self, mean: ArrayLike, mean_precision: ArrayLike, shape: ArrayLike, rate: ArrayLike) -> None:
        values = {"mean": mean, "mean_precision": mean_precision, "shape": shape, "rate": rate}
        parameters = self._read(values)
        matrix = precision_of_vector("MultivariateNormalGamma", "mean_precision", parameters)
        self._require_positive(parameters, "shape", "rate")
        vars(self).update(parameters, mean_precision=matrix)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the four statistics: (D,), (D, D), () and ()."""
        return event_shape, event_shape * 2, (), ()

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (K m, -K/2, s + D/2, -(r + m' K m/2))."""
        linear, quadratic, log_precision, negative_rate = natural
        matrix = -2.0 * quadratic
        try:
            lower = cholesky(matrix)
        except np.linalg.LinAlgError:
            good = positive_definite(matrix)
            refuse_improper(cls.__name__, good, "mean_precision must be positive definite")
        inverse_lower = inverse(lower, is_lower=True)
        whitened = times_vector(inverse_lower, linear)
        mean = times_vector(inverse_lower.swapaxes(-1, -2), whitened)
        if not np.logical_and.reduce(np.isfinite(mean), axis=None):
            good = positive_definite(matrix) & np.isfinite(mean).all(axis=-1)
            refuse_improper(cls.__name__, good, "mean_precision and mean must be finite")
        rate = -negative_rate - 0.5 * (whitened**2).sum(axis=-1)
        marginal = Gamma._checked(log_precision - 0.5 * mean.shape[-1], rate, cls.__name__)
        self = cls._of_parts(mean, matrix, marginal, natural)
        if self.mean_precision is matrix:
            vars(self).update(_lower=lower, _inverse_lower=inverse_lower)
        return self

    @classmethod
    def statistics_of(cls, value: Any) -> Statistics:
        """Return the four statistics of a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        weighted = precision[..., np.newaxis] * location
        products = precision[..., np.newaxis, np.newaxis] * outer(location)
        return weighted, products, safe_log(precision), precision

    @cached_property
    def natural(self) -> Statistics:
        """(K m, -K/2, s + D/2, -(r + m' K m/2))."""
        linear = times_vector(self.mean_precision, self.mean)
        quadratic = np.add.reduce(linear * self.mean, axis=-1)
        size = self.mean.shape[-1]
        return (
            linear,
            -0.5 * self.mean_precision,
            self.shape + 0.5 * size,
            -(self.rate + 0.5 * quadratic),
        )

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(E tau m, K^-1 + E tau m m', digamma(s) - log r, s / r)."""
        expected_log, expected = self.precision_marginal.expected_statistics
        products = expected[..., np.newaxis, np.newaxis] * outer(self.mean)
        return expected[..., np.newaxis] * self.mean, self._inverse + products, expected_log, expected

    def _response(self, change: Statistics) -> tuple[Array, Array, Statistics]:
        """Return the changes of the location, of its precision, and of the precision's natural parameters."""
        linear, quadratic, log_precision, negative_rate = change
        of_matrix = 2.0 * times_vector(quadratic, self.mean)
        mean = times_vector(self._inverse, linear + of_matrix)
        rate = (self.mean * (linear + 0.5 * of_matrix)).sum(axis=-1)
        return mean, -2.0 * quadratic, (log_precision, negative_rate + rate)

    def response(self, change: Statistics) -> Statistics:
        mean, mean_precision, natural = self._response(change)
        log_precision, precision = self.precision_marginal.response(natural)
        expected = self.precision_marginal.mean
        products = (
            expected[..., np.newaxis, np.newaxis] * mean[..., :, np.newaxis] * self.mean[..., np.newaxis, :]
        )
        products = (
            products + products.swapaxes(-1, -2) + precision[..., np.newaxis, np.newaxis] * outer(self.mean)
        )
        spread = self._inverse @ mean_precision @ self._inverse
        weighted = precision[..., np.newaxis] * self.mean + expected[..., np.newaxis] * mean
        return weighted, products - spread, log_precision, precision

    @property
    def covariance(self) -> Array:
        """Marginal covariance of the location, shape (..., D, D); infinite entries where shape <= 1."""
        surplus = np.maximum(self.shape - 1.0, 0.0)
        with np.errstate(divide="ignore"):
            factor = (self.rate / surplus)[..., np.newaxis, np.newaxis]
        return scaled(self._inverse, factor)

    @property
    def _spread(self) -> Array:
        return self.covariance

    @cached_property
    def _inverse(self) -> Array:
        return inverse_from_factor(self._inverse_lower)

    @property
    def _n_repeats(self) -> int:
        return self.mean.shape[-1]

    def _distance(self, deviation: Array) -> Array:
        """Return d' K d."""
        return (times_vector(self._lower.swapaxes(-1, -2), deviation) ** 2).sum(axis=-1)

    def _location_marginals(self, ends: Ends) -> Marginals:
        shape, rate = self.shape[..., None], self.rate[..., None]
        relative = np.diagonal(inverse(self.mean_precision), axis1=-2, axis2=-1)
        sd = np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))
        return student_marginals(self.mean, np.sqrt(rate / shape * relative), 2 * shape, sd, ends)

    def log_density(self, value: Any) -> Array:
        """Return the log-density at a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        positive = np.where(precision > 0, precision, 1.0)
        size = self.mean.shape[-1]
        conditional = size * (np.log(positive) - LOG_TWO_PI) + self._log_determinant
        distance = positive * self._distance(location - self.mean)
        return self.precision_marginal.log_density(precision) + 0.5 * (conditional - distance)

    def _divergence(self, other: Self) -> Array:
        spectrum, excess = relative_spectrum(
            self.mean_precision, self._inverse_lower, other.mean_precision, other._lower
        )
        spread = ratio_excess(spectrum, np.ones_like(spectrum), excess).sum(axis=-1)
        distance = self.expected_statistics[3] * other._distance(self.mean - other.mean)
        return self.precision_marginal.kl(other.precision_marginal) + 0.5 * (spread + distance)

    def mode(self) -> MeanPrecision:
        """Return the joint mode: the mean, and (shape + D/2 - 1) / rate.

        Raises
        ------
        ImproperError
            If shape <= 1 - D/2, which D = 1 allows: there is no largest density at a positive precision.
        """
        return gamma_peak(self, f" of a vector of {self.mean.shape[-1]}")

    def sample(self, size: Size = None, seed: Seed = None) -> MeanPrecision:
        """Return draws of (mean, precision), of shapes size + batch + (D,) and size + batch."""
        generator = np.random.default_rng(seed)
        precision = self.precision_marginal.sample(size, generator)
        noise = generator.standard_normal(draw_shape(size, self.mean.shape))
        deviation = times_vector(self._inverse_lower.swapaxes(-1, -2), noise)
        return MeanPrecision(self.mean + deviation / np.sqrt(precision)[..., np.newaxis], precision)
