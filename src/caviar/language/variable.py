"""Random variables: what every distribution of the language shares."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from .._errors import ConjugacyError, ModelError
from .._typing import AnyArray, Array
from .._words_of_others import in_our_words
from ..families import ExponentialFamily
from ..families.approximations.by_moments import ByMoments
from ..families.tabulated.scalar import tabulated
from ..families.tabulated.scalar_functions import Function
from .expansion.expanded import expand
from .nodes.algebra import Algebra, Diagonal, Predictor
from .nodes.constants import Constant
from .nodes.expected_slots import ExpectedSlots
from .nodes.node import Expression, Indexed, Node, SecondLabel
from .nodes.plates import Plate, Plates
from .nodes.roles import Role
from .nodes.slots import (
    RoleOfDimension,
    Slot,
    agreed_dimension,
    as_expression,
    check_slot,
    resolve_role,
    slot_of,
)
from .nodes.stated import Stated
from .nodes.templates import Density

_SUMS = (Predictor, Diagonal)


class Variable(Stated):
    """A random variable: a node with a distribution whose slots contain its parents.

    Attributes
    ----------
    slots
        Its slots by name.
    functions
        (Slot, statistic) -> the statistic as a function of the hidden scalar in the slot, where it is tabulated.
    log_density
        Its log density, term by term, in statistics of itself and of its slots.
    is_flat
        Whether its prior is flat and improper, with density 1.
    """

    base: ClassVar[Density] = ()
    """Logarithm of the base measure, as statistics of itself: log h = sum of base. ``log_carrier`` is one of them."""
    zeros: ClassVar[Density] = ()
    """How often its density holds a known probability of zero, in statistics that are nowhere negative: where that is
    not 0, the density is zero. Its ``density`` takes the logarithm of such a probability as 0."""
    letters: ClassVar[dict[str, str]]
    """Event letters of each of its own statistics."""

    floor: Array | None = None
    """Smallest variance that a precision may express; only point masses can have one."""

    has_order: bool = False
    """Whether its categories go from the lowest to the highest."""

    is_point: ClassVar[bool] = False
    """Whether its factor is a point mass whatever is asked for, which its own updates leave where it is."""

    follows_answer: ClassVar[bool] = False
    """Whether it has no prior of its own, but lies where the answer that brings it says."""

    is_brought: ClassVar[bool] = False
    """Whether it belongs to another variable that brings it, and is stated by nobody."""

    weighs_answer: ClassVar[bool] = False
    """Whether it is how much an answer tells of its predictor."""

    takes_data: ClassVar[bool] = True
    """Whether it can be observed."""

    is_discrete: ClassVar[bool] = False
    """Whether its values are labels or counts."""

    by_moments: ClassVar[ByMoments | None] = None
    """The family that predictions of its values belong to, given their mean and variance; None for labels and others
    of which no interval is told."""

    sums_to_one: ClassVar[bool] = False
    """Whether the entries of a value are probabilities of categories."""

    summed: tuple[str, ...] = ()
    """Statistics of its own that a pass sums over its rows, besides those of its family."""

    by_step: tuple[str, ...] = ()
    """Statistics of its own of each step of a sequence, besides those of its family."""

    takes_weights: ClassVar[bool] = True
    """Whether its rows may have weights; those of a sequence are the same for all its rows."""

    slots: dict[str, Slot]
    stated: dict[str, Any]
    """Its arguments as they were stated, numbers and arrays as constants."""
    members: tuple[Variable, ...] = ()
    """The variables that it replaces, if several share one factor."""
    functions: Mapping[tuple[str, str], Function] = MappingProxyType({})
    letter_sizes: Mapping[str, int] = MappingProxyType({})
    """Length of the event axes of dot products in its density."""
    log_density: Density
    is_flat: bool

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # what is not public is called by those that extend it, with their own words
        if "__init__" in vars(cls) and not cls.__name__.startswith("_"):
            cls.__init__ = in_our_words(cls.__init__)

    def _state(
        self,
        name: str,
        plates: Plates,
        arguments: Mapping[str, tuple[Expression, Role | RoleOfDimension]],
        *,
        density: Density | None = None,
        dimension: int | None = None,
        along: Mapping[str, Plate] | None = None,
    ) -> None:
        """Take the arguments of a distribution: what every constructor ends with.

        ``along`` names slots whose node has a plate that runs along the variable's own event axis.
        """
        self._identify(name, plates)
        self.dimension = dimension
        sums: dict[str, Predictor | Diagonal] = {}
        given: dict[str, Node | Indexed | Array] = {}
        for slot, (value, role) in arguments.items():
            if isinstance(value, Algebra):
                _refuse_latent_carrier(self, slot, value)
            expression = as_expression(self, slot, value, role)
            if isinstance(expression, _SUMS):
                sums[slot] = expression
            else:
                given[slot] = expression
                self.dimension = agreed_dimension(self, slot, expression, role)
        self.log_density = density or self.density
        if self.functions or self.letter_sizes:
            # of an earlier statement of the same variable
            self.functions, self.letter_sizes = {}, {}
        of_sums = self._expanded(sums, arguments) if sums else {}
        self.slots = {}
        for slot, expression in given.items():
            role = arguments[slot][1]
            own = role if isinstance(role, Role) else resolve_role(self, slot, role)
            self.slots[slot] = slot_of(self, slot, expression, own)
        stated = {**{slot: own.expression for slot, own in self.slots.items()}, **sums}
        self.stated = {slot: stated[slot] for slot in arguments} if sums else stated
        if along:
            self.slots |= {slot: replace(self.slots[slot], along=plate) for slot, plate in along.items()}
        self.slots |= of_sums
        for slot in self.slots.values():
            check_slot(self, slot)
        self.is_flat = self._states_flat_prior()
        if self.is_flat:
            # the density 1 with respect to Lebesgue measure is 1/h with respect to the family's own measure h
            self.log_density = tuple(replace(s, coefficient=-s.coefficient) for s in self.base)

    def _expanded(
        self,
        sums: Mapping[str, Predictor | Diagonal],
        arguments: Mapping[str, tuple[Expression, Role | RoleOfDimension]],
    ) -> dict[str, Slot]:
        """Write out the density with sums or products in some slots, and return the slots of what these consist of."""
        expanded = expand(self, self.log_density, sums, arguments)
        self.letter_sizes, self.functions = expanded.letter_sizes, expanded.functions
        self.log_density = expanded.density
        if expanded.is_bound:
            self.is_bound = True
        return expanded.slots

    @property
    def parents(self) -> Iterator[Node]:
        """Parents: nodes that its distribution depends on, in the order of its slots."""
        found: list[Node] = []
        for slot in self.slots.values():
            found.append(slot.node)
            if slot.index is not None:
                found.append(slot.index)
                found += [own.by for own in (*slot.gates, *slot.choices) if own.by is not slot.index]
        return iter(found)

    @property
    def drawn_given(self) -> Iterator[Node]:
        """Nodes whose values a draw of it needs: its parents."""
        return self.parents

    @property
    def in_words(self) -> str:
        """Its name and kind for messages, such as ``"'x', an Exponential"``."""
        kind = type(self).__name__
        return f"'{self.name}', {'an' if kind[0] in 'AEIOU' else 'a'} {kind}"

    @property
    def stated_with(self) -> Variable:
        """The variable whose slots contain the arguments as stated: itself."""
        return self

    def stated_given(self, names: Collection[str]) -> dict[str, tuple[Variable, str, Any]]:
        """Return what its distribution depends on, by slot, where the values of these variables are given.

        Each is the variable and the slot that it was stated in, and what was stated.
        """
        return {name: (self.stated_with, name, stated) for name, stated in self.stated.items()}

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments it was stated with, except name and plates."""
        return dict(self.stated)

    @classmethod
    def state_again(cls, name: str, plates: tuple[Plate, ...], arguments: Mapping[str, Any]) -> Variable:
        """Return the variable with this name and these plates that has these :attr:`arguments`."""
        return cls(name, plates=plates, **arguments)  # type: ignore[call-arg]

    @property
    def density_plates(self) -> tuple[Plate, ...]:
        """Plates over which its log density is a sum of that of each repetition."""
        return self.plates

    def plates_of(self, statistic: str) -> tuple[Plate, ...]:
        """Return the plates along which one of its statistics is repeated, without those that it is summed over."""
        if statistic in self.summed:
            return ()
        return self.plates if self._is_along_tie(statistic) else self.batch_plates

    def _is_along_tie(self, statistic: str) -> bool:
        """Whether a statistic is repeated along the tied plate."""
        return True

    @property
    def indices(self) -> tuple[Variable, ...]:
        """The Categoricals that choose among its parents, each once."""
        return tuple(self.chosen_by)

    @property
    def chosen_by(self) -> dict[Variable, Indexed]:
        """The Categoricals that choose among its parents, each with what it chooses first."""
        found: dict[Variable, Indexed] = {}
        for slot in self.slots.values():
            for own in slot.gates:
                if isinstance(own.by, Variable):
                    found.setdefault(own.by, own)
        return found

    @property
    def second_labels(self) -> dict[Variable, SecondLabel]:
        """Of labels of which two choose among its parents, the second; the first is in :attr:`chosen_by`."""
        first, found = self.chosen_by, {}
        for own in (own for slot in self.slots.values() for own in slot.gates if own.through is not None):
            label = own.by
            other = first[label].through if isinstance(label, Variable) and label in first else None
            if other is not None and own.through is not None and own.through.by is not other.by:
                found.setdefault(label, SecondLabel(own))
        return found

    def known(self, slot: str) -> Array | None:
        """Return the value of a slot if it is a constant; sums and products have no such slot."""
        node = self.slots[slot].node if slot in self.slots else None
        return node.value if isinstance(node, Constant) else None

    def is_stated_with_constant(self, slot: str) -> bool:
        """Whether the argument in a slot is a constant; False for a sum or product."""
        return slot in self.slots and isinstance(self.slots[slot].node, Constant)

    def _holds(self, slot: str, value: float) -> bool:
        """Return whether a slot holds a known value that is this number everywhere."""
        known = self.known(slot)
        if known is None:
            return False
        return bool(np.all(known == value)) if known.ndim else known.item() == value

    def statistics_of(self, value: AnyArray) -> tuple[Array, ...]:
        """Return the sufficient statistics of values of this variable."""
        return self.family.statistics_of(value)

    beside: tuple[str, ...] = ()
    """Slots with known values that go into its own statistics, beside the values of the variable."""

    def statistic_beside(self, name: str, value: AnyArray, known: Mapping[str, AnyArray]) -> Array:
        """Return one statistic of values by name, given what is :attr:`beside` them, with as many axes."""
        return self.statistic(name, value)

    def problem_beside(self, value: AnyArray, known: Mapping[str, AnyArray]) -> str:
        """Return what is wrong with values given what is :attr:`beside` them, or an empty string."""
        return ""

    def statistic(self, name: str, value: AnyArray) -> Array:
        """Return one statistic of values of this variable, by name: sufficient, or the carrier of the base measure."""
        if name == "log_carrier":
            return self.family.log_carrier(value)
        return self.family.statistic_of(name, value)

    def distribution_given(self, slots: Mapping[str, Any]) -> ExponentialFamily:
        """Return the member of its family with these values of its slots: the distribution given the parents."""
        return self.own_family(**slots)

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance, over its plates and event, given the expectations of its slots.

        Raises
        ------
        ModelError
            If they have no closed form.
        """
        slots.refuse(f"the class {type(self).__name__} does not compute them")

    def parts_given(
        self, slots: ExpectedSlots, mean: Array, variance: Array
    ) -> list[tuple[Array, Array, Array]]:
        """Return weights, means and variances of a mixture of members of ``by_moments``, which its values have.

        Parameters
        ----------
        slots
            What is expected of its slots.
        mean, variance
            Those of :meth:`moments_given`.
        """
        return [(np.ones(()), mean, variance)]

    def is_matrix(self, statistic: str) -> bool:
        """Whether one of its statistics is a symmetric matrix."""
        return len(self.letters[statistic]) == 2

    def moved(self, factor: Any, shifts: Mapping[str, Array]) -> Any:
        """Return a factor of the variable plus a shift, by its name; the factor itself if there is no shift."""
        return factor.translate(shifts[self.name]) if self.name in shifts else factor

    def as_own(self, factor: Any) -> Any:
        """Return a factor that was found with other data, with the statistics that this variable has."""
        return factor

    def mode_of(self, natural: tuple[Array, ...], floor: Array | None = None) -> Any:
        """Return the mode of the member of its family with these natural parameters: the point of a point mass.

        Parameters
        ----------
        floor
            The value of :attr:`floor`: statements that share a structure differ in it.
        """
        return self.family.from_natural(natural).mode()

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return a value to begin with where a flat prior gives none, for data with this standard deviation."""
        raise ModelError(
            f"the prior of '{self.name}' is improper; give it a proper one, or a value with init="
        )

    def unit_factor(self, plates: tuple[int, ...], spread: float) -> ExponentialFamily | None:
        """Return a broad factor about :meth:`unit_value` to begin with, or None where its family needs none."""
        return None

    def broad_factor(self, plates: tuple[int, ...], spread: float) -> Any:
        """Return :meth:`unit_factor` as a member of the family that the factor has."""
        return self.family.widened(self.unit_factor(plates, spread))

    def evened(self, value: Array) -> Array:
        """Return values, NaN where missing, on the scale on which clusters of them are about as wide as each other."""
        return value

    def unlinked(self, value: Array, known: Mapping[str, Array]) -> Array:
        """Return values, NaN where missing, about on the scale of a predictor, given what is :attr:`beside` them."""
        return value

    def problem_with(self, value: AnyArray) -> str:
        """Return what keeps a value off the variable's support, or an empty string."""
        return ""

    def best_given(self, values: Mapping[str, Any]) -> Array | None:
        """Return where the point of a bound is best, given values by name with a first axis; None of anything else."""
        return None

    def settle(self, functions: tuple[Function, ...]) -> None:
        """Set the family of its factor in a model, which has these functions besides its own statistics.

        Raises
        ------
        ModelError
            If its factor cannot have such functions.
        """
        if self.floor is not None:
            raise ModelError(
                f"'{self.name}' cannot have smallest_variance here: what depends on it needs the expected "
                f"{functions[0].name}, so that its factor is tabulated. Leave smallest_variance out"
            )
        family = tabulated(self.own_family, functions)
        vars(self).update(family=family, letters=dict.fromkeys(family.statistics, ""))

    def _states_flat_prior(self) -> bool:
        return False

    def _refuse_zero(self, slot: str, flat: str) -> None:
        """Refuse a matrix of zeros in a slot, unless with the rest of the statement it is the flat prior.

        Raises
        ------
        ModelError
            If so.
        """
        known = self.known(slot)
        if self.is_flat or known is None or (known.any() if known.ndim else known.item()):
            return
        positive = (
            "positive, such as 1e-6"
            if known.ndim == len(self.slots[slot].node.plates)
            else "positive definite"
        )
        example = "" if positive.startswith("positive,") else ", such as 1e-6 * np.eye(D)"
        raise ModelError(
            f"'{slot}' of {type(self).__name__} '{self.name}' is zero, which states the flat prior, density 1, "
            f"together with {flat}; otherwise it must be {positive}{example}"
        )

    def describe(self) -> dict[str, Any]:
        """Return the statement as plain data: family, plates and slots."""
        return {
            "family": type(self).__name__,
            "plates": [plate.name for plate in self.plates],
            "slots": {name: repr(expression) for name, expression in self.stated.items()},
        }


def _refuse_latent_carrier(owner: Variable, slot: str, value: Expression) -> None:
    """Refuse a parent whose base measure is not a function of its statistics: it can only be observed."""
    node = value.node if isinstance(value, Indexed) else value
    for chooser in value.choosers if isinstance(value, Indexed) else ():
        if isinstance(chooser, Variable):
            chooser.refuse_as_parent(owner, slot)
    if not isinstance(node, Variable):
        return
    node.refuse_as_parent(owner, slot)
    if all(f.statistic != "log_carrier" for s in node.base for f in s.factors):
        return
    kind = type(node).__name__
    raise ConjugacyError(
        f"'{slot}' of {type(owner).__name__} '{owner.name}' cannot be the {kind} '{node.name}': a {kind} can "
        "only be observed. A latent one needs the expectation of its base measure, which is not a function of "
        f"its statistic {', '.join(node.family.statistics)} and has no closed form. Give a known value, or "
        f"make '{node.name}' a leaf of the model."
    )
