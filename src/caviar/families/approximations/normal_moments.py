"""Mean and variance of a Normal predictor, at which the expected log density of an answer is expanded."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families.approximations.points_of_bounds import NoVariable
from caviar.families.base.family import as_value
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False, repr=False)
class NormalMoments(NoVariable):
    r"""Means m and variances v of Normal predictors :math:`\eta`, no random variables.

    With :math:`G(m, v) = \langle f(\eta) \rangle` of a convex function f, natural parameters
    :math:`(b m, -\tfrac12 b (m^2 + v), -b)` and the log-partition :math:`-b\,G(m, v)`, the expected statistics are
    those of the quadratic function of :math:`\eta` whose expectation changes with m and v as that of :math:`-f` does,

    .. math:: t_1 = m \langle f'' \rangle - \langle f' \rangle, \quad t_2 = \langle f'' \rangle, \quad
              t_3 = G + m t_1 - \tfrac12 (m^2 + v) t_2.

    The entropy is zero. Unlike that of a random variable the log-partition is not convex: an update with these
    statistics is a step of length one along the natural gradient (Khan and Lin, 2017, "Conjugate-computation
    variational inference").
    """

    mean: Array
    variance: Array
    weight: Array

    statistics: ClassVar[tuple[str, ...]] = ("x", "curvature", "constant")
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "", "")
    is_convex = False

    def __init__(self, mean: ArrayLike, variance: ArrayLike, weight: ArrayLike = 1.0) -> None:
        kind = type(self).__name__
        own = read_parameters(kind, {"mean": mean, "variance": variance, "weight": weight}, (0, 0, 0))
        for name in ("variance", "weight"):
            require(own[name] >= 0, own[name], f"{kind}: {name} must not be negative")
        vars(self).update(own)

    @staticmethod
    @abstractmethod
    def expectations(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Return the expectations of f and of its first two derivatives, the latter as derivatives of the first."""

    @staticmethod
    @abstractmethod
    def higher(mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return the expectations of the third and fourth derivatives of f."""

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of slope, curvature and constant."""
        return (), (), ()

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the moments with these natural parameters."""
        first, second, negative = np.broadcast_arrays(*natural)
        good = np.isfinite(first) & np.isfinite(second) & (negative <= 0) & (negative > -np.inf)
        if not np.all(good):
            refuse_improper(cls.__name__, good, "they must be finite, and the last one at most 0")
        weight = -negative
        own = np.where(weight > 0, weight, 1.0)
        mean = np.where(weight > 0, first / own, 0.0)
        # rounding may leave less than nothing
        variance = np.maximum(np.where(weight > 0, -2.0 * second / own, 0.0) - mean * mean, 0.0)
        return cls._trusted(mean=mean, variance=variance, weight=weight)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return slope, curvature and constant at predictors that are known."""
        mean = as_value(value)
        return cls(mean, np.zeros(mean.shape)).expected_statistics

    @cached_property
    def natural(self) -> Statistics:
        """(weight mean, -weight (mean^2 + variance) / 2, -weight)."""
        return (
            self.weight * self.mean,
            -0.5 * self.weight * (self.mean * self.mean + self.variance),
            -self.weight + np.zeros_like(self.mean * self.variance),
        )

    @cached_property
    def _expected(self) -> tuple[Array, Array, Array]:
        return self.expectations(self.mean, self.variance)

    @cached_property
    def _higher(self) -> tuple[Array, Array]:
        """Integrals that every response needs, of whatever change."""
        return self.higher(self.mean, self.variance)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Slope, curvature and constant."""
        value, first, curvature = self._expected
        slope = self.mean * curvature - first
        second = self.mean * self.mean + self.variance
        return slope, curvature, value + self.mean * slope - 0.5 * second * curvature

    def response(self, change: Statistics) -> Statistics:
        own = np.where(self.weight > 0, self.weight, np.inf)
        second = self.mean * self.mean + self.variance
        moved = (change[0] + self.mean * change[2]) / own
        spread = (second * change[2] - 2.0 * change[1]) / own - 2.0 * self.mean * moved
        bend, turn = self._higher
        curvature = bend * moved + 0.5 * turn * spread
        slope = self.mean * curvature - 0.5 * bend * spread
        return slope, curvature, self.mean * slope - 0.5 * second * curvature

    @cached_property
    def log_partition(self) -> Array:
        """Minus weight times the expectation of f."""
        return -self.weight * self._expected[0]
