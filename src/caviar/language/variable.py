"""Random variables: what every distribution of the language shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .._errors import ConjugacyError, ModelError, PlateError
from .._typing import AnyArray, Array
from ..families import ExponentialFamily
from .nodes import Constant, Data, Expression, Indexed, Node, as_known
from .plates import Plates
from .roles import LOCATION_AND_PRECISION, LOCATION_AND_PRECISION_MATRIX, Role
from .templates import Density, Summand

__all__ = ["Slot", "Variable"]

RoleOfDimension: TypeAlias = Callable[[int], Role]

_VALUES = ("a number", "a vector", "a square matrix")


@dataclass(frozen=True)
class Slot:
    """What stands in a slot of a distribution, and what is needed of it."""

    name: str
    expression: Node | Indexed
    role: Role

    @property
    def node(self) -> Node:
        """The node itself, without its index."""
        return self.expression.node if isinstance(self.expression, Indexed) else self.expression

    @property
    def index(self) -> Variable | None:
        """The Categorical that chooses the node's plate, if any."""
        return self.expression.by if isinstance(self.expression, Indexed) else None


class Variable(Node):
    """A random variable: a node with a distribution whose slots hold its parents.

    Attributes
    ----------
    slots
        Its slots by name.
    log_density
        Its log density, term by term, in statistics of itself and of its slots.
    is_flat
        Whether it has the flat, improper prior density 1.
    """

    family: ClassVar[type[ExponentialFamily]]
    density: ClassVar[Density]
    base: ClassVar[Density] = ()
    """Logarithm of the base measure, as statistics of itself: log h = sum of base."""
    value_rank: ClassVar[int] = 0
    """Event axes of one value: 0 a number, 1 a vector, 2 a matrix."""
    letters: ClassVar[dict[str, str]]
    """Event letters of each of its own statistics."""

    floor: Array | None = None
    """Smallest variance that a precision may express; only point masses can have one."""

    slots: dict[str, Slot]
    log_density: Density
    is_flat: bool

    def _state(
        self,
        name: str,
        plates: Plates,
        arguments: dict[str, tuple[Expression, Role | RoleOfDimension]],
        *,
        density: Density | None = None,
        dimension: int | None = None,
    ) -> None:
        self._identify(name, plates)
        self.dimension = dimension
        raw = {slot: self._as_expression(slot, value, role) for slot, (value, role) in arguments.items()}
        for slot, expression in raw.items():
            self._agree_on_dimension(slot, expression, arguments[slot][1])
        roles = {slot: self._role(slot, role) for slot, (_, role) in arguments.items()}
        self.slots = {
            slot: Slot(slot, self._as_node(slot, expression, roles[slot]), roles[slot])
            for slot, expression in raw.items()
        }
        for slot in self.slots.values():
            self._check_slot(slot)
        self.is_flat = self._states_flat_prior()
        chosen = self.density if density is None else density
        # the density 1 with respect to Lebesgue measure is 1/h with respect to the family's own measure h
        self.log_density = tuple(Summand(-s.coefficient, s.factors, s.letters) for s in self.base) if self.is_flat else chosen

    @property
    def parents(self) -> Iterator[Node]:
        """Nodes that its distribution depends on, in the order of its slots."""
        for slot in self.slots.values():
            yield slot.node
            if slot.index is not None:
                yield slot.index

    @property
    def indices(self) -> tuple[Variable, ...]:
        """The Categoricals that choose among its parents, each once."""
        return tuple({id(s.index): s.index for s in self.slots.values() if s.index is not None}.values())

    def known(self, slot: str) -> Array | None:
        """Return the value of a slot if it is a constant."""
        node = self.slots[slot].node
        return node.value if isinstance(node, Constant) else None

    def statistics_of(self, value: AnyArray) -> tuple[Array, ...]:
        """Return the sufficient statistics of values of this variable."""
        return self.family.statistics_of(value)

    def mode_of(self, natural: tuple[Array, ...]) -> Any:
        """Return the mode of the member of its family with these natural parameters: the point of a point mass."""
        return self.family.from_natural(natural).mode()

    def problem_with(self, value: AnyArray) -> str:
        """Return what keeps a value off the variable's support, or an empty string."""
        return ""

    def _states_flat_prior(self) -> bool:
        return False

    def _where(self, slot: str) -> str:
        return f"'{slot}' of {type(self).__name__} '{self.name}'"

    def _role(self, slot: str, role: Role | RoleOfDimension) -> Role:
        if isinstance(role, Role):
            return role
        if self.dimension is None:
            raise PlateError(
                f"the dimension D of '{self.name}' cannot be told from its arguments, and {self._where(slot)} depends on "
                f"it; give a vector of length D or a D x D matrix where one is due"
            )
        return role(self.dimension)

    def _as_expression(self, slot: str, value: Expression, role: Role | RoleOfDimension) -> Node | Indexed | Array:
        if isinstance(value, (Node, Indexed)):
            return value
        if value is None:
            raise ModelError(f"{self._where(slot)} is missing: give a number, an array or a variable")
        if role in (LOCATION_AND_PRECISION, LOCATION_AND_PRECISION_MATRIX):
            raise ModelError(f"{self._where('precision')} is missing; only a joint factor ({role.would_do[0]}) carries its own")
        return as_known(value, self._where(slot))

    def _agree_on_dimension(self, slot: str, expression: Node | Indexed | Array, role: Role | RoleOfDimension) -> None:
        if not isinstance(role, Role) or role.rank == 0:
            return
        if isinstance(expression, np.ndarray):
            size = expression.shape[-1] if expression.ndim else None
        else:
            size = (expression.node if isinstance(expression, Indexed) else expression).dimension
        if size is None:
            return
        if self.dimension is None:
            self.dimension = size
        if size != self.dimension:
            raise PlateError(
                f"{self._where(slot)} has length {size}, but the rest of '{self.name}' has dimension {self.dimension}"
            )

    def _as_node(self, slot: str, expression: Node | Indexed | Array, role: Role) -> Node | Indexed:
        """Give an anonymous array its plates: its leading axes run over the last plates of the variable."""
        if not isinstance(expression, np.ndarray):
            return expression
        value = self._of_full_rank(slot, expression, role)
        leading = value.ndim - role.rank
        if leading > len(self.plates):
            plates = ", ".join(plate.name for plate in self.plates) or "none"
            raise PlateError(
                f"{self._where(slot)} has shape {expression.shape}: {leading} axes more than its {role.rank} event axes, "
                f"but '{self.name}' has plates: {plates}. Write plates=Plate('component', {value.shape[0]}) if it is repeated."
            )
        plates = self.plates[len(self.plates) - leading :]
        kept = tuple(plate for plate, size in zip(plates, value.shape, strict=False) if size != 1 or plate.size == 1)
        value = value.reshape(tuple(s for p, s in zip(plates, value.shape, strict=False) if p in kept) + value.shape[leading:])
        return Constant(f"{self.name}.{slot}", value, plates=kept)

    def _of_full_rank(self, slot: str, value: Array, role: Role) -> Array:
        if value.ndim >= role.rank:
            return value
        if self.dimension is None:
            raise PlateError(
                f"the dimension of '{self.name}' cannot be told from its arguments; write {slot}=np.zeros(D) "
                f"(a vector of the length you mean) instead of {value}"
            )
        if value.ndim == 0 and role.rank == 1:
            return np.full(self.dimension, value)
        if value.ndim == 0 and not value:
            return np.zeros((self.dimension, self.dimension))
        raise PlateError(
            f"{self._where(slot)} must be a {self.dimension} x {self.dimension} matrix; got shape {value.shape}. "
            f"Write {value if value.ndim == 0 else ''} * np.eye({self.dimension}) for a multiple of the identity."
        )

    def _check_slot(self, slot: Slot) -> None:
        node = slot.node
        self._check_plates(slot)
        if isinstance(node, Variable):
            missing = slot.role.statistics.keys() - set(node.family.statistics)
            if missing:
                raise ConjugacyError(self._why_not_conjugate(slot, node, missing))
            if node.value_rank != slot.role.rank:
                raise ConjugacyError(
                    f"{self._where(slot.name)} must be {_VALUES[slot.role.rank]}, but the {type(node).__name__} "
                    f"'{node.name}' is {_VALUES[node.value_rank]}. {_remedy(slot.role)}"
                )
        elif isinstance(node, Constant):
            if node.event_rank != slot.role.rank:
                raise PlateError(
                    f"{self._where(slot.name)} must be {_VALUES[slot.role.rank]}; '{node.name}' is {_VALUES[node.event_rank]}"
                )
            problem = slot.role.problem(node.value)
            if problem:
                raise ModelError(f"{self._where(slot.name)} {problem}; got {np.array2string(node.value, threshold=8)}")
        elif not isinstance(node, Data):
            raise ModelError(f"{self._where(slot.name)} cannot be {node!r}")

    def _check_plates(self, slot: Slot) -> None:
        chosen = slot.expression.plate if isinstance(slot.expression, Indexed) else None
        needed = [plate for plate in slot.node.plates if plate is not chosen]
        if slot.index is not None:
            needed += slot.index.plates
        for plate in needed:
            if plate not in self.plates:
                names = [p.name for p in self.plates]
                hint = (
                    f"two Plate objects are both named '{plate.name}': use the same object"
                    if plate.name in names
                    else f"add plate '{plate.name}' to '{self.name}', or choose from it with a Categorical: {slot.node.name}[z]"
                )
                raise PlateError(
                    f"{self._where(slot.name)} is repeated over plate '{plate.name}', but '{self.name}' is not; {hint}"
                )

    def _why_not_conjugate(self, slot: Slot, node: Variable, missing: set[str]) -> str:
        term = next((s for s in self.density if any(f.slot == slot.name and f.statistic in missing for f in s.factors)), None)
        in_term = "" if term is None else f" in its term {_read(term)}"
        return (
            f"{self._where(slot.name)} cannot be the {type(node).__name__} '{node.name}'{in_term}: it needs the statistics "
            f"{', '.join(slot.role.statistics)}, and a {type(node).__name__} has {', '.join(node.family.statistics)}. {_remedy(slot.role)}"
        )

    def describe(self) -> dict[str, Any]:
        """Return the statement as plain data: family, plates and slots."""
        return {
            "family": type(self).__name__,
            "plates": [plate.name for plate in self.plates],
            "slots": {name: repr(slot.expression) for name, slot in self.slots.items()},
        }


def _read(summand: Summand) -> str:
    words = " ".join(f"{factor.slot}.{factor.statistic}" for factor in summand.factors)
    return f"{summand.coefficient:g} {words}"


def _remedy(role: Role) -> str:
    if role.would_do:
        return f"A {' or a '.join(role.would_do)} (or a known value) would do."
    return "No family is conjugate here; give a number or an array."
