"""Points at which a bound touches a function: families that are not random variables."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families._base import ExponentialFamily, Seed, Size, draw_shape
from caviar.numerics.cached import cached_property


class PointOfBound(ExponentialFamily):
    """Points whose statistics are slope and constant of the bound there; their entropy is zero.

    Attributes
    ----------
    point
        Where the bound touches, shape (batch..., event...).
    """

    point: Array

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Slope and constant."""
        return self.statistics_of(self.point)

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        """Return zeros: a point has no distribution."""
        return (np.zeros(self.point.shape),)

    @property
    def mean(self) -> Array:
        """The point."""
        return self.point

    @property
    def variance(self) -> Array:
        """Zeros."""
        return np.zeros(self.point.shape)

    def log_density(self, value: ArrayLike) -> Array:
        """Return 0: a point adds nothing to a log density."""
        shape = np.shape(value)
        return np.zeros(np.broadcast_shapes(shape[: len(shape) - len(self.event_shape)], self.batch_shape))

    def entropy_about_base(self) -> Array:
        """Return 0."""
        return np.zeros(self.batch_shape)

    def _divergence(self, other: Self) -> Array:
        same = self.point == other.point
        return np.where(same.all(axis=tuple(range(-len(self.event_shape), 0))), 0.0, np.inf)

    def mode(self) -> Array:
        """Return the point."""
        return self.point

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return the point, repeated."""
        return np.broadcast_to(self.point, (*draw_shape(size, self.batch_shape), *self.event_shape)).copy()
