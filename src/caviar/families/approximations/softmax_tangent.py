"""The point at which a quadratic bound touches the normaliser of a softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from caviar._typing import Array, Statistics
from caviar.families.approximations.points_of_bounds import PointOfBound
from caviar.families.base.family import as_value
from caviar.families.base.parameters import read_parameters, refuse_improper
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxTangent(PointOfBound):
    r"""Points :math:`\psi` that maximise a bound; these are not random variables.

    With the softmax g of :math:`\psi`, and curvature 1/2, which that of the normaliser never exceeds (Böhning, 1992),

    .. math:: \log \sum_k e^{\eta_k} \le \underbrace{\log \sum_k e^{\psi_k} - g'\psi + \tfrac14 |\psi|^2}_{t_2}
              + \underbrace{(g - \tfrac12 \psi)'}_{t_1} \eta + \tfrac14 |\eta|^2.

    Natural parameters are :math:`(-b m, -b)`, for which :math:`\psi = m` is the best point, and the log-partition
    :math:`-b (\log \sum_k e^{m_k} - \tfrac14 |m|^2)`. The entropy is zero.

    Parameters
    ----------
    point
        :math:`\psi`, shape (..., K).
    weight
        b; 0 where nothing depends on the point.

    Examples
    --------
    >>> SoftmaxTangent([0.0, 0.0]).expected_statistics[0]
    array([0.5, 0.5])
    """

    point: Array
    weight: Array

    statistics: ClassVar[tuple[str, ...]] = ("x", "constant")
    parameter_letters: ClassVar[tuple[str, ...]] = ("k", "")

    def __init__(self, point: ArrayLike, weight: ArrayLike = 1.0) -> None:
        vars(self).update(read_parameters("SoftmaxTangent", {"point": point, "weight": weight}, (1, 0)))

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the slope and of the constant."""
        return event_shape, ()

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the points with these natural parameters."""
        slopes, negative = natural
        good = np.isfinite(slopes).all(axis=-1) & (negative <= 0) & (negative > -np.inf)
        if not np.all(good):
            refuse_improper("SoftmaxTangent", good, "they must be finite, and the second one at most 0")
        own = np.broadcast_to(negative, slopes.shape[:-1])[..., None]
        point = np.divide(slopes, own, out=np.zeros(slopes.shape), where=own < 0)
        return cls._trusted(point=point, weight=-own[..., 0])

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return the slope and the constant of the bound that touches at a point."""
        point = as_value(value)
        largest = logsumexp(point, axis=-1)
        shares = np.exp(point - largest[..., None])
        constant = largest - (shares * point).sum(axis=-1) + 0.25 * np.square(point).sum(axis=-1)
        return shares - 0.5 * point, constant

    @cached_property
    def natural(self) -> Statistics:
        """(-weight point, -weight)."""
        return -self.weight[..., None] * self.point, -self.weight

    def response(self, change: Statistics) -> Statistics:
        own = self.weight[..., None]
        moved = self.point * np.asarray(change[1])[..., None] - change[0]
        point = np.divide(moved, own, out=np.zeros(self.point.shape), where=own > 0)
        shares = self.expected_statistics[0] + 0.5 * self.point
        slope = shares * (point - (shares * point).sum(axis=-1, keepdims=True)) - 0.5 * point
        return slope, -(self.point * slope).sum(axis=-1)

    @cached_property
    def log_partition(self) -> Array:
        """Minus weight times the log-normaliser at the point, without a quarter of its square."""
        return self.weight * (0.25 * np.square(self.point).sum(axis=-1) - logsumexp(self.point, axis=-1))
