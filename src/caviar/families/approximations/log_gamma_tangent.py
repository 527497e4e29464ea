"""The point at which a tangent touches the logarithm of the gamma function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, polygamma

from caviar._typing import Array, Statistics
from caviar.families.approximations.points_of_bounds import PointOfBound
from caviar.families.base.family import as_value
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False, repr=False)
class LogGammaTangent(PointOfBound):
    r"""Points :math:`\zeta` at which a tangent touches :math:`\log\Gamma`; these are not random variables.

    The function is convex, so for positive s

    .. math:: \log\Gamma(s) \ge \underbrace{\psi(\zeta)}_{t_1} s
              + \underbrace{\log\Gamma(\zeta) - \zeta \psi(\zeta)}_{t_2}.

    Natural parameters are :math:`(b m, b)`, for which :math:`\zeta = m` is the best point, and the log-partition
    :math:`b \log\Gamma(m)`. The entropy is zero.

    Parameters
    ----------
    point
        :math:`\zeta > 0`.
    weight
        b; 0 where nothing depends on the point.

    Examples
    --------
    >>> LogGammaTangent(1.0).expected_statistics[0].round(4)
    np.float64(-0.5772)
    """

    point: Array
    weight: Array

    statistics: ClassVar[tuple[str, ...]] = ("x", "constant")
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "")

    def __init__(self, point: ArrayLike, weight: ArrayLike = 1.0) -> None:
        parameters = read_parameters("LogGammaTangent", {"point": point, "weight": weight}, (0, 0))
        require(parameters["point"] > 0, parameters["point"], "LogGammaTangent: point must be positive")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the points with these natural parameters."""
        total, weight = np.broadcast_arrays(*natural)
        good = (weight >= 0) & (weight < np.inf) & np.isfinite(total) & ((total > 0) | (weight == 0))
        if not np.all(good):
            refuse_improper("LogGammaTangent", good, "they must be finite, and positive or both 0")
        point = np.divide(total, weight, out=np.ones(total.shape), where=weight > 0)
        return cls._trusted(point=point, weight=weight)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return the slope and the constant of the tangent at a point."""
        point = as_value(value)
        slope = digamma(point)
        return slope, gammaln(point) - point * slope

    @cached_property
    def natural(self) -> Statistics:
        """(weight point, weight)."""
        return self.weight * self.point, self.weight

    def response(self, change: Statistics) -> Statistics:
        moved = change[0] - self.point * np.asarray(change[1])
        point = np.divide(moved, self.weight, out=np.zeros(np.shape(moved)), where=self.weight > 0)
        slope = polygamma(1, self.point) * point
        return slope, -self.point * slope

    @cached_property
    def log_partition(self) -> Array:
        """Weight times the function at the point."""
        return self.weight * gammaln(self.point)
