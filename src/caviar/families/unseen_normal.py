"""Unseen numbers of a Normal, outside a window: their number, their sum and the sum of their squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.normal_interval import UNBOUNDED, interval_moments
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.families.interval_normal import IntervalNormal
from caviar.numerics.cached import cached_property

_TOGETHER = 1 << 18
"""Numbers that are drawn at once."""
_MOST_DRAWN = 1 << 14
"""Unseen numbers of one member that are drawn each; the sums of more are drawn from their Normal limit."""

_ROUNDING = 1e-9
"""Logarithm of a whole weight that counts as 0."""


@dataclass(frozen=True, eq=False, repr=False)
class UnseenNormal(ExponentialFamily):
    r"""How many numbers fell outside a window before one inside was seen, with their sum and that of their squares.

    Each number has the density :math:`e^{\eta_0 + \eta_1 x + \eta_2 x^2}`, which may integrate to less than one. With
    the integral w over what is outside the window, from a to b, the number M of unseen ones is geometric:

    .. math:: P(M = m) = (1 - w) w^m, \qquad \eta = (\eta_0, \eta_1, \eta_2, a, b), \qquad A = -\log(1 - w)

    Parameters
    ----------
    log_weight
        :math:`\eta_0 + \log \int e^{\eta_1 x + \eta_2 x^2} dx`, the logarithm of the whole integral; at most 0.
    location, precision
        Mean and inverse variance of the numbers.
    lower, upper
        The window, at least 1e30 in size where it is not bounded.

    Raises
    ------
    ParameterError
        If a precision is not positive, a weight above 1, or a lower end not below the upper one.

    Notes
    -----
    A window with both ends 0 says nothing: no number is unseen. The window is known, and the statistics that belong to
    it are 0 in every value. A value is the vector of the number, the sum and the sum of squares; densities are about
    the sum of Lebesgue's measures of all numbers outside.

    A number that is observed only inside a window has the density :math:`N(x) / \int_a^b N`. As a mixture over what was
    not seen, :math:`\sum_m \prod_{i \le m} N(x_i)\, N(x)`, it is conjugate: "data augmentation" of truncation (Meng and
    Rubin 1997 use it for EM).

    Examples
    --------
    >>> q = UnseenNormal(0.0, 0.0, 1.0, 1.0, 1e30)  # a standard Normal that is seen above 1
    >>> print(q.mean.round(4))
    [ 5.303  -1.5251  3.7778]
    """

    log_weight: Array
    location: Array
    precision: Array
    lower: Array
    upper: Array

    statistics: ClassVar[tuple[str, ...]] = ("count", "sum", "square", "lower", "upper")
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "", "", "", "")

    def __init__(
        self,
        log_weight: ArrayLike,
        location: ArrayLike,
        precision: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
    ) -> None:
        given = {
            "log_weight": log_weight,
            "location": location,
            "precision": precision,
            "lower": lower,
            "upper": upper,
        }
        own = read_parameters("UnseenNormal", given, (0, 0, 0, 0, 0))
        require(own["precision"] > 0, own["precision"], "UnseenNormal: precision must be positive")
        require(
            own["log_weight"] <= _ROUNDING, own["log_weight"], "UnseenNormal: log_weight must not be positive"
        )
        require(own["lower"] < own["upper"], own["lower"], "UnseenNormal: lower must be below upper")
        vars(self).update(own)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return that all are numbers."""
        return ((),) * len(cls.statistics)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(3,)."""
        return (3,)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with these natural parameters."""
        constant, linear, quadratic, lower, upper = np.broadcast_arrays(*natural)
        # in the first sweep of a row whose label comes later, no parameters are set
        is_empty = (lower >= upper) | ((quadratic == 0) & (linear == 0))
        precision = np.where(is_empty, 1.0, -2.0 * quadratic)
        good = (precision > 0) & np.isfinite(linear + precision)
        if not np.all(good):
            refuse_improper("UnseenNormal", good, "the precision must be positive and finite")
        location = np.where(is_empty, 0.0, linear / precision)
        whole = constant + 0.5 * linear * location + 0.5 * np.log(2.0 * np.pi / precision)
        own = tuple(np.array(part) for part in (constant, linear, quadratic, lower, upper))
        return cls._trusted(
            log_weight=np.where(is_empty, -np.inf, whole),
            location=location,
            precision=precision,
            lower=np.where(is_empty, 0.0, own[3]),
            upper=np.where(is_empty, 0.0, own[4]),
            natural=own,
        )

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return the number, the sum, the sum of squares, and zeros."""
        found = as_value(value)
        zero = np.zeros(found.shape[:-1])
        return found[..., 0], found[..., 1], found[..., 2], zero, zero

    @cached_property
    def natural(self) -> Statistics:
        """Natural parameters."""
        linear = self.precision * self.location
        constant = self.log_weight - 0.5 * linear * self.location - 0.5 * np.log(2.0 * np.pi / self.precision)
        return constant, linear, -0.5 * self.precision, self.lower, self.upper

    @cached_property
    def _tails(self) -> tuple[Array, Array, Array]:
        """Weight of each tail, (2, batch...), and mean and central moments of each."""
        far = np.full(self.batch_shape, UNBOUNDED)
        linear, quadratic = self.precision * self.location, -0.5 * self.precision
        tails = [
            interval_moments(linear, quadratic, *ends) for ends in ((-far, self.lower), (self.upper, far))
        ]
        whole = self.log_weight - 0.5 * linear * self.location - 0.5 * np.log(2.0 * np.pi / self.precision)
        there = np.stack([np.abs(self.lower) < UNBOUNDED, np.abs(self.upper) < UNBOUNDED])
        weights = np.stack([np.exp(whole + own.log_integral) for own in tails]) * there
        return (
            weights,
            np.stack([own.mean for own in tails]),
            np.stack([own.central for own in tails], axis=1),
        )

    @cached_property
    def _seen(self) -> Array:
        """Probability 1 - w, that a number is inside, as a sum of nonnegative terms."""
        linear, quadratic = self.precision * self.location, -0.5 * self.precision
        inside = interval_moments(linear, quadratic, self.lower, np.maximum(self.upper, self.lower))
        whole = self.log_weight - 0.5 * linear * self.location - 0.5 * np.log(2.0 * np.pi / self.precision)
        # beyond rounding a weight above 1 is one: of a factor that a move has led to
        beyond = np.where(self.log_weight > _ROUNDING, self.log_weight, np.minimum(self.log_weight, 0.0))
        seen = np.exp(whole + inside.log_integral) - np.expm1(beyond)
        return np.where(np.isneginf(self.log_weight), 1.0, np.minimum(seen, 1.0))

    @cached_property
    def _number(self) -> Array:
        """Expected number of unseen ones, w / (1 - w)."""
        return self._tails[0].sum(axis=0) / self._seen

    @cached_property
    def _of_one(self) -> tuple[Array, Array]:
        """Expectations of (1, x, x^2), (3, batch...), and of their products, (3, 3, batch...), of one unseen number."""
        weights, mean, (second, third, fourth) = self._tails
        total = weights.sum(axis=0)
        shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        own = [np.ones_like(mean), mean, second + mean**2]
        own.append(third + 3.0 * mean * second + mean**3)
        own.append(fourth + 4.0 * mean * third + 6.0 * mean**2 * second + mean**4)
        # a tail without an end has no numbers
        powers = [(shares * np.where(weights > 0, power, 0.0)).sum(axis=0) for power in own]
        return np.stack(powers[:3]), np.array([[powers[i + j] for j in range(3)] for i in range(3)])

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Expected number, sum and sum of squares, and zeros."""
        zero = np.zeros(self.batch_shape)
        return (*(self._number * own for own in self._of_one[0]), zero, zero)

    def response(self, change: Statistics) -> Statistics:
        # Cov t = E[M] E[s s'] + (Var M - E M) E[s] E[s]', and Var M - E M = E[M]^2 of a geometric number
        first, products = self._of_one
        moved = np.stack([np.broadcast_to(own, self.batch_shape) for own in change[:3]])
        found = self._number * np.einsum("ij...,j...->i...", products, moved)
        found = found + self._number**2 * first * (first * moved).sum(axis=0)
        zero = np.zeros(self.batch_shape)
        return (*found, zero, zero)

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        """Return by how much the expected value changes."""
        return (np.stack(self.response(change)[:3], axis=-1),)

    def covariance_of_value(self) -> Array:
        """Return the covariance of number, sum and sum of squares, batch + (3, 3)."""
        one, zero = np.ones(self.batch_shape), np.zeros(self.batch_shape)
        changes = [[one if place == own else zero for place in range(5)] for own in range(3)]
        return np.stack([self.response_of_value(tuple(own))[0] for own in changes], axis=-1)

    @cached_property
    def log_partition(self) -> Array:
        """Minus the logarithm of the probability that a number is seen."""
        return -np.log(self._seen)

    @property
    def mean(self) -> Array:
        """Expected number, sum and sum of squares, (batch..., 3)."""
        return np.stack(self.expected_statistics[:3], axis=-1)

    @property
    def variance(self) -> Array:
        """Variances of number, sum and sum of squares, (batch..., 3)."""
        return np.diagonal(self.covariance_of_value(), axis1=-2, axis2=-1)

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log density of a number of unseen ones with this sum and sum of squares."""
        pairs = zip(self.natural[:3], self.statistics_of(value)[:3], strict=True)
        # no number is possible where the weight of one is 0
        return sum(np.where(part == 0, 0.0, own) * part for own, part in pairs) - self.log_partition

    def entropy_about_base(self) -> Array:
        """Return the log-partition less the expectation of the exponent."""
        pairs = zip(self.natural[:3], self.expected_statistics[:3], strict=True)
        return self.log_partition - sum(np.where(mean == 0, 0.0, own) * mean for own, mean in pairs)

    def _divergence(self, other: Self) -> Array:
        same = (self.lower == other.lower) & (self.upper == other.upper)
        pairs = list(zip(self.natural, other.natural, self.expected_statistics, strict=True))[:3]
        moved = sum((own - theirs) * mean for own, theirs, mean in pairs)
        return np.where(same, other.log_partition - self.log_partition + moved, np.inf)

    def mode(self) -> Array:
        """Return no number."""
        return np.zeros((*self.batch_shape, 3))

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch + (3,); sums of more than 16,384 numbers come from their limit."""
        rng, shape = np.random.default_rng(seed), draw_shape(size, self.batch_shape)
        # a window that nothing ever falls into has as many as an integer can say
        seen = np.maximum(self._seen, np.finfo(float).tiny)
        numbers = np.asarray(rng.geometric(np.broadcast_to(seen, shape))) - 1
        weights, *_ = self._tails
        total = weights.sum(axis=0)
        share = np.broadcast_to(
            np.divide(weights[0], total, out=np.zeros_like(total), where=total > 0), shape
        )
        below = np.asarray(rng.binomial(numbers, share))
        found = np.zeros((*shape, 3))
        found[..., 0] = numbers
        far = np.full(self.batch_shape, UNBOUNDED)
        for count, lower, upper in ((below, -far, self.lower), (numbers - below, self.upper, far)):
            tail = IntervalNormal(
                self.location, self.precision, np.minimum(lower, upper), np.maximum(lower, upper)
            )
            found[..., 1:] += _sums_of_draws(tail, count, rng)
        return found


def _sums_of_draws(tail: IntervalNormal, counts: AnyArray, rng: np.random.Generator) -> Array:
    """Return the sum of a number of draws of each member, and the sum of their squares, (..., 2)."""
    every, counts = tail.broadcast_to(np.shape(counts)), np.ravel(counts)
    members = [np.ravel(own) for own in (every.location, every.precision, every.lower, every.upper)]
    is_many = counts > _MOST_DRAWN
    found, stops = np.zeros((counts.size, 2)), np.cumsum(np.where(is_many, 0, counts))
    for first in range(0, int(stops[-1]) if counts.size else 0, _TOGETHER):
        of = np.searchsorted(stops, np.arange(first, min(first + _TOGETHER, int(stops[-1]))), side="right")
        x = IntervalNormal(*(own[of] for own in members)).sample(None, rng)
        for power in (1, 2):
            found[:, power - 1] += np.bincount(of, x**power, counts.size)
    found[is_many] = _limit_of_sums(IntervalNormal(*(own[is_many] for own in members)), counts[is_many], rng)
    return found.reshape(*every.batch_shape, 2)


def _limit_of_sums(tail: IntervalNormal, counts: AnyArray, rng: np.random.Generator) -> Array:
    """Return draws of the same from the central limit, which is off by about the square root of 1 / counts."""
    mean, (second, third, fourth) = tail.mean, tail.central_moments
    root, draws = np.sqrt(counts), rng.normal(size=(2, len(counts)))
    # sums of x - mean, and of its square less the variance, which cannot cancel
    first = np.sqrt(second) * draws[0]
    skew = np.divide(third, second, out=np.zeros_like(second), where=second > 0)
    rest = np.sqrt(np.maximum(fourth - second**2 - skew * third, 0.0))
    square = skew * first + rest * draws[1]
    total = counts * mean + root * first
    return np.stack([total, counts * (second + mean**2) + root * (square + 2.0 * mean * first)], axis=-1)
