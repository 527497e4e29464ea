"""The Gamma distribution of a positive number."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaincinv, gammaln, polygamma, xlogy

from caviar._errors import ImproperError, ParameterError
from caviar._typing import Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape, safe_log
from caviar.families.base.marginals import Ends, Marginals, matched_gamma
from caviar.families.base.parameters import all_positive, read_parameters, refuse_improper, require
from caviar.families.base.transforms import LogScale, Transform
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import (
    bregman_remainder,
    entropy_remainder,
    relative_entropy,
    stirling_remainder,
)


@dataclass(frozen=True, eq=False, repr=False)
class Gamma(ExponentialFamily):
    r"""Gamma distributions of a positive number.

    .. math:: p(x) = \frac{r^s}{\Gamma(s)} x^{s - 1} e^{-r x}, \qquad
              t = (\log x,\, x), \quad \eta = (s,\, -r), \quad c = (-1, 0)

    Parameters
    ----------
    shape
        Shape s > 0.
    rate
        Rate r > 0, the inverse scale.

    Raises
    ------
    ParameterError
        If a parameter is not positive, or the batch shapes do not broadcast.

    Examples
    --------
    >>> q = Gamma([1.0, 4.0], 2.0)
    >>> q.mean
    array([0.5, 2. ])
    >>> q.mode()
    array([0. , 1.5])
    >>> q.mode(smallest_variance=0.8)
    array([0.  , 1.25])
    """

    shape: Array
    rate: Array

    statistics: ClassVar[tuple[str, ...]] = ("log_x", "x")
    transforms: ClassVar[tuple[Transform, ...]] = (LogScale(),)
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "")

    def __init__(self, shape: ArrayLike, rate: ArrayLike) -> None:
        parameters = read_parameters("Gamma", {"shape": shape, "rate": rate}, (0, 0))
        for name, value in parameters.items():
            require(value > 0, value, f"Gamma: {name} must be positive")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (shape, -rate)."""
        return cls._checked(natural[0], -natural[1], "Gamma", natural=natural)

    @classmethod
    def _checked(cls, shape: Array, rate: Array, owner: str, **cached: Statistics) -> Self:
        """Return the distributions with these parameters, or refuse them in the name of ``owner``."""
        if not (all_positive(shape) and all_positive(rate)):
            good = (np.minimum(shape, rate) > 0) & (np.maximum(shape, rate) < np.inf)
            refuse_improper(owner, good, "the shape and the rate must be positive and finite")
        if shape.shape != rate.shape:
            shape, rate = np.broadcast_arrays(shape, rate)
        return cls._trusted(shape=shape, rate=rate, **cached)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return log x and x; the logarithm of 0 is taken as that of the smallest positive number."""
        x = as_value(value)
        return safe_log(x), x

    @property
    def base_measure(self) -> tuple[float, ...]:
        """1 / x."""
        return (-1.0, 0.0)

    @cached_property
    def natural(self) -> Statistics:
        """(shape, -rate)."""
        return self.shape, -self.rate

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(digamma(shape) - log rate, shape / rate)."""
        return digamma(self.shape) - np.log(self.rate), self.shape / self.rate

    def response(self, change: Statistics) -> Statistics:
        of_shape, of_rate = change
        per_rate = 1.0 / self.rate
        log_x = polygamma(1, self.shape) * of_shape + of_rate * per_rate
        return log_x, (of_shape + self.mean * of_rate) * per_rate

    @cached_property
    def log_partition(self) -> Array:
        """Log-gamma(shape) - shape * log rate."""
        return gammaln(self.shape) - self.shape * np.log(self.rate)

    @cached_property
    def mean(self) -> Array:
        """Ratio of shape and rate."""
        return self.shape / self.rate

    @property
    def variance(self) -> Array:
        """Variance shape / rate^2."""
        return self.mean / self.rate

    def inverse_moments(self) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            first = self.rate / np.maximum(self.shape - 1.0, 0.0)
            return first, first * self.rate / np.maximum(self.shape - 2.0, 0.0)

    def log_moments(self) -> tuple[Array, Array]:
        return digamma(self.shape) - np.log(self.rate), polygamma(1, self.shape)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        lower, upper = (gammaincinv(self.shape, end) / self.rate for end in ends)
        return [Marginals(self.mean, np.sqrt(self.variance), lower, upper)]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return matched_gamma(own.mean, sd, ends)

    @classmethod
    def of_spread(cls, mean: Array, covariance: Array) -> Self | None:
        variance = covariance[..., 0, 0]
        return cls(mean**2 / variance, mean / variance) if (variance > 0).all() else None

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at x, which broadcasts with the batch."""
        x, shape = np.broadcast_arrays(as_value(value), self.shape)
        inside = x > 0
        positive = np.where(inside, x, 1.0)
        density = (
            -relative_entropy(shape, self.rate * positive) - stirling_remainder(shape) - np.log(positive)
        )
        at_zero = xlogy(shape - 1.0, 0.0) - self.log_partition
        return np.where(inside, density, np.where(x == 0, at_zero, -np.inf))

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure, which depends on the shape alone."""
        return entropy_remainder(self.shape)

    def _divergence(self, other: Self) -> Array:
        # other.rate / self.rate - 1, and how far self's shape times that ratio lies from other's shape
        excess = (other.rate - self.rate) / self.rate
        scaled = self.shape * (other.rate / self.rate)
        gap = (self.shape - other.shape) + self.shape * excess
        return bregman_remainder(self.shape, other.shape) + relative_entropy(other.shape, scaled, gap)

    def mode(self, smallest_variance: ArrayLike | None = None) -> Array:
        """Return (shape - 1) / rate; 0, on the boundary, for a shape of 1.

        Parameters
        ----------
        smallest_variance
            If given, the density is maximised over x up to the inverse of this, of the batch shape or scalar. The
            density has one peak, so the maximum is the lesser of the two.

        Raises
        ------
        ImproperError
            If a shape is below 1: the density is unbounded at 0.
        """
        if (self.shape < 1).any():
            raise ImproperError(
                f"A Gamma distribution has a mode if its shape is at least 1, got {self.shape.min()}. "
                "Use the mean, or a prior with a larger shape.",
                self.shape >= 1,
            )
        if smallest_variance is None:
            return (self.shape - 1.0) / self.rate
        smallest = as_value(smallest_variance)
        if not (smallest >= 0).all():
            raise ParameterError(f"smallest_variance must not be negative, got {smallest_variance}.")
        return self.mode_of_natural(self.natural, smallest)

    @staticmethod
    def mode_of_natural(natural: Statistics, smallest_variance: Array) -> Array:
        """Return the mode among numbers up to the inverse of ``smallest_variance``.

        With such a bound there is a mode for a rate of zero too, so this takes natural parameters.
        """
        surplus, rate = natural[0] - 1.0, -natural[1]
        clipped = np.maximum(rate, smallest_variance * surplus)
        # no data and no bound reached: every value is as good, the largest allowed is finite
        unbounded = clipped <= 0
        largest = 1.0 / np.maximum(smallest_variance, np.finfo(np.float64).tiny)
        return np.where(unbounded, largest, surplus / np.where(unbounded, 1.0, clipped))

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch; one that underflows is the smallest normal number."""
        draws = np.random.default_rng(seed).standard_gamma(self.shape, draw_shape(size, self.batch_shape))
        return np.maximum(draws / self.rate, np.finfo(np.float64).tiny)
