"""The joint Normal-Gamma distribution of a number and its precision."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError
from caviar._typing import Array, Statistics
from caviar.families._base import ExponentialFamily, MeanPrecision, Seed, Size, as_value, draw_shape, safe_log
from caviar.families._marginals import Ends, Marginals, student_marginals
from caviar.families._parameters import read_parameters, refuse_improper, require
from caviar.families.gamma import Gamma
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import ratio_excess

_LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False, repr=False)
class NormalGamma(ExponentialFamily):
    r"""Joint distributions of a location :math:`\mu` and a precision :math:`\tau`.

    .. math:: \mu \mid \tau \sim N(m,\, 1 / (k \tau)), \quad \tau \sim \mathrm{Gamma}(s, r), \qquad
              t = (\tau\mu,\, \tau\mu^2,\, \log\tau,\, \tau), \quad
              \eta = (k m,\, -k/2,\, s + \tfrac12,\, -(r + k m^2/2)), \quad c = (0, 0, -1, 0)

    Parameters
    ----------
    mean
        Location m.
    mean_precision
        Precision k > 0 of the location, in units of :math:`\tau`: how many rows the knowledge of it is worth.
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
    >>> q.variance  # of the location, whatever its precision
    np.float64(1.0)
    >>> q.mode()
    MeanPrecision(mean=array(1.), precision=np.float64(0.625))
    """

    mean: Array
    mean_precision: Array
    shape: Array
    rate: Array

    statistics: ClassVar[tuple[str, ...]] = ("precision_x", "precision_xx", "log_precision", "precision")
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "", "", "")

    def __init__(self, mean: ArrayLike, mean_precision: ArrayLike, shape: ArrayLike, rate: ArrayLike) -> None:
        values = {"mean": mean, "mean_precision": mean_precision, "shape": shape, "rate": rate}
        parameters = read_parameters("NormalGamma", values, self.parameter_ndims)
        for name in ("mean_precision", "shape", "rate"):
            require(parameters[name] > 0, parameters[name], f"NormalGamma: {name} must be positive")
        vars(self).update(parameters)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the four statistics: scalars."""
        return ((), (), (), ())

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (k m, -k/2, s + 1/2, -(r + k m^2/2))."""
        linear, quadratic, log_precision, negative_rate = natural
        mean_precision = -2.0 * quadratic
        good = (mean_precision > 0) & (mean_precision < np.inf)
        if not np.logical_and.reduce(good, axis=None):
            refuse_improper("NormalGamma", good, "mean_precision must be positive and finite")
        mean = linear / mean_precision
        rate = -negative_rate - 0.5 * linear * mean
        marginal = Gamma._checked(log_precision - 0.5, rate, "NormalGamma")
        shape = marginal.shape
        if mean.shape != shape.shape or mean_precision.shape != shape.shape:
            mean, mean_precision, shape, rate = np.broadcast_arrays(mean, mean_precision, shape, rate)
            marginal = Gamma._trusted(shape=shape, rate=rate)
        return cls._trusted(
            mean=mean,
            mean_precision=mean_precision,
            shape=shape,
            rate=marginal.rate,
            natural=natural,
            precision_marginal=marginal,
        )

    @classmethod
    def statistics_of(cls, value: Any) -> Statistics:
        """Return the four statistics of a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        weighted = precision * location
        return weighted, weighted * location, safe_log(precision), precision

    @property
    def event_shape(self) -> tuple[int, ...]:
        """A pair of scalars."""
        return ()

    @property
    def base_measure(self) -> tuple[float, ...]:
        """1 / precision."""
        return (0.0, 0.0, -1.0, 0.0)

    @cached_property
    def precision_marginal(self) -> Gamma:
        """Distribution of the precision alone."""
        return Gamma._trusted(shape=self.shape, rate=self.rate)

    @cached_property
    def natural(self) -> Statistics:
        """(k m, -k/2, s + 1/2, -(r + k m^2/2))."""
        linear = self.mean_precision * self.mean
        return linear, -0.5 * self.mean_precision, self.shape + 0.5, -(self.rate + 0.5 * linear * self.mean)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(E tau m, 1/k + E tau m^2, digamma(s) - log r, s / r)."""
        expected_log, expected = self.precision_marginal.expected_statistics
        weighted = expected * self.mean
        return weighted, 1.0 / self.mean_precision + weighted * self.mean, expected_log, expected

    @cached_property
    def log_partition(self) -> Array:
        """Log-partition of the Gamma marginal, minus half of log(k / 2 pi)."""
        return self.precision_marginal.log_partition - 0.5 * (np.log(self.mean_precision) - _LOG_TWO_PI)

    @property
    def variance(self) -> Array:
        """Marginal variance of the location; infinite where shape <= 1."""
        surplus = np.maximum(self.shape - 1.0, 0.0)
        with np.errstate(divide="ignore"):
            return self.rate / (self.mean_precision * surplus)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        scale = np.sqrt(self.rate / (self.mean_precision * self.shape))
        location = student_marginals(self.mean, scale, 2 * self.shape, np.sqrt(self.variance), ends)
        (precision,) = self.precision_marginal.entry_marginals(ends)
        return [location, replace(precision, part=".precision")]

    def log_density(self, value: Any) -> Array:
        """Return the log-density at a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        conditional = self.mean_precision * np.where(precision > 0, precision, 1.0)
        distance = conditional * (location - self.mean) ** 2
        return self.precision_marginal.log_density(precision) + 0.5 * (
            np.log(conditional) - _LOG_TWO_PI - distance
        )

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure, from the scales alone: no location can cancel."""
        return self.entropy() - self.expected_statistics[2]

    def entropy(self) -> Array:
        """Return the entropy of the precision plus that expected of the location given it."""
        expected_log = np.log(self.mean_precision) + self.expected_statistics[2]
        return self.precision_marginal.entropy() + 0.5 * (1.0 + _LOG_TWO_PI - expected_log)

    def _divergence(self, other: Self) -> Array:
        distance = other.mean_precision * self.expected_statistics[3] * (self.mean - other.mean) ** 2
        conditional = 0.5 * (ratio_excess(other.mean_precision, self.mean_precision) + distance)
        return self.precision_marginal.kl(other.precision_marginal) + conditional

    def mode(self) -> MeanPrecision:
        """Return the joint mode: the mean, and (shape - 1/2) / rate.

        Raises
        ------
        ImproperError
            If shape <= 1/2: there is no largest density at a positive precision.
        """
        if (self.shape <= 0.5).any():
            raise ImproperError(
                f"A Normal-Gamma distribution has a mode if its shape is greater than 1/2, got {self.shape.min()}. "
                "Use the mean, or a prior with a larger shape."
            )
        return MeanPrecision(self.mean, (self.shape - 0.5) / self.rate)

    def sample(self, size: Size = None, seed: Seed = None) -> MeanPrecision:
        """Return draws of (mean, precision), each of shape size + batch."""
        generator = np.random.default_rng(seed)
        precision = self.precision_marginal.sample(size, generator)
        noise = generator.standard_normal(draw_shape(size, self.batch_shape))
        return MeanPrecision(self.mean + noise / np.sqrt(self.mean_precision * precision), precision)

    def translate(self, delta: ArrayLike) -> Self:
        """Return the distribution of (location + delta, precision)."""
        return type(self)(self.mean + as_value(delta), self.mean_precision, self.shape, self.rate)
