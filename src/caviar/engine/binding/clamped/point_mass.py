"""Point masses: factors of EM and MAP-EM."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._typing import Array, Statistics
from ....families import Categorical, ExponentialFamily, TiedNormalGamma, TiedNormalWishart
from ....families._marginals import Ends, Marginals
from ....language import Label, Variable
from ....numerics.cached import cached_property

__all__ = ["PointMass"]


@dataclass(frozen=True, eq=False)
class PointMass:
    """A factor restricted to a point: its expected statistics are those of the point, and it has no entropy.

    Attributes
    ----------
    family
        Family that the factor would have.
    value
        The point; a named tuple (mean, precision) for the joint families.
    n_categories
        Of labels, how many categories there are.
    """

    family: type[ExponentialFamily]
    value: Any
    n_categories: int | None = None

    @classmethod
    def of(cls, variable: Variable, value: Any) -> PointMass:
        """Return the point mass of a variable at a value."""
        return cls(variable.family, value, variable.categories if isinstance(variable, Label) else None)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Sufficient statistics of the point."""
        if issubclass(self.family, Categorical):
            return self.family.statistics_of(self.value, self.n_categories)
        return self.family.statistics_of(self.value)

    @property
    def learnt(self) -> None:
        """Nothing of it is a distribution."""
        return None

    def each(self, of_learnt: Callable[[Any], Any], of_point: Callable[[PointMass], Any]) -> Any:
        """Return a figure of each repetition, from its point."""
        return of_point(self)

    @property
    def location(self) -> Array:
        """The point, of a joint family its mean."""
        return np.asarray(self.value[0] if isinstance(self.value, tuple) else self.value)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Shape of the repetitions and of one value; of the mean of a joint family."""
        return self.location.shape

    def entropy_about_base(self) -> float:
        """Return minus infinity, or 0 among labels, where a point is a distribution like any other."""
        return -math.inf if self.n_categories is None else 0.0

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        """Return the value of every entry: one part, or location and precision of a joint family."""
        if not isinstance(self.value, tuple):
            return [Marginals(np.asarray(self.value))]
        mean, precision = (np.asarray(part) for part in self.value)
        tied = issubclass(self.family, TiedNormalGamma | TiedNormalWishart)
        return [Marginals(mean, part=".mean"), Marginals(precision, part=".precision", is_shared=tied)]

    @property
    def mean(self) -> Any:
        """The point itself."""
        return self.value

    def translate(self, delta: Any) -> PointMass:
        """Return the point moved by ``delta``."""
        if isinstance(self.value, tuple):
            return PointMass(self.family, type(self.value)(self.value[0] + delta, *self.value[1:]))
        return PointMass(self.family, self.value + delta)

    def __getitem__(self, index: Any) -> PointMass:
        """Return the points at an index into the plates."""
        if isinstance(self.value, tuple):
            value = type(self.value)(*(np.asarray(part)[index] for part in self.value))
        else:
            value = np.asarray(self.value)[index]
        return PointMass(self.family, value, self.n_categories)

    def sample(self, size: int | tuple[int, ...] | None = None, seed: Any = None) -> Any:
        """Return the point, ``size`` times."""
        if size is None:
            return self.value
        shape = (size,) if isinstance(size, int) else tuple(size)
        if isinstance(self.value, tuple):
            return type(self.value)(*(np.broadcast_to(part, shape + np.shape(part)) for part in self.value))
        return np.broadcast_to(self.value, shape + np.shape(self.value))

    def __repr__(self) -> str:
        # a number is shown as one, whether or not it is an array without axes
        value = self.value if isinstance(self.value, tuple) else np.asarray(self.value)[()]
        return f"PointMass({self.family.__name__}, {value!r})"
