"""The Beta distribution of a number between zero and one."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._errors import ImproperError
from caviar._typing import Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, safe_log
from caviar.families.base.marginals import Ends, Marginals, beta_marginals, matched_beta
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.families.base.transforms import LogOdds, Transform
from caviar.families.dirichlet import Dirichlet
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False, repr=False)
class Beta(ExponentialFamily):
    r"""Beta distributions of a number between zero and one.

    .. math:: p(x) = \frac{\Gamma(a + b)}{\Gamma(a)\Gamma(b)} x^{a - 1} (1 - x)^{b - 1}, \qquad
              t = (\log x,\, \log(1 - x)), \quad \eta = (a,\, b), \quad c = (-1, -1)

    Parameters
    ----------
    a, b
        Concentrations a > 0 at one and b > 0 at zero: a counts successes, b failures.

    Raises
    ------
    ParameterError
        If a parameter is not positive, or the batch shapes do not broadcast.

    Notes
    -----
    It is the distribution of the first of two weights with a Dirichlet distribution, which does the computation.

    Examples
    --------
    >>> q = Beta([2.0, 1.0], 3.0)
    >>> q.mean
    array([0.4 , 0.25])
    >>> q.mode().round(6)
    array([0.333333, 0.      ])
    """

    a: Array
    b: Array

    statistics: ClassVar[tuple[str, ...]] = ("log_x", "log_complement")
    transforms: ClassVar[tuple[Transform, ...]] = (LogOdds(),)
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "")

    def __init__(self, a: ArrayLike, b: ArrayLike) -> None:
        parameters = read_parameters("Beta", {"a": a, "b": b}, (0, 0))
        for name, value in parameters.items():
            require(value > 0, value, f"Beta: {name} must be positive")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (a, b)."""
        a, b = natural
        good = (np.minimum(a, b) > 0) & (np.maximum(a, b) < np.inf)
        if not np.logical_and.reduce(good, axis=None):
            refuse_improper("Beta", good, "a and b must be positive and finite")
        if a.shape != b.shape:
            a, b = np.broadcast_arrays(a, b)
        return cls._trusted(a=a, b=b, natural=natural)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return log x and log(1 - x); the logarithm of 0 is taken as that of the smallest positive number."""
        x = as_value(value)
        return safe_log(x), safe_log(1.0 - x)

    @property
    def base_measure(self) -> tuple[float, ...]:
        """1 / (x (1 - x))."""
        return (-1.0, -1.0)

    @cached_property
    def _dirichlet(self) -> Dirichlet:
        return Dirichlet._trusted(concentration=np.stack((self.a, self.b), axis=-1))

    @cached_property
    def natural(self) -> Statistics:
        """(a, b)."""
        return self.a, self.b

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(digamma(a) - digamma(a + b), digamma(b) - digamma(a + b))."""
        (log_weights,) = self._dirichlet.expected_statistics
        return log_weights[..., 0], log_weights[..., 1]

    def response(self, change: Statistics) -> Statistics:
        (log_weights,) = self._dirichlet.response((np.stack(change, axis=-1),))
        return log_weights[..., 0], log_weights[..., 1]

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        (weights,) = self._dirichlet.response_of_value((np.stack(change, axis=-1),))
        return (weights[..., 0],)

    def covariance_of_value(self) -> Array:
        return self.variance[..., np.newaxis, np.newaxis]

    @cached_property
    def log_partition(self) -> Array:
        """Logarithm of the Beta function of a and b."""
        return self._dirichlet.log_partition

    @property
    def mean(self) -> Array:
        """Mean a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> Array:
        """Variance a b / ((a + b)^2 (a + b + 1))."""
        total = self.a + self.b
        return (self.a / total) * (self.b / total) / (total + 1.0)

    def inverse_moments(self) -> tuple[Array, Array]:
        total = self.a + self.b
        with np.errstate(divide="ignore"):
            first = (total - 1.0) / np.maximum(self.a - 1.0, 0.0)
            return first, first * (total - 2.0) / np.maximum(self.a - 2.0, 0.0)

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        return [beta_marginals(self.a, self.b, self.mean, np.sqrt(self.variance), ends)]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return matched_beta(own.mean, sd, ends)

    @classmethod
    def of_spread(cls, mean: Array, covariance: Array) -> Self | None:
        with np.errstate(divide="ignore"):
            total = mean * (1.0 - mean) / covariance[..., 0, 0] - 1.0
        is_one = (total > 0) & np.isfinite(total)
        return cls(mean * total, (1.0 - mean) * total) if is_one.all() else None

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at x, which broadcasts with the batch."""
        x = as_value(value)
        return self._dirichlet.log_density(np.stack((x, 1.0 - x), axis=-1))

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure."""
        return self._dirichlet.entropy_about_base()

    def _divergence(self, other: Self) -> Array:
        return self._dirichlet.kl(other._dirichlet)

    def mode(self) -> Array:
        """Return (a - 1) / (a + b - 2); one half where a = b = 1.

        Raises
        ------
        ImproperError
            If a or b is below 1: the density is unbounded at an end.
        """
        if (np.minimum(self.a, self.b) < 1).any():
            raise ImproperError(
                "A Beta distribution has a mode if a and b are at least 1, "
                f"got {np.minimum(self.a, self.b).min()}. "
                "Use the mean, or a prior with larger parameters.",
                np.minimum(self.a, self.b) >= 1,
            )
        return self._dirichlet.mode()[..., 0]

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch."""
        return self._dirichlet.sample(size, seed)[..., 0]
