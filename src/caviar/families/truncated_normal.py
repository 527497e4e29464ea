"""The Normal distribution restricted to numbers that are not negative."""

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.bregman import NEAR, near_divergence
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.marginals import Ends, Marginals, matched_gamma
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import ratio_excess
from caviar.numerics.normal_tail import hazard, log_tail_ratio, moment_ratios

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)

_EXPONENTIAL_BELOW = -2.0
"""Location (in standard deviations) below which draws come from an exponential, of which at least 80% are kept."""
_EXPONENTIAL_ALONE = -1e4
"""Location below which quantiles are nearly those of an exponential."""
_NARROW, _MEMBERS = 40.0, 2_000
"""Location above which members are Normals to all digits, and how many members are tabulated below it."""
_FARTHEST = 1e6
"""Standard deviations below zero that a location is at the most: exponential distributions have theirs there, and
moments that are exact to 12 digits."""


@dataclass(frozen=True, eq=False, repr=False)
class TruncatedNormal(ExponentialFamily):
    r"""Normal distributions of a number, restricted to :math:`x \ge 0`.

    .. math:: p(x) = \frac{\sqrt{\tau / 2\pi}\; e^{-\tau (x - m)^2 / 2}}{\Phi(m \sqrt\tau)}, \quad x \ge 0, \qquad
              t = (x,\, x^2), \quad \eta = (\tau m,\, -\tau/2), \quad c = (0, 0)

    Parameters
    ----------
    location
        m, the mean before the restriction; any number.
    precision
        :math:`\tau > 0`, the inverse variance before the restriction.

    Raises
    ------
    ParameterError
        If a precision is not positive, or the batch shapes do not broadcast.

    Notes
    -----
    All figures are accurate relative to themselves from :math:`m \sqrt\tau = -10^6`, where the distribution is nearly
    an exponential one of rate :math:`-\tau m`, to :math:`10^6`, where the restriction has no effect.

    Examples
    --------
    >>> q = TruncatedNormal([-1e6, 0.0, 3.0], 1.0)
    >>> q.mean
    array([1.00000000e-06, 7.97884561e-01, 3.00443784e+00])
    >>> q.mode()
    array([0., 0., 3.])
    """

    location: Array
    precision: Array

    statistics: ClassVar[tuple[str, ...]] = ("x", "xx")
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "")

    def __init__(self, location: ArrayLike, precision: ArrayLike) -> None:
        given = {"location": location, "precision": precision}
        parameters = read_parameters("TruncatedNormal", given, (0, 0))
        tau = parameters["precision"]
        require(tau > 0, tau, "TruncatedNormal: precision must be positive")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (precision * location, -precision / 2)."""
        linear, quadratic = natural
        precision = -2.0 * quadratic
        if not np.logical_and.reduce(precision > 0, axis=None):
            # without a square it is exponential
            least = np.square(np.minimum(linear, 0.0) / _FARTHEST)
            precision = np.where(precision == 0, least, precision)
            natural = linear, -0.5 * precision
        good = (precision > 0) & np.isfinite(linear + precision)
        if not np.logical_and.reduce(good, axis=None):
            expectation = "the precision must be positive and finite, and the location finite"
            refuse_improper("TruncatedNormal", good, expectation)
        location = linear / precision
        if precision.shape != location.shape:
            precision = np.broadcast_to(precision, location.shape)
        return cls._trusted(location=location, precision=precision, natural=natural)

    @classmethod
    def exponential(cls, rate: ArrayLike) -> Self:
        """Return exponential distributions with this rate, which is positive, to 12 digits.

        Examples
        --------
        >>> TruncatedNormal.exponential([0.5, 4.0]).mean
        array([2.  , 0.25])
        """
        own = as_value(rate)
        return cls.from_natural((-own, np.zeros_like(own)))

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return x and x^2."""
        x = as_value(value)
        return x, x * x

    @cached_property
    def natural(self) -> Statistics:
        """(precision * location, -precision / 2)."""
        return self.precision * self.location, -0.5 * self.precision

    @cached_property
    def _unit(self) -> Array:
        """Standard deviation before the restriction."""
        return 1.0 / np.sqrt(self.precision)

    @cached_property
    def _standardised(self) -> Array:
        """Location in units of it."""
        return self.location * np.sqrt(self.precision)

    @cached_property
    def _ratios(self) -> tuple[Array, ...]:
        """Ratios of successive moments, in units of the standard deviation."""
        return moment_ratios(self._standardised)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(mean, mean of the square)."""
        return self.mean, self.mean * (self._unit * self._ratios[1])

    def response(self, change: Statistics) -> Statistics:
        linear, quadratic = change
        unit, location = self._unit, self._standardised
        first, second, third, fourth = self._ratios
        square = first * second
        # each covariance as a difference that cancels on neither side of zero
        below, tail = location < 0, hazard(location)
        skew = np.where(below, square * (third - first), 2.0 * first - tail * square)
        spread = np.where(
            below,
            square * (third * fourth - square),
            2.0 * square + location * (2.0 * first - tail * square),
        )
        skew, spread = skew * unit**3, spread * unit**4
        return self.variance * linear + skew * quadratic, skew * linear + spread * quadratic

    @cached_property
    def log_partition(self) -> Array:
        """Logarithm of standard deviation * Phi / phi at the location."""
        return np.log(self._unit) + log_tail_ratio(self._standardised)

    @cached_property
    def mean(self) -> Array:
        """Mean of the restricted distribution."""
        return self._unit * self._ratios[0]

    @cached_property
    def variance(self) -> Array:
        """Variance of the restricted distribution."""
        location = self._standardised
        first, second = self._ratios[:2]
        ratio = np.where(location < 0, first * (second - first), 1.0 - hazard(location) * first)
        return ratio / self.precision

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at x, which broadcasts with the batch; minus infinity below zero."""
        x, location = as_value(value) * np.sqrt(self.precision), self._standardised
        # far below zero the square of the location would cancel against the normaliser
        lower = (location - 0.5 * x) * x - log_tail_ratio(location)
        upper = -0.5 * (x - location) ** 2 - _HALF_LOG_TWO_PI - log_ndtr(location)
        return np.where(x >= 0, np.where(location < 0, lower, upper) - np.log(self._unit), -np.inf)

    def entropy_about_base(self) -> Array:
        r"""Return :math:`\tfrac12 \log (2 \pi e / \tau) + \log\Phi(l) - \tfrac l2 \varphi(l) / \Phi(l)`."""
        location, mean = self._standardised, self._ratios[0]
        lower = log_tail_ratio(location) - 0.5 * location * mean
        upper = _HALF_LOG_TWO_PI + log_ndtr(location) - 0.5 * location * hazard(location)
        return 0.5 + np.log(self._unit) + np.where(location < 0, lower, upper)

    def _divergence(self, other: Self) -> Array:
        direct = np.where(
            (self._standardised > 0) & (other._standardised > 0),
            self._divergence_inside(other),
            self._divergence_at_the_edge(other),
        )
        is_near = direct < NEAR
        return np.where(is_near, self._near_divergence(other, is_near), direct) if is_near.any() else direct

    def _divergence_inside(self, other: Self) -> Array:
        """Return the divergence as that of the Normals without restriction, and what the restriction adds."""
        mine, theirs = self._standardised, other._standardised
        ratio, edge = other.precision / self.precision, hazard(mine)
        distance = (self.location - other.location) / self._unit
        normal = 0.5 * (ratio_excess(other.precision, self.precision) + ratio * distance**2)
        moved = ratio * distance * edge - 0.5 * (ratio - 1.0) * mine * edge
        return normal + moved + log_ndtr(theirs) - log_ndtr(mine)

    def _divergence_at_the_edge(self, other: Self) -> Array:
        """Return the divergence from log-partitions and expectations, which are small where x = 0 is the mode."""
        mean, square = self.expected_statistics
        moved = (self.natural[0] - other.natural[0]) * mean + 0.5 * (
            other.precision - self.precision
        ) * square
        return other.log_partition - self.log_partition + moved

    def _near_divergence(self, other: Self, is_near: AnyArray) -> Array:
        """Return the divergence where it is small, and zero elsewhere."""
        shape = np.broadcast_shapes(self.batch_shape, other.batch_shape)
        m, tau = (np.broadcast_to(part, shape) for part in (self.location, self.precision))
        by = np.where(is_near, other.location - m, 0.0)
        more = np.where(is_near, other.precision - tau, 0.0)
        linear = (tau + more) * by + more * m

        def curvature(s: float) -> Array:
            precision = tau + s * more
            unit = 1.0 / np.sqrt(precision)
            location = (tau * m + s * linear) * unit
            first, second, third, fourth = moment_ratios(location)
            square = first * second
            at_edge = (first * (second - first), square * (third - first), square * (third * fourth - square))
            inside = _central_covariances(location)
            # from the location the direction is free of cancellation where that is far above zero
            centred = tau * (tau + more) / precision * by
            return np.where(
                location > 0,
                _quadratic(centred * unit, -0.5 * more * unit**2, inside),
                _quadratic(linear * unit, -0.5 * more * unit**2, at_edge),
            )

        return near_divergence(curvature)

    def mode(self) -> Array:
        """Return the location, or 0 where that is negative."""
        return np.maximum(self.location, 0.0)

    def _quantile(self, probability: float | Array) -> Array:
        log_above, location = np.log1p(-np.asarray(probability)), self._standardised
        direct = location - ndtri_exp(log_above + log_ndtr(location))
        # below zero the difference cancels, and far below the distribution is nearly exponential
        below = np.minimum(location, _EXPONENTIAL_BELOW)
        found = np.where(location < _EXPONENTIAL_ALONE, log_above / below, np.maximum(direct, 0.0))
        # one step of Newton's method in the logarithm of the probability above, which cancels nowhere
        excess = (
            log_tail_ratio(below - found) - log_tail_ratio(below) + (below - 0.5 * found) * found - log_above
        )
        step = np.where(location < _EXPONENTIAL_BELOW, excess / hazard(below - found), 0.0)
        return np.maximum(found + step, 0.0) * self._unit

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        low, high = (self._quantile(end) for end in ends)
        return [Marginals(self.mean, np.sqrt(self.variance), low, high)]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        """Return the figures of members with these moments; of a Gamma where the deviation exceeds the mean."""
        mean = np.asarray(own.mean, dtype=np.float64)
        found = matched_gamma(mean, sd, ends)
        with np.errstate(divide="ignore", invalid="ignore"):
            variation = sd / mean
        variations, locations = _members()
        is_member = (variation > 0) & (variation < variations[-1])
        if found.lower is None or found.upper is None or not is_member.any():
            return found
        kept = variation[is_member]
        # where the variation is small the restriction has no effect
        location = np.where(kept < variations[0], 1.0 / kept, np.interp(kept, variations, locations))
        unit = mean[is_member] / moment_ratios(location)[0]
        member = cls(location * unit, unit**-2.0)
        lower, upper = np.array(found.lower), np.array(found.upper)
        for own_end, end in ((lower, ends[0]), (upper, ends[1])):
            own_end[is_member] = member._quantile(np.broadcast_to(end, mean.shape)[is_member])
        return Marginals(mean, sd, lower, upper)

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch."""
        rng = np.random.default_rng(seed)
        shape = draw_shape(size, self.batch_shape)
        location = np.ravel(np.broadcast_to(self._standardised, shape))
        log_uniform = np.log1p(-rng.random(location.shape))
        draws = np.maximum(location - ndtri_exp(log_uniform + log_ndtr(location)), 0.0)
        todo = np.flatnonzero(location < _EXPONENTIAL_BELOW)
        while todo.size:
            # Robert (1995): of an exponential with the rate at zero, kept with probability exp(-x^2 / 2)
            proposed = rng.standard_exponential(todo.shape) / -location[todo]
            kept = rng.random(todo.shape) < np.exp(-0.5 * proposed**2)
            draws[todo[kept]] = proposed[kept]
            todo = todo[~kept]
        return draws.reshape(shape) * self._unit


@cache
def _members() -> tuple[Array, Array]:
    """Return standard deviations in units of the mean, which rise, and the standardised locations that have them."""
    locations = np.sinh(np.linspace(math.asinh(_NARROW), math.asinh(_EXPONENTIAL_ALONE), _MEMBERS))
    family = TruncatedNormal(locations, 1.0)
    return np.sqrt(family.variance) / family.mean, locations


def _central_covariances(location: Array) -> tuple[Array, Array, Array]:
    """Return Var e, Cov(e, e^2) and Var e^2 of the distance e from a location above zero."""
    location = np.maximum(location, 0.0)
    edge = hazard(location)
    second = 1.0 - location * edge
    third = (2.0 + location**2) * edge
    fourth = 3.0 * second - location**3 * edge
    return second - edge**2, third - edge * second, fourth - second**2


def _quadratic(linear: Array, square: Array, covariances: tuple[Array, Array, Array]) -> Array:
    """Return the variance of linear * x + square * x^2."""
    first, mixed, last = covariances
    return linear * linear * first + 2.0 * linear * square * mixed + square * square * last
