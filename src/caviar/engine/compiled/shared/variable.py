"""Variables that share a factor, as one variable of the engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...._typing import AnyArray, Array, Statistics
from ....families.shared.shared_factor import SharedLayout
from ....language import Variable
from ...binding.bound_model import BoundModel

_FIRST_LETTER = 256
"""Letters for the axes of statistics: there may be many axes, and each is one character."""


class SharedVariable(Variable):
    """Variables that share one factor, as one variable of the engine.

    Parameters
    ----------
    members
        The variables.
    layout
        The family of their factor.
    """

    def __init__(self, members: Sequence[Variable], layout: SharedLayout) -> None:
        self._identify(name_of(members), ())
        self.dimension, self.slots, self.log_density = None, {}, ()
        self.stated = {}
        self.is_flat = any(variable.is_flat for variable in members)
        self.members = tuple(members)
        self.family: Any = layout
        sizes: dict[str, int] = {}
        letters: dict[str, str] = {}
        for statistic, shape in zip(layout.statistics, layout.shapes, strict=True):
            first = _FIRST_LETTER + len(sizes)
            letters[statistic] = "".join(chr(first + axis) for axis in range(len(shape)))
            sizes |= dict(zip(letters[statistic], shape, strict=True))
        self.letter_sizes = sizes
        vars(self)["letters"] = letters

    @abstractmethod
    def rewritten(self, terms: Sequence[Any], bound: BoundModel) -> tuple[Any, ...]:
        """Return terms with the statistics of the shared factor."""

    def factor_of(self, natural: Statistics, point_of: Callable[[Variable], Array | None]) -> Any:
        """Return the factor with these natural parameters.

        Parameters
        ----------
        point_of
            From which point the values of each variable are measured, None for zero.
        """
        return self.family.from_natural(natural)

    def moved(self, factor: Any, shifts: Mapping[str, Array]) -> Any:
        """Return a factor of the variables plus shifts, by name."""
        return factor.translated(shifts)

    def as_own(self, factor: Any) -> Any:
        """Return a factor that was found with other data, with the statistics that these data need."""
        return factor.in_layout(self.family)


def name_of(members: Sequence[Variable]) -> str:
    """Return the name of the factor of some variables."""
    return ", ".join(variable.name for variable in members)


def said(members: Sequence[Variable]) -> str:
    """Return the names of variables for a message."""
    return ", ".join(f"'{variable.name}'" for variable in members)


def counted(bound: BoundModel, coupled: Sequence[SharedVariable]) -> dict[Variable, AnyArray]:
    """Return which repetitions of variables, or numbers of shared factors, count, if some do not."""
    found = dict(bound.gathered("active"))
    for joint in coupled:
        own = [found.get(member) for member in joint.members]
        if any(counted is not None for counted in own):
            found[joint] = joint.family.counted(own)
    return found
