"""The Poisson distribution of a count."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.marginals import Ends, Marginals
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import relative_entropy, stirling_remainder

_SERIES_FROM = 1e3
"""From this rate on four terms of the entropy's asymptotic series are exact to twelve digits."""


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(ExponentialFamily):
    r"""Poisson distributions of a count 0, 1, 2, ...

    .. math:: P(x) = \frac{r^x e^{-r}}{x!}, \qquad
              t = (x,), \quad \eta = (\log r,), \quad c = (0,), \quad k(x) = 1 / x!, \quad A = r

    Parameters
    ----------
    rate
        Rate r > 0, the mean.

    Raises
    ------
    ParameterError
        If a rate is not positive.

    Notes
    -----
    The carrier 1/x! is not a function of the statistic, and its expectation has no closed form; so a Poisson is in a
    model as an observed variable only.

    Examples
    --------
    >>> q = Poisson([0.5, 3.2])
    >>> q.mode()
    array([0, 3])
    >>> q.entropy().round(6)
    array([0.927637, 1.966674])
    """

    rate: Array

    statistics: ClassVar[tuple[str, ...]] = ("x",)
    parameter_letters: ClassVar[tuple[str, ...]] = ("",)

    def __init__(self, rate: ArrayLike) -> None:
        parameters = read_parameters("Poisson", {"rate": rate}, (0,))
        require(parameters["rate"] > 0, parameters["rate"], "Poisson: rate must be positive")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameter (log rate,)."""
        (log_rate,) = natural
        with np.errstate(over="ignore"):
            rate = np.exp(log_rate)
        good = (rate > 0) & (rate < np.inf)
        if not np.logical_and.reduce(good, axis=None):
            refuse_improper("Poisson", good, "the rate must be positive and finite")
        return cls._trusted(rate=rate, natural=natural)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return x itself."""
        return (as_value(value),)

    @classmethod
    def log_carrier(cls, value: ArrayLike) -> Array:
        """Return minus log x!."""
        return -gammaln(as_value(value) + 1.0)

    @cached_property
    def natural(self) -> Statistics:
        """(log rate,)."""
        return (np.log(self.rate),)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(rate,)."""
        return (self.rate,)

    def response(self, change: Statistics) -> Statistics:
        return (self.rate * change[0],)

    @cached_property
    def log_partition(self) -> Array:
        """The rate."""
        return self.rate

    @property
    def mean(self) -> Array:
        """The rate."""
        return self.rate

    @property
    def variance(self) -> Array:
        """The rate."""
        return self.rate

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return Marginals(own.mean, sd)

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-probability of a count; minus infinity for any other value."""
        x, rate = np.broadcast_arrays(as_value(value), self.rate)
        positive = np.where(x > 0, x, 1.0)
        counted = -relative_entropy(positive, rate) - stirling_remainder(positive) - np.log(positive)
        whole = (x >= 0) & (x == np.floor(x)) & np.isfinite(x)
        return np.where(whole, np.where(x == 0, -rate, counted), -np.inf)

    def entropy(self) -> Array:
        r"""Return the entropy :math:`r - r \log r + \mathrm{E} \log x!`; the sum is taken as far as it has weight."""
        r = np.maximum(self.rate, _SERIES_FROM)
        large = 0.5 * np.log(2 * np.pi * np.e * r) - 1 / (12 * r) - 1 / (24 * r**2) - 19 / (360 * r**3)
        small = np.minimum(self.rate, _SERIES_FROM)
        last = small.max(initial=0.0)
        x = np.arange(last + 12 * np.sqrt(last) + 40)
        log_factorial = gammaln(x + 1)
        weight = np.exp(xlogy(x, small[..., np.newaxis]) - small[..., np.newaxis] - log_factorial)
        summed = small - xlogy(small, small) + weight @ log_factorial
        return np.where(self.rate < _SERIES_FROM, summed, large)

    def _divergence(self, other: Self) -> Array:
        return relative_entropy(self.rate, other.rate)

    def mode(self) -> AnyArray:
        """Return the largest count of largest probability: the whole part of the rate."""
        return np.floor(self.rate).astype(np.int64)

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return counts of shape size + batch."""
        shape = draw_shape(size, self.batch_shape)
        return np.asarray(np.random.default_rng(seed).poisson(self.rate, shape))
