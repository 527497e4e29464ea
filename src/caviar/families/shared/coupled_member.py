"""A variable of a Gaussian factor that several variables share, and products of two of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.families.multivariate_normal import MultivariateNormal
from caviar.families.normal import Normal


@dataclass(frozen=True)
class Member:
    """A variable of such a factor.

    Attributes
    ----------
    name
        Of the variable.
    shape
        Sizes of its plates.
    dimension
        Length of a vector; None for a number.
    """

    name: str
    shape: tuple[int, ...]
    dimension: int | None

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one value."""
        return () if self.dimension is None else (self.dimension,)

    @property
    def part(self) -> tuple[int, int]:
        """How many values it has, and how many numbers one is."""
        return math.prod(self.shape), math.prod(self.event_shape)

    def marginal(self, mean: Array, covariances: Array) -> Normal | MultivariateNormal:
        """Return its distributions from means (numbers,) and covariances (count, width, width)."""
        mean = mean.reshape((*self.shape, *self.event_shape))
        if self.dimension is None:
            return Normal(mean, 1.0 / covariances.reshape(self.shape))
        inverse = np.linalg.inv(covariances)
        precision = 0.5 * (inverse + np.swapaxes(inverse, -1, -2))
        return MultivariateNormal(
            mean, precision.reshape((*self.shape, *self.event_shape, *self.event_shape))
        )


@dataclass(frozen=True, eq=False)
class Cross:
    """Products of pairs of numbers of two variables: a statistic.

    Attributes
    ----------
    name
        Of the statistic.
    members
        Numbers of the two variables.
    i, j
        Places of the pairs among the numbers of each, (E,).
    shape
        Shape of the statistic, of E numbers.
    """

    name: str
    members: tuple[int, int]
    i: AnyArray
    j: AnyArray
    shape: tuple[int, ...]
