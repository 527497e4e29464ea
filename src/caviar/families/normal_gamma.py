"""The joint Normal-Gamma distribution of a number, or several, and their one precision."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError
from caviar._typing import Array, Statistics
from caviar.families.base.family import LOG_TWO_PI, MeanPrecision, Seed, Size, as_value, draw_shape, safe_log
from caviar.families.base.joint import Joint, SeveralLocations
from caviar.families.base.marginals import Ends, Marginals, student_marginals
from caviar.families.base.transforms import LogScale, Transform, Unconstrained
from caviar.families.gamma import Gamma
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import ratio_excess


@dataclass(frozen=True, eq=False, repr=False, init=False)
class _NormalGammas(Joint):
    """Numbers and one precision: one number, or M along the last axis."""

    shape: Array
    rate: Array

    statistics: ClassVar[tuple[str, ...]] = ("precision_x", "precision_xx", "log_precision", "precision")
    transforms: ClassVar[tuple[Transform, ...]] = (Unconstrained(), LogScale())
    precision_family = Gamma

    def __init__(self, mean: ArrayLike, mean_precision: ArrayLike, shape: ArrayLike, rate: ArrayLike) -> None:
        values = {"mean": mean, "mean_precision": mean_precision, "shape": shape, "rate": rate}
        parameters = self._read(values)
        self._require_positive(parameters, "mean_precision", "shape", "rate")
        vars(self).update(parameters)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the four statistics: two for each location, and two numbers."""
        return event_shape, event_shape, (), ()

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (k m, -k/2, s + M/2, -(r + sum k m^2/2))."""
        linear, quadratic, log_precision, negative_rate = natural
        mean_precision = cls._mean_precision_of(quadratic)
        mean = linear / mean_precision
        rate = -negative_rate - 0.5 * cls._total(linear * mean)
        n_locations = cls._count(mean_precision)
        marginal = Gamma._checked(log_precision - 0.5 * n_locations, rate, cls.__name__)
        return cls._of_parts(mean, mean_precision, marginal, natural)

    @classmethod
    def statistics_of(cls, value: Any) -> Statistics:
        """Return the four statistics of a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        weighted = cls._each(precision) * location
        return weighted, weighted * location, safe_log(precision), precision

    @cached_property
    def natural(self) -> Statistics:
        """(k m, -k/2, s + M/2, -(r + sum k m^2/2))."""
        linear = self.mean_precision * self.mean
        return (
            linear,
            -0.5 * self.mean_precision,
            self.shape + 0.5 * self._n_locations,
            -(self.rate + 0.5 * self._total(linear * self.mean)),
        )

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(E tau m, 1/k + E tau m^2, digamma(s) - log r, s / r)."""
        expected_log, expected = self.precision_marginal.expected_statistics
        weighted = self._each(expected) * self.mean
        return weighted, 1.0 / self.mean_precision + weighted * self.mean, expected_log, expected

    def _response(self, change: Statistics) -> tuple[Array, Array, Statistics]:
        """Return the changes of the locations, of their precision, and of the precision's natural parameters."""
        linear, quadratic, log_precision, negative_rate = change
        mean_precision = -2.0 * quadratic
        mean = (linear - mean_precision * self.mean) / self.mean_precision
        rate = self._total(self.mean * (linear - 0.5 * mean_precision * self.mean))
        return mean, mean_precision, (log_precision, negative_rate + rate)

    def response(self, change: Statistics) -> Statistics:
        mean, mean_precision, natural = self._response(change)
        log_precision, precision = self.precision_marginal.response(natural)
        weighted = self._each(precision) * self.mean + self._each(self.precision_marginal.mean) * mean
        square = weighted * self.mean + self.expected_statistics[0] * mean
        return weighted, square - mean_precision / self.mean_precision**2, log_precision, precision

    @cached_property
    def _log_determinant(self) -> Array:
        return self._total(np.log(self.mean_precision))

    @property
    def variance(self) -> Array:
        """Marginal variance of each location; infinite where shape <= 1."""
        surplus = np.maximum(self.shape - 1.0, 0.0)
        with np.errstate(divide="ignore"):
            return self._each(self.rate) / (self.mean_precision * self._each(surplus))

    @property
    def _spread(self) -> Array:
        return self.variance

    def _location_marginals(self, ends: Ends) -> Marginals:
        shape, rate = self._each(self.shape), self._each(self.rate)
        scale = np.sqrt(rate / (self.mean_precision * shape))
        return student_marginals(self.mean, scale, 2 * shape, np.sqrt(self.variance), ends)

    def log_density(self, value: Any) -> Array:
        """Return the log-density at a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        conditional = self.mean_precision * self._each(np.where(precision > 0, precision, 1.0))
        distance = conditional * (location - self.mean) ** 2
        given = self._total(np.log(conditional) - LOG_TWO_PI - distance)
        return self.precision_marginal.log_density(precision) + 0.5 * given

    def _divergence(self, other: Self) -> Array:
        expected = self._each(self.expected_statistics[3])
        distance = other.mean_precision * expected * (self.mean - other.mean) ** 2
        spread = ratio_excess(other.mean_precision, self.mean_precision)
        return self.precision_marginal.kl(other.precision_marginal) + 0.5 * self._total(spread + distance)

    def mode(self) -> MeanPrecision:
        """Return the joint mode: the means, and (shape + M/2 - 1) / rate.

        Raises
        ------
        ImproperError
            If shape <= 1 - M/2, which only M = 1 allows: there is no largest density at a positive precision.
        """
        return gamma_peak(self, self._locations_described)

    def sample(self, size: Size = None, seed: Seed = None) -> MeanPrecision:
        """Return draws of (mean, precision), of shapes size + batch + event and size + batch."""
        generator = np.random.default_rng(seed)
        precision = self.precision_marginal.sample(size, generator)
        noise = generator.standard_normal(draw_shape(size, self.mean.shape))
        deviation = noise / np.sqrt(self.mean_precision * self._each(precision))
        return MeanPrecision(self.mean + deviation, precision)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class NormalGamma(_NormalGammas):
    r"""Joint distributions of a location :math:`\mu` and a precision :math:`\tau`.

    .. math:: \mu \mid \tau \sim N(m,\, 1 / (k \tau)), \quad \tau \sim \mathrm{Gamma}(s, r), \qquad
              t = (\tau\mu,\, \tau\mu^2,\, \log\tau,\, \tau), \quad
              \eta = (k m,\, -k/2,\, s + \tfrac12,\, -(r + k m^2/2)), \quad c = (0, 0, -1, 0)

    Parameters
    ----------
    mean
        Location m.
    mean_precision
        Precision k > 0 of the location, in units of :math:`\tau`: the number of rows that the prior is worth.
    shape, rate
        Parameters s > 0 and r > 0 of the Gamma distribution of the precision.

    Raises
    ------
    ParameterError
        If one of the last three is not positive, or the batch shapes do not broadcast.

    Notes
    -----
    A value is a pair ``(mean, precision)``, such as the named pair that ``sample`` and ``mode`` return.

    Examples
    --------
    >>> q = NormalGamma(1.0, 2.0, 3.0, 4.0)
    >>> q.variance  # of the location, with its precision integrated out
    np.float64(1.0)
    >>> q.mode()
    MeanPrecision(mean=array(1.), precision=np.float64(0.625))
    """

    parameter_letters: ClassVar[tuple[str, ...]] = ("", "", "", "")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TiedNormalGamma(SeveralLocations, _NormalGammas):
    r"""Joint distributions of M numbers :math:`\mu_m` and their one precision :math:`\tau`.

    .. math:: \mu_m \mid \tau \sim N(m_m,\, 1 / (k_m \tau)), \quad m = 1 \ldots M, \qquad
              \tau \sim \mathrm{Gamma}(s, r)

    .. math:: t = (\tau\mu_m,\, \tau\mu_m^2,\, \log\tau,\, \tau), \quad
              \eta = \bigl(k_m m_m,\, -k_m/2,\, s + \tfrac M2,\, -(r + \textstyle\sum_m k_m m_m^2/2)\bigr), \quad
              c = (0, 0, -1, 0)

    The conjugate prior of columns, or groups, with separate means and a common variance.

    Parameters
    ----------
    mean
        Locations m, shape (..., M).
    mean_precision
        Precisions k > 0 of the locations, in units of :math:`\tau`, shape (..., M), or one number for all.
    shape, rate
        Parameters s > 0 and r > 0 of the Gamma distribution of the precision.

    Raises
    ------
    ParameterError
        If one of the last three is not positive, or the shapes do not fit.

    Notes
    -----
    A value is a pair ``(mean, precision)``, such as the named pair that ``sample`` and ``mode`` return. With M = 1 it
    is :class:`NormalGamma` with an axis more.

    Examples
    --------
    >>> q = TiedNormalGamma([1.0, 5.0], 2.0, 3.0, 4.0)
    >>> q.variance  # of each location, with the precision integrated out
    array([1., 1.])
    >>> print(q.mode().precision)
    0.75
    """

    parameter_letters: ClassVar[tuple[str, ...]] = ("m", "m", "", "")
    of_one = NormalGamma


def gamma_peak(q: Any, described: str) -> MeanPrecision:
    """Return the joint mode of locations and the one number that is their precision.

    Raises
    ------
    ImproperError
        If it does not exist; ``described`` says of what the distribution is.
    """
    n_numbers = q._n_numbers
    surplus = q.shape + (0.5 * n_numbers - 1.0)
    if (surplus <= 0).any():
        least = f"{1 - 0.5 * n_numbers:g}" if described else "1/2"
        raise ImproperError(
            f"A Normal-Gamma distribution{described} has a mode if its shape is greater than {least}, got "
            f"{q.shape.min()}. Use the mean, or a prior with a larger shape."
        )
    return MeanPrecision(q.mean, surplus / q.rate)
