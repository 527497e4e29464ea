"""The joint distribution of several numbers and the one precision that they share."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError
from caviar._typing import Array, Statistics
from caviar.families._base import ExponentialFamily, MeanPrecision, Seed, Size, as_value, draw_shape, safe_log
from caviar.families._marginals import Ends, Marginals
from caviar.families._parameters import matched_locations, read_parameters, refuse_improper, require
from caviar.families.gamma import Gamma
from caviar.families.normal_gamma import NormalGamma
from caviar.numerics.gamma_function import ratio_excess

_LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False, repr=False)
class TiedNormalGamma(ExponentialFamily):
    r"""Joint distributions of M numbers :math:`\mu_m` and their one precision :math:`\tau`.

    .. math:: \mu_m \mid \tau \sim N(m_m,\, 1 / (k_m \tau)), \quad m = 1 \ldots M, \qquad
              \tau \sim \mathrm{Gamma}(s, r)

    .. math:: t = (\tau\mu_m,\, \tau\mu_m^2,\, \log\tau,\, \tau), \quad
              \eta = \bigl(k_m m_m,\, -k_m/2,\, s + \tfrac M2,\, -(r + \textstyle\sum_m k_m m_m^2/2)\bigr), \quad
              c = (0, 0, -1, 0)

    The conjugate prior of columns, or groups, with means of their own and a common variance.

    Parameters
    ----------
    mean
        Locations m, shape (..., M).
    mean_precision
        Precisions k > 0 of the locations, in units of :math:`\tau`, shape (..., M); a number stands for all.
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
    >>> q.variance  # of each location, whatever the precision
    array([1., 1.])
    >>> print(q.mode().precision)
    0.75
    """

    mean: Array
    mean_precision: Array
    shape: Array
    rate: Array

    statistics: ClassVar[tuple[str, ...]] = ("precision_x", "precision_xx", "log_precision", "precision")
    parameter_letters: ClassVar[tuple[str, ...]] = ("m", "m", "", "")

    def __init__(self, mean: ArrayLike, mean_precision: ArrayLike, shape: ArrayLike, rate: ArrayLike) -> None:
        values = {"mean": mean, "mean_precision": mean_precision, "shape": shape, "rate": rate}
        if np.ndim(mean_precision) == 0:
            values["mean_precision"] = np.reshape(mean_precision, 1)
        parameters = read_parameters("TiedNormalGamma", values, self.parameter_ndims)
        for name in ("mean_precision", "shape", "rate"):
            require(parameters[name] > 0, parameters[name], f"TiedNormalGamma: {name} must be positive")
        matched_locations("TiedNormalGamma", parameters, axis=-1)
        vars(self).update(parameters)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the four statistics: (M,), (M,), () and ()."""
        return event_shape, event_shape, (), ()

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (k m, -k/2, s + M/2, -(r + sum k m^2/2))."""
        linear, quadratic, log_precision, negative_rate = natural
        mean_precision = -2.0 * quadratic
        good = (mean_precision > 0) & (mean_precision < np.inf)
        if not np.logical_and.reduce(good, axis=None):
            refuse_improper(cls.__name__, good, "mean_precision must be positive and finite")
        mean = linear / mean_precision
        n_locations = mean.shape[-1]
        rate = -negative_rate - 0.5 * (linear * mean).sum(axis=-1)
        marginal = Gamma._checked(log_precision - 0.5 * n_locations, rate, cls.__name__)
        batch = np.broadcast_shapes(marginal.shape.shape, mean.shape[:-1])
        if marginal.shape.shape != batch:
            marginal = Gamma._trusted(
                shape=np.broadcast_to(marginal.shape, batch), rate=np.broadcast_to(marginal.rate, batch)
            )
        return cls._trusted(
            mean=np.broadcast_to(mean, (*batch, n_locations)),
            mean_precision=np.broadcast_to(mean_precision, (*batch, n_locations)),
            shape=marginal.shape,
            rate=marginal.rate,
            natural=natural,
            precision_marginal=marginal,
        )

    @classmethod
    def statistics_of(cls, value: Any) -> Statistics:
        """Return the four statistics of a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        weighted = precision[..., np.newaxis] * location
        return weighted, weighted * location, safe_log(precision), precision

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(M,), the shape of the locations."""
        return self.mean.shape[-1:]

    @property
    def base_measure(self) -> tuple[float, ...]:
        """1 / precision."""
        return (0.0, 0.0, -1.0, 0.0)

    @cached_property
    def precision_marginal(self) -> Gamma:
        """Distribution of the precision alone."""
        return Gamma._trusted(shape=self.shape, rate=self.rate)

    @property
    def marginals(self) -> NormalGamma:
        """Joint distribution of each location and the precision, the other locations left out: batch (..., M)."""
        return NormalGamma._trusted(
            mean=self.mean,
            mean_precision=self.mean_precision,
            shape=np.broadcast_to(self.shape[..., np.newaxis], self.mean.shape),
            rate=np.broadcast_to(self.rate[..., np.newaxis], self.mean.shape),
        )

    def repeated(self, n_locations: int) -> Self:
        """Return the distributions of so many locations, where there is one to stand for all."""
        full = (*self.mean.shape[:-1], n_locations)
        mean, mean_precision = (np.broadcast_to(a, full) for a in (self.mean, self.mean_precision))
        return self._trusted(mean=mean, mean_precision=mean_precision, shape=self.shape, rate=self.rate)

    @cached_property
    def natural(self) -> Statistics:
        """(k m, -k/2, s + M/2, -(r + sum k m^2/2))."""
        linear = self.mean_precision * self.mean
        return (
            linear,
            -0.5 * self.mean_precision,
            self.shape + 0.5 * self.mean.shape[-1],
            -(self.rate + 0.5 * (linear * self.mean).sum(axis=-1)),
        )

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(E tau m, 1/k + E tau m^2, digamma(s) - log r, s / r)."""
        expected_log, expected = self.precision_marginal.expected_statistics
        weighted = expected[..., np.newaxis] * self.mean
        return weighted, 1.0 / self.mean_precision + weighted * self.mean, expected_log, expected

    @cached_property
    def _log_spread(self) -> Array:
        """Sum of log k."""
        return np.log(self.mean_precision).sum(axis=-1)

    @cached_property
    def log_partition(self) -> Array:
        """Log-partition of the Gamma marginal, minus half of log(k / 2 pi) of each location."""
        location = self._log_spread - self.mean.shape[-1] * _LOG_TWO_PI
        return self.precision_marginal.log_partition - 0.5 * location

    @property
    def variance(self) -> Array:
        """Marginal variance of each location, shape (..., M); infinite where shape <= 1."""
        return self.marginals.variance

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        locations = self.marginals.entry_marginals(ends)[0]
        (precision,) = self.precision_marginal.entry_marginals(ends)
        return [locations, replace(precision, part=".precision", is_shared=True)]

    def log_density(self, value: Any) -> Array:
        """Return the log-density at a pair (mean, precision)."""
        location, precision = (as_value(part) for part in value)
        positive = np.where(precision > 0, precision, 1.0)
        distance = positive * (self.mean_precision * (location - self.mean) ** 2).sum(axis=-1)
        conditional = self._log_spread + self.mean.shape[-1] * (np.log(positive) - _LOG_TWO_PI)
        return self.precision_marginal.log_density(precision) + 0.5 * (conditional - distance)

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure, from the scales alone: no location can cancel."""
        return self.entropy() - self.expected_statistics[2]

    def entropy(self) -> Array:
        """Return the entropy of the precision plus that expected of the locations given it."""
        n_locations = self.mean.shape[-1]
        expected_log = self._log_spread + n_locations * self.expected_statistics[2]
        return self.precision_marginal.entropy() + 0.5 * (n_locations * (1.0 + _LOG_TWO_PI) - expected_log)

    def _divergence(self, other: Self) -> Array:
        expected = self.expected_statistics[3][..., np.newaxis]
        distance = other.mean_precision * expected * (self.mean - other.mean) ** 2
        spread = ratio_excess(other.mean_precision, self.mean_precision)
        return self.precision_marginal.kl(other.precision_marginal) + 0.5 * (spread + distance).sum(axis=-1)

    def mode(self) -> MeanPrecision:
        """Return the joint mode: the means, and (shape + M/2 - 1) / rate.

        Raises
        ------
        ImproperError
            If shape <= 1 - M/2, which M = 1 allows: there is no largest density at a positive precision.
        """
        n_locations = self.mean.shape[-1]
        surplus = self.shape + (0.5 * n_locations - 1.0)
        if (surplus <= 0).any():
            raise ImproperError(
                f"A Normal-Gamma distribution of {n_locations} locations has a mode if its shape is greater than "
                f"{1 - 0.5 * n_locations:g}, got {self.shape.min()}. Use the mean, or a prior with a larger shape."
            )
        return MeanPrecision(self.mean, surplus / self.rate)

    def sample(self, size: Size = None, seed: Seed = None) -> MeanPrecision:
        """Return draws of (mean, precision), of shapes size + batch + (M,) and size + batch."""
        generator = np.random.default_rng(seed)
        precision = self.precision_marginal.sample(size, generator)
        noise = generator.standard_normal(draw_shape(size, self.mean.shape))
        deviation = noise / np.sqrt(self.mean_precision * precision[..., np.newaxis])
        return MeanPrecision(self.mean + deviation, precision)

    def translate(self, delta: ArrayLike) -> Self:
        """Return the distribution of (locations + delta, precision)."""
        return type(self)(self.mean + as_value(delta), self.mean_precision, self.shape, self.rate)
