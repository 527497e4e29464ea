"""The Normal distribution of one real number."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families.base.family import LOG_TWO_PI, ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.marginals import Ends, Marginals, normal_marginals
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.families.base.transforms import Transform, Unconstrained
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import ratio_excess


@dataclass(frozen=True, eq=False, repr=False)
class Normal(ExponentialFamily):
    r"""Normal distributions of one real number.

    .. math:: p(x) = \sqrt{\tau / 2\pi}\; e^{-\tau (x - m)^2 / 2}, \qquad
              t = (x,\, x^2), \quad \eta = (\tau m,\, -\tau/2), \quad c = (0, 0)

    Parameters
    ----------
    mean
        Mean m, any batch shape.
    precision
        Precision :math:`\tau > 0`, the inverse variance.

    Raises
    ------
    ParameterError
        If a precision is not positive, or the batch shapes do not broadcast.

    Examples
    --------
    >>> q = Normal([0.0, 1.0], 4.0)
    >>> q.variance
    array([0.25, 0.25])
    >>> q.kl(Normal(0.0, 4.0))
    array([0., 2.])
    """

    mean: Array
    precision: Array

    statistics: ClassVar[tuple[str, ...]] = ("x", "xx")
    transforms: ClassVar[tuple[Transform, ...]] = (Unconstrained(),)
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "")

    def __init__(self, mean: ArrayLike, precision: ArrayLike) -> None:
        parameters = read_parameters("Normal", {"mean": mean, "precision": precision}, (0, 0))
        require(parameters["precision"] > 0, parameters["precision"], "Normal: precision must be positive")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (precision * mean, -precision / 2)."""
        linear, quadratic = natural
        precision = -2.0 * quadratic
        good = (precision > 0) & np.isfinite(linear + precision)
        if not np.logical_and.reduce(good, axis=None):
            refuse_improper("Normal", good, "the precision must be positive and finite, and the mean finite")
        mean = linear / precision
        if precision.shape != mean.shape:
            precision = np.broadcast_to(precision, mean.shape)
        return cls._trusted(mean=mean, precision=precision, natural=natural)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return x and x^2."""
        x = as_value(value)
        return x, x * x

    @classmethod
    def statistic_of(cls, name: str, value: ArrayLike) -> Array:
        """Return x or x^2."""
        x = as_value(value)
        return x if name == "x" else x * x

    @cached_property
    def natural(self) -> Statistics:
        """(precision * mean, -precision / 2)."""
        return self.precision * self.mean, -0.5 * self.precision

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(mean, mean^2 + variance)."""
        return self.mean, self.mean * self.mean + self.variance

    def response(self, change: Statistics) -> Statistics:
        linear, quadratic = change
        variance = 1.0 / self.precision
        mean = (linear + 2.0 * quadratic * self.mean) * variance
        return mean, 2.0 * (self.mean * mean + quadratic * variance**2)

    @cached_property
    def log_partition(self) -> Array:
        """Half of precision * mean^2 - log(precision / 2 pi)."""
        return 0.5 * (self.natural[0] * self.mean - np.log(self.precision) + LOG_TWO_PI)

    @cached_property
    def variance(self) -> Array:
        """Inverse of the precision."""
        return 1.0 / self.precision

    def location_moments(self) -> tuple[Array, Array]:
        return self.mean, self.variance

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        return [normal_marginals(self.mean, np.sqrt(self.variance), ends)]

    @classmethod
    def of_spread(cls, mean: Array, covariance: Array) -> Self | None:
        variance = covariance[..., 0, 0]
        return cls(mean, 1.0 / variance) if (variance > 0).all() else None

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at x, which broadcasts with the batch."""
        deviation = as_value(value) - self.mean
        return 0.5 * (np.log(self.precision) - LOG_TWO_PI - self.precision * deviation**2)

    def entropy_about_base(self) -> Array:
        """Return half of log(2 pi e variance)."""
        return 0.5 * (1.0 + LOG_TWO_PI - np.log(self.precision))

    def _divergence(self, other: Self) -> Array:
        distance = other.precision * (self.mean - other.mean) ** 2
        return 0.5 * (ratio_excess(other.precision, self.precision) + distance)

    def mode(self) -> Array:
        """Return the mean."""
        return self.mean

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch."""
        noise = np.random.default_rng(seed).standard_normal(draw_shape(size, self.batch_shape))
        return self.mean + noise / np.sqrt(self.precision)

    def translate(self, delta: ArrayLike) -> Self:
        """Return the distribution of x + delta."""
        return self._at(self.mean + as_value(delta))
