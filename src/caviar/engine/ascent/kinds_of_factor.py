"""Kinds of global factors: members of a family, points, factors that several variables share, and those known in part.

A kind makes a factor of natural parameters, or says in words why there is none, and what the factor alone adds to the
objective.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array, Statistics
from ...language import Constant, Node, Variable, base_terms_of
from ...numerics.cached import cached_property
from ..binding.bound_model import BoundModel
from ..binding.clamped.factor import Clamped, PointMass
from ..binding.coordinates import Coordinates
from ..design.contraction import Contraction
from ..design.gather import Factor
from ..design.keys import StatisticKey

_FAR_FROM_ONE = 20
"""Powers of ten between a parameter and 1 that are very many."""


@dataclass(frozen=True, eq=False)
class KindOfFactor:
    """A member of the variable's family.

    Attributes
    ----------
    variable
        Whose factor it is.
    bound
        The model's nodes and data.
    counted
        Which repetitions count in the objective; None for all.
    is_held
        Whether the factor stays as it is while others are updated.
    base
        The terms of the log density of the family's own measure, none where it is flat; None where they are not known
        beforehand, since few ask.
    """

    variable: Variable
    bound: BoundModel
    counted: AnyArray | None
    is_held: bool
    base: Sequence[Contraction] | None

    @cached_property
    def make(self) -> Callable[[Statistics], Any]:
        """What returns the factor with some natural parameters."""
        return self.variable.family.from_natural

    def factor(self, natural: Statistics) -> Any:
        """Return the factor with these natural parameters.

        Raises
        ------
        ImproperError
            If they are not those of a factor; the message says why in terms of the variable.
        """
        try:
            return self.make(natural)
        except ImproperError as error:
            raise ImproperError(self._why_none(str(error), natural), error.is_proper) from error

    def _why_none(self, reason: str, natural: Statistics) -> str:
        return why_improper(self.variable, reason, self.bound.values_of)

    def entropy(self, factor: Any) -> float:
        """Return what a factor alone adds to the objective: its entropy with respect to the family's own measure.

        A point that merely starts a factor which is not a point mass has the entropy minus infinity: the first update
        raises the objective to a number. One that is held has none, or the others would never settle.
        """
        learnt, counted = factor.learnt, self.counted
        if learnt is None:
            return 0.0 if self.is_held else factor.entropy_about_base()
        if counted is None:
            entropy = learnt.entropy_about_base()
        else:
            entropy = learnt.entropy_of_counted(counted if learnt is factor else counted[~factor.is_known])
        is_several = isinstance(entropy, np.ndarray) and entropy.ndim
        own = float(np.add.reduce(entropy, axis=None)) if is_several else float(entropy)
        return own if learnt is factor else own + self._log_base(factor.statistics_of_known)

    def _log_base(self, statistics: Statistics) -> float:
        """Return the log density of the family's own measure at points, which is linear in their statistics."""
        names = [StatisticKey(self.variable.name, name) for name in self.variable.family.statistics]
        points: Mapping[Hashable, Array] = dict(zip(names, statistics, strict=True))
        base = base_contractions(self.variable, self.bound) if self.base is None else self.base
        return sum([contraction.value(points) for contraction in base])


class AtMode(KindOfFactor):
    """A point mass at the mode of the member of the family.

    Its objective is log p(x, theta) with respect to Lebesgue measure.
    """

    @cached_property
    def make(self) -> Callable[[Statistics], PointMass]:
        """What returns the point."""
        own, floor = self.variable, self.bound.floors.get(self.variable)
        return lambda natural: PointMass.of(own, own.mode_of(natural, floor))

    def _why_none(self, reason: str, natural: Statistics) -> str:
        is_of_mode = is_proper(self.variable, natural)
        return why_no_mode(self.variable, reason) if is_of_mode else super()._why_none(reason, natural)

    def entropy(self, factor: Any) -> float:
        """Return the log density of the family's own measure at the point."""
        return self._log_base(factor.expected_statistics) if self.base else 0.0


@dataclass(frozen=True, eq=False)
class Shared(KindOfFactor):
    """A factor that several variables share."""

    coordinates: Coordinates

    @cached_property
    def make(self) -> Callable[[Statistics], Any]:
        """What returns the factor of all."""
        variable: Any = self.variable
        return partial(variable.factor_of, point_of=self.coordinates.of)


@dataclass(frozen=True, eq=False)
class KnownInPart(KindOfFactor):
    """A factor of which some repetitions are at known values, whatever the natural parameters are there.

    Attributes
    ----------
    others
        The kind of the other repetitions.
    clamped
        Which ones are known, and their values.
    """

    others: KindOfFactor
    clamped: Clamped
    coordinates: Coordinates

    def factor(self, natural: Statistics) -> Any:
        """Return the factor whose other repetitions have these natural parameters."""
        clamped = self.clamped
        if clamped.are_all:
            unknown = None
        elif isinstance(self.others, AtMode):
            # a floor on variances has a place for each repetition
            unknown = self.others.factor(clamped.filled(natural))[~clamped.is_known]
        else:
            unknown = self.others.factor(clamped.unknown(natural))
        return clamped.factor(self.variable, unknown, self.coordinates.of(self.variable))

    def entropy(self, factor: Any) -> float:
        """Return the entropy of the other repetitions, and the log density of the measure at the known ones."""
        return self.others.entropy(factor)


def base_contractions(variable: Variable, bound: BoundModel) -> list[Contraction]:
    """Return the terms of the log density of the own measure of a variable's family."""
    contractions = []
    for term in base_terms_of(variable):
        factors = [Factor(StatisticKey(op.node.name, op.statistic), op.axes) for op in term.operands]
        contractions.append(Contraction(term.coefficient, factors, [], term.axes, bound.size))
    return contractions


def is_proper(variable: Variable, natural: tuple[Array, ...]) -> bool:
    """Whether natural parameters are those of a member of the variable's family."""
    try:
        variable.family.from_natural(natural)
    except ImproperError:
        return False
    return True


def why_no_mode(variable: Variable, reason: str) -> str:
    """Return why a point mass has no optimum."""
    return (
        f"the point mass of '{variable.name}' has no optimum: {reason} Leave '{variable.name}' out of "
        f"point=, so that it gets a distribution, or give it a prior whose density vanishes at the edge of its domain"
    )


def why_improper(variable: Variable, reason: str, values_of: Callable[[Node], AnyArray]) -> str:
    """Return why an update has left its family, and what to do."""
    message = f"the update of '{variable.name}' has left its family: {reason}"
    if variable.is_flat:
        return message
    if extreme := extreme_parameter(variable, values_of):
        return (
            f"{message} Its prior is proper, but with its {extreme} the numbers of the update leave the range or the "
            f"digits of double precision. Give the prior and the data sizes that are nearer to each other and to 1"
        )
    return (
        f"{message} Its prior is proper, so it is double precision that gives out: a component stretches over widths "
        f"too different to be held in one covariance. Bring columns and components to similar scales, or widen the "
        f"prior"
    )


def extreme_parameter(variable: Variable, values_of: Callable[[Node], AnyArray]) -> str:
    """Return the known parameter of a variable's density farthest from 1, if it is very far, or nothing."""
    found = []
    for slot in variable.slots.values():
        if isinstance(slot.node, Constant):
            value = values_of(slot.node)
            sizes = np.abs(value[value != 0])
            ends = (sizes.min(initial=1.0), sizes.max(initial=1.0))
            found += [(abs(np.log10(size)), f"{slot.name} of {size:.3g}") for size in ends]
    farthest, said = max(found, default=(0.0, ""))
    return said if farthest > _FAR_FROM_ONE else ""
