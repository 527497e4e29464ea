"""What vectors whose entries may be exactly zero share: statistics, moments and marginals of their entries."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from caviar._errors import ParameterError
from caviar._typing import Array, Statistics
from caviar.families.base.family import LOG_TWO_PI, ExponentialFamily, as_value
from caviar.families.base.marginals import Ends, Marginals
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property


class Slab(NamedTuple):
    """Of entries that are not zero: mean and precision, and the logarithm of their weight, (..., D) each."""

    mean: Array
    precision: Array
    log_weight: Array


@dataclass(frozen=True, eq=False, repr=False)
class SparseVector(ExponentialFamily):
    r"""Vectors b in :math:`R^D` with entries that are zero or Normal.

    The statistics are :math:`\gamma_j` (whether an entry is not zero), :math:`b_j` and :math:`b_j^2`; the base measure
    is a point of weight 1 at zero plus that of a Normal's entry.
    """

    statistics: ClassVar[tuple[str, ...]] = ("included", "x", "squares")

    inclusion: Array
    slab_mean: Array
    slab_precision: Array

    parameter_letters: ClassVar[tuple[str, ...]] = ("d", "d", "d")

    def __init__(self, inclusion: ArrayLike, slab_mean: ArrayLike, slab_precision: ArrayLike) -> None:
        family = type(self).__name__
        given = {"inclusion": inclusion, "slab_mean": slab_mean, "slab_precision": slab_precision}
        parameters = read_parameters(family, given, (1, 1, 1))
        sizes = {own.shape[-1] for own in parameters.values()}
        if len(sizes) > 1:
            raise ParameterError(
                f"{family}: inclusion, slab_mean and slab_precision must have one length, got {sorted(sizes)}."
            )
        parameters["inclusion"] = self._checked(parameters["inclusion"])
        precisions = parameters["slab_precision"]
        require(precisions > 0, precisions, f"{family}: slab_precision must be positive")
        vars(self).update(parameters)

    @property
    @abstractmethod
    def covariance(self) -> Array:
        """Covariance of the entries, shape (..., D, D)."""

    @staticmethod
    @abstractmethod
    def _checked(inclusion: Array) -> Array:
        """Return probabilities of inclusion, (..., D), and refuse impossible ones."""

    @cached_property
    def _log_odds(self) -> Array:
        """Logarithms of the odds of inclusion, (..., D); of the probabilities, where one entry is included."""
        with np.errstate(divide="ignore"):
            return np.log(self.inclusion)

    @staticmethod
    def _total(changes: Array) -> Array:
        """Return the change of each normaliser from those of the weights it sums; each entry has its own or all one."""
        return changes.sum(axis=-1, keepdims=True)

    @property
    def base_measure(self) -> tuple[float, ...]:
        """Coefficient of each statistic in the base measure."""
        return (-0.5 * LOG_TWO_PI, 0.0, 0.0)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return whether each entry is not zero, the entries, and their squares."""
        x = as_value(value)
        return (x != 0).astype(np.float64), x, np.square(x)

    @classmethod
    def slab_of(cls, natural: Statistics) -> Slab:
        """Return what entries are where they are not zero, from natural parameters."""
        included, linear, quadratic = natural
        precision = -2.0 * quadratic
        with np.errstate(all="ignore"):
            mean = linear / precision
            log_weight = included + 0.5 * (linear * mean - np.log(precision))
        good = (precision > 0) & np.isfinite(precision) & np.isfinite(mean) & (log_weight < np.inf)
        if not np.logical_and.reduce(good, axis=None):
            refuse_improper(cls.__name__, good, "precisions must be positive, and all parameters finite")
        return Slab(mean, precision, log_weight)

    @property
    def mean(self) -> Array:
        """Expected vector, shape (..., D)."""
        return self.expected_statistics[1]

    @property
    def variance(self) -> Array:
        """Variance of each entry, shape (..., D)."""
        p = self.inclusion
        return p / self.slab_precision + p * (1.0 - p) * np.square(self.slab_mean)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(probabilities, expected entries, their expected squares)."""
        p = self.inclusion
        return p, p * self.slab_mean, p * (np.square(self.slab_mean) + 1.0 / self.slab_precision)

    @cached_property
    def natural(self) -> Statistics:
        """Natural parameters; infinite for an entry that is certain to be zero, or not to be."""
        linear = self.slab_precision * self.slab_mean
        included = self._log_odds + 0.5 * (np.log(self.slab_precision) - linear * self.slab_mean)
        return included, linear, -0.5 * self.slab_precision

    def response(self, change: Statistics) -> Statistics:
        p, of_slab = self.inclusion, self._slab_response(change)
        total = self._total(p * of_slab[0])
        means = self.expected_statistics
        return tuple(p * own - mean * total for own, mean in zip(of_slab, means, strict=True))

    def _slab_log_density(self, x: Array) -> Array:
        """Return the log-density of each entry where it is not zero."""
        squares = self.slab_precision * np.square(x - self.slab_mean)
        return 0.5 * (np.log(self.slab_precision) - LOG_TWO_PI - squares)

    def _slab_response(self, change: Statistics) -> tuple[Array, Array, Array]:
        """Return the expectations given inclusion of f, b f and b^2 f, with f the change of the log density."""
        of_included, linear, quadratic = change
        m, v = self.slab_mean, 1.0 / self.slab_precision
        second, third = np.square(m) + v, m**3 + 3.0 * m * v
        fourth = m**4 + 6.0 * np.square(m) * v + 3.0 * np.square(v)
        return (
            of_included + linear * m + quadratic * second,
            of_included * m + linear * second + quadratic * third,
            of_included * second + linear * third + quadratic * fourth,
        )

    def covariance_of_value(self) -> Array:
        return self.covariance

    def location_moments(self) -> tuple[Array, Array]:
        return self.mean, self.covariance

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        """Return the figures of every entry, with the quantiles of the point at zero and the Normal together."""
        lower, upper = (_quantile(self.inclusion, self.slab_mean, self.slab_precision, end) for end in ends)
        return [Marginals(self.mean, np.sqrt(self.variance), lower, upper)]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return Marginals(own.mean, sd, own.lower, own.upper)

    def translate(self, delta: ArrayLike) -> Self:
        """Refuse a shift other than zero, because entries that are zero would change."""
        if np.any(as_value(delta)):
            raise ValueError("a vector with entries that are exactly zero cannot be moved")
        return self


def _quantile(inclusion: Array, mean: Array, precision: Array, end: float) -> Array:
    """Return where so much probability is below, of a point at zero and a Normal."""
    sd = 1.0 / np.sqrt(precision)
    below = inclusion * ndtr(-mean / sd)
    with np.errstate(all="ignore"):
        left = mean + sd * ndtri(end / inclusion)
        right = mean + sd * ndtri((end - (1.0 - inclusion)) / inclusion)
    return np.where(end < below, left, np.where(end > below + 1.0 - inclusion, right, 0.0))


def slab_entropy(precision: Array) -> Array:
    """Return the entropy of each entry where it is not zero."""
    return 0.5 * (1.0 + LOG_TWO_PI - np.log(precision))


def slab_divergence(one: SparseVector, other: SparseVector) -> Array:
    """Return the divergence of each entry of one where it is not zero from that of another."""
    ratio = other.slab_precision / one.slab_precision
    excess = ratio - 1.0 - np.log(ratio)
    return 0.5 * (np.maximum(excess, 0.0) + other.slab_precision * np.square(one.slab_mean - other.slab_mean))
