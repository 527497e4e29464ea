"""The Normal distribution restricted to an interval, which differs from member to member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.marginals import Ends, Marginals
from caviar.families.base.normal_interval import UNBOUNDED, IntervalMoments, interval_moments
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False, repr=False)
class IntervalNormal(ExponentialFamily):
    r"""Normal distributions of a number, restricted to :math:`a \le x \le b`; one point where a = b.

    .. math:: p(x) \propto e^{\eta_1 x + \eta_2 x^2}, \quad a \le x \le b, \qquad \eta = (\tau m, -\tfrac12\tau, a, b)

    Parameters
    ----------
    location, precision
        m and :math:`\tau > 0`, mean and inverse variance before the restriction.
    lower, upper
        a and b, at least 1e30 in size where the interval is not bounded.

    Raises
    ------
    ParameterError
        If a precision is not positive where there is an interval, or a lower end is above the upper one.

    Notes
    -----
    The known interval is part of the natural parameters and may differ from row to row; its statistics are 0
    for every value. So the entropy is :math:`A - \langle \eta, \mathrm E t \rangle`, as always.

    Examples
    --------
    >>> q = IntervalNormal(0.0, 1.0, [-1e30, 1.0, 3.0], [0.0, 1e30, 3.0])
    >>> q.mean.round(6)
    array([-0.797885,  1.525135,  3.      ])
    """

    location: Array
    precision: Array
    lower: Array
    upper: Array

    statistics: ClassVar[tuple[str, ...]] = ("x", "xx", "lower", "upper")
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "", "", "")

    def __init__(self, location: ArrayLike, precision: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        given = {"location": location, "precision": precision, "lower": lower, "upper": upper}
        parameters = read_parameters("IntervalNormal", given, (0, 0, 0, 0))
        a, b, tau = parameters["lower"], parameters["upper"], parameters["precision"]
        require(a <= b, a, "IntervalNormal: lower must not be above upper")
        require((tau > 0) | (a == b), tau, "IntervalNormal: precision must be positive")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with these natural parameters."""
        linear, quadratic, lower, upper = np.broadcast_arrays(*natural)
        precision = -2.0 * quadratic
        # in the first sweep of a row whose label comes later, no parameters are set: the value is nearest to 0
        is_silent = (quadratic == 0) & (linear == 0)
        nearest = np.clip(0.0, lower, np.maximum(lower, upper))
        lower, upper = (np.where(is_silent, nearest, end) for end in (lower, upper))
        good = (precision > 0) & np.isfinite(linear + precision) | (lower >= upper)
        if not np.all(good):
            refuse_improper("IntervalNormal", good, "the precision must be positive and finite")
        location = np.divide(linear, precision, out=np.zeros(linear.shape), where=precision > 0)
        own = (linear.copy(), quadratic.copy(), np.array(lower), np.array(upper))
        return cls._trusted(location=location, precision=precision, lower=own[2], upper=own[3], natural=own)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return x, x^2 and zeros."""
        x = as_value(value)
        return x, x * x, np.zeros_like(x), np.zeros_like(x)

    @cached_property
    def natural(self) -> Statistics:
        """(precision * location, -precision / 2, lower, upper)."""
        return self.precision * self.location, -0.5 * self.precision, self.lower, self.upper

    @cached_property
    def _moments(self) -> IntervalMoments:
        return interval_moments(*self.natural)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Mean, mean of the square, and zeros."""
        zero = np.zeros_like(self.mean)
        return self.mean, self.variance + self.mean**2, zero, zero

    def response(self, change: Statistics) -> Statistics:
        mean, (second, third, fourth) = self.mean, self._moments.central
        crossed = third + 2.0 * mean * second
        last = fourth + 4.0 * mean * third + (4.0 * mean**2 - second) * second
        zero = np.zeros_like(mean)
        return second * change[0] + crossed * change[1], crossed * change[0] + last * change[1], zero, zero

    @cached_property
    def log_partition(self) -> Array:
        """Logarithm of the integral over the interval."""
        return self._moments.log_integral

    @property
    def mean(self) -> Array:
        """Mean of the restricted distribution."""
        return self._moments.mean

    @property
    def variance(self) -> Array:
        """Variance of the restricted distribution."""
        return self._moments.central[0]

    @property
    def central_moments(self) -> tuple[Array, Array, Array]:
        """Second, third and fourth central moment."""
        return self._moments.central

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log density at x; minus infinity outside, and 0, of a mass, at a point that is certain."""
        x = as_value(value)
        linear, quadratic, lower, upper = self.natural
        inside = (x >= lower) & (x <= upper)
        return np.where(inside, linear * x + quadratic * x * x - self.log_partition, -np.inf)

    def entropy_about_base(self) -> Array:
        """Return the log-partition less the expectation of the exponent."""
        linear, quadratic, *_ = self.natural
        # about the mean: the squares of both are large far from zero
        mean, variance = self.mean, self.variance
        return self.log_partition - (linear + quadratic * mean) * mean - quadratic * variance

    def _divergence(self, other: Self) -> Array:
        inside = (other.lower <= self.lower) & (self.upper <= other.upper)
        pairs = list(zip(self.natural, other.natural, self.expected_statistics, strict=True))[:2]
        moved = sum((own - theirs) * mean for own, theirs, mean in pairs)
        return np.where(inside, other.log_partition - self.log_partition + moved, np.inf)

    def mode(self) -> Array:
        """Return the location, or the end that is nearest to it."""
        return np.clip(self.location, self.lower, self.upper)

    def _standardised(self) -> tuple[Array, Array, Array]:
        """Return the width before the restriction, and the ends in units of it."""
        unit = 1.0 / np.sqrt(np.where(self.precision > 0, self.precision, 1.0))
        ends = (
            np.where(np.abs(end) >= UNBOUNDED, np.copysign(np.inf, end), (end - self.location) / unit)
            for end in (self.lower, self.upper)
        )
        return (unit, *ends)  # type: ignore[return-value]

    def _quantile(self, probability: Array | float) -> Array:
        # scipy.stats takes as long to import as the rest of this library and what it needs
        from scipy.stats import truncnorm

        unit, lower, upper = self._standardised()
        is_point = self.lower >= self.upper
        found = truncnorm.ppf(probability, lower, np.where(is_point, lower + 1.0, upper))
        return np.where(is_point, self.lower, self.location + unit * found)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        low, high = (self._quantile(end) for end in ends)
        return [Marginals(self.mean, np.sqrt(self.variance), low, high)]

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch."""
        uniform = np.random.default_rng(seed).random(draw_shape(size, self.batch_shape))
        return self._quantile(uniform)
