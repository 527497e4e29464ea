"""Families whose statistics are any functions of a value: a class for each set of functions."""

from __future__ import annotations

import copyreg
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from caviar._typing import Array, Statistics
from caviar.families.base.family import ExponentialFamily
from caviar.families.tabulated.scalar_functions import Functions
from caviar.numerics.cached import cached_property


class _Kind(ABCMeta):
    """The metaclass of families that are distinguished by their functions, also when pickled."""


class OfFunctions(ExponentialFamily, metaclass=_Kind):
    """Distributions with functions of a value among their statistics.

    Attributes
    ----------
    coefficients
        Natural parameters, with those of all statistics along one axis, the last but :attr:`event_ndim`.
    """

    coefficients: Array

    statistics: ClassVar[tuple[str, ...]] = ()
    functions: ClassVar[Functions] = ()
    """The statistics that are functions."""
    event_ndim: ClassVar[int] = 0
    """Axes of a value."""

    _made_by: ClassVar[tuple[Any, ...]] = ()

    @classmethod
    def made_by(cls, maker: Callable[..., Any], *arguments: Any, **attributes: Any) -> type[Self]:
        """Return a class with these attributes, pickled as what a cached function makes of its arguments."""
        body = {"__module__": cls.__module__, "__doc__": cls.__doc__, "_made_by": (maker, arguments)}
        made: Any = _Kind(cls.__name__, (cls,), {**body, **attributes})
        return made

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with these natural parameters."""
        coefficients = np.stack(np.broadcast_arrays(*natural), axis=-1 - cls.event_ndim)
        self = cls._trusted(coefficients=coefficients)
        self._refuse_improper()
        return self

    @abstractmethod
    def _refuse_improper(self) -> None:
        """Refuse coefficients that no distribution has."""

    def attributes(self) -> dict[str, Any]:
        """Return its coefficients, of which all else follows to the bit."""
        return {"coefficients": self.coefficients}

    @cached_property
    def natural(self) -> Statistics:
        """The coefficients, apart."""
        return tuple(np.moveaxis(self.coefficients, -1 - self.event_ndim, 0))

    def _divergence(self, other: Self) -> Array:
        parts = zip(self.natural, other.natural, self.expected_statistics, strict=True)
        event = tuple(range(-self.event_ndim, 0))
        inner = sum(((a - b) * mean).sum(axis=event) for a, b, mean in parts)
        return other.log_partition - self.log_partition + inner


def _as_pickled(family: Any) -> Any:
    return family._made_by or family.__name__


copyreg.pickle(_Kind, _as_pickled)
