"""Families that are not random variables: what bounds and expansions take from factors, without an entropy."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, draw_shape
from caviar.numerics.cached import cached_property


class NoVariable(ExponentialFamily):
    """What is no random variable, and adds nothing to a log density: its mean and variance are all there is.

    Attributes
    ----------
    mean, variance
        Shape (batch..., event...).
    """

    mean: Any
    variance: Any

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        """Return zeros: it has no distribution."""
        return (np.zeros(self.value_shape),)

    def log_density(self, value: ArrayLike) -> Array:
        """Return 0."""
        shape = np.shape(value)
        return np.zeros(np.broadcast_shapes(shape[: len(shape) - len(self.event_shape)], self.batch_shape))

    def entropy_about_base(self) -> Array:
        """Return 0."""
        return np.zeros(self.batch_shape)

    def _divergence(self, other: Self) -> Array:
        same = (self.mean == other.mean) & (self.variance == other.variance)
        return np.where(same.all(axis=tuple(range(-len(self.event_shape), 0))), 0.0, np.inf)

    def mode(self) -> Array:
        """Return the mean."""
        return self.mean

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return the mean, repeated."""
        return np.broadcast_to(self.mean, (*draw_shape(size, self.batch_shape), *self.event_shape)).copy()


class PointOfBound(NoVariable):
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

    @property
    def mean(self) -> Array:
        """The point."""
        return self.point

    @property
    def variance(self) -> Array:
        """Zeros."""
        return np.zeros(self.point.shape)
