"""Point masses: factors of EM and MAP-EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._typing import Statistics
from ....families import Categorical, ExponentialFamily
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
