"""Structures: what statements have in common that differ in nothing but the values of their constants.

The engine works with the nodes of a structure and takes the values of constants from the binding. So what it makes of a
statement serves all others of the same structure: fits of many small tables, whose priors depend on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ..numerics.cached import cached_property
from .nodes import roles
from .nodes.algebra import Diagonal, Link, Predictor
from .nodes.constants import Constant
from .nodes.node import Data, Indexed, Node, Part
from .nodes.plates import Plate
from .nodes.roles import Role
from .nodes.slots import Slot
from .nodes.weighted_sums import WeightedSum
from .variable import Variable

T = TypeVar("T")

_MOST_STRUCTURES = 64
"""Statements that are remembered, those that were asked for last."""

_TOLD_BY_THE_REST = frozenset(
    {"name", "plates", "slots", "stated", "log_density", "functions", "floor", "letter_sizes"}
)
"""Attributes of a variable that are told by others, or looked at in a way of their own."""

_ASIDE = _TOLD_BY_THE_REST | Node.kept_aside

_PLAIN = frozenset({type(None), str, bool, int, float})
"""Types whose values tell themselves."""


@dataclass(frozen=True, eq=False)
class Structure:
    """The nodes that the engine works with, in the place of those of a statement.

    Attributes
    ----------
    nodes
        Every node, a variable before its parents. Constants may have no values.
    leaves
        The observed variables.
    plans
        What was made of them, by all else that it depends on.
    facts
        What else follows from them alone.
    of_data
        What follows from them and from the kinds of the data that they meet, by these.
    """

    nodes: tuple[Node, ...]
    leaves: tuple[Variable, ...]
    plans: dict[Hashable, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    of_data: dict[Hashable, dict[Hashable, Any]] = field(default_factory=dict)

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """The random variables by name, a variable before its parents."""
        return {node.name: node for node in self.nodes if isinstance(node, Variable)}

    def fact(self, name: str, find: Callable[[], T]) -> T:
        """Return a fact that follows from the nodes alone, without the values of constants; it is computed once."""
        if name not in self.facts:
            self.facts[name] = find()
        return self.facts[name]

    def with_values(self, values: Mapping[str, Any]) -> tuple[tuple[Node, ...], tuple[Variable, ...]]:
        """Return nodes and leaves of a statement of this structure with these values of its constants."""
        return _copied(self.nodes, self.leaves, values)

    def problem(self, values: Mapping[str, Any]) -> str:
        """Return what keeps values of constants, by name, from where they are stated; an empty string if nothing."""
        for slot, name in self.fact("slots of constants", self._slots_of_constants):
            value = values.get(name)
            problem = "" if value is None else slot.role.problem(value)
            if problem:
                return problem
        return ""

    def _slots_of_constants(self) -> list[tuple[Slot, str]]:
        slots = (slot for variable in self.variables.values() for slot in variable.slots.values())
        return [(slot, slot.node.name) for slot in slots if isinstance(slot.node, Constant)]


class _IncomparableError(Exception):
    """A statement has something by which it cannot be compared with others."""


class Structures:
    """The structures of statements that were made more than once.

    A statement that is made for the first time has its own nodes for a structure. When one like it is made, its nodes
    are copied without the values of the constants, and the copy serves every further one.
    """

    def __init__(self) -> None:
        # without a lock, which a process that is copied meanwhile would wait for: each step here is one of the
        # dictionary, and what two threads make at the same time is the same
        self._kept: dict[Hashable, Structure | None] = {}
        self._latest: tuple[Hashable, Structure] | None = None

    def known(self, nodes: Sequence[Node], leaves: Sequence[Variable]) -> Structure | None:
        """Return the structure of a statement if one like it was made before, so that it is proven; or None."""
        key = _key(nodes, leaves) if self._kept else None
        return self._of(key, nodes, leaves) if key in self._kept else None

    def of(self, nodes: Sequence[Node], leaves: Sequence[Variable]) -> Structure:
        """Return the structure of a statement."""
        return self._of(_key(nodes, leaves), nodes, leaves)

    def _of(self, key: Hashable | None, nodes: Sequence[Node], leaves: Sequence[Variable]) -> Structure:
        latest = self._latest
        if latest is not None and latest[0] == key:
            return latest[1]
        own = Structure(tuple(nodes), tuple(leaves))
        if key is None:
            return own
        found = self._kept.pop(key, own)
        if found is None:
            found = Structure(*_copied(nodes, leaves, None))
        self._kept[key] = None if found is own else found
        self._latest = None if found is own else (key, found)
        if len(self._kept) > _MOST_STRUCTURES:
            self._kept.pop(next(iter(list(self._kept))), None)
        return found


STRUCTURES = Structures()
"""Those of this process."""


def _key(nodes: Sequence[Node], leaves: Sequence[Variable]) -> Hashable | None:
    """Return a key that is equal for two statements that differ only in the values of constants.

    None for a statement that has something whose meaning is not known here.
    """
    try:
        return _Reader(nodes).statement(nodes, leaves)
    except _IncomparableError:
        return None


class _Reader:
    """Reads the nodes of one statement: each node and plate is the number of its place."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._places = {id(node): place for place, node in enumerate(nodes)}
        self._plates: dict[int, int] = {}
        self._told: list[Hashable] = []

    def statement(self, nodes: Sequence[Node], leaves: Sequence[Variable]) -> Hashable:
        """Return the key of all nodes."""
        if any(isinstance(node, Variable) and node.functions for node in nodes):
            # of these, values of constants are part of what a variable does
            raise _IncomparableError
        own = tuple([self._node(node) for node in nodes])
        return own, tuple([self._places[id(leaf)] for leaf in leaves]), tuple(self._told)

    def _plate(self, plate: Plate) -> int:
        place = self._plates.get(id(plate))
        if place is None:
            within = None if plate.within is None else self._plate(plate.within)
            place = self._plates[id(plate)] = len(self._plates)
            self._told.append((plate.name, plate.size, within, plate.names))
        return place

    def _over(self, plates: Sequence[Plate]) -> tuple[int, ...]:
        return tuple([self._plate(plate) for plate in plates])

    def _node(self, node: Node) -> Hashable:
        own = type(node), node.name, self._over(node.plates) if node.plates else ()
        if isinstance(node, Constant):
            return *own, node.value.shape
        if type(node) is Data:
            return *own, node.dimension, node.entry_names
        if not isinstance(node, Variable):
            raise _IncomparableError
        # a class is identified by its id, since the kept nodes refer to it
        density = id(node.density) if node.log_density is node.density else node.log_density
        # loops, which call nothing for what is plain; four entries for each slot
        places, told = self._places, [*own, density, len(node.slots), len(node.stated)]
        for key, slot in node.slots.items():
            place: Hashable = places.get(id(slot.expression))
            if place is None or slot.along is not None or slot.part is not None:
                place = self._unusual(slot)
            told += (key, slot.name, slot.dimension, place)
        for stated in node.stated.values():
            place = places.get(id(stated))
            told.append(self._expression(stated) if place is None else place)
        floor, sizes = node.floor, node.letter_sizes
        told += (None if floor is None else floor.shape, tuple(sizes.items()) if sizes else ())
        for name, value in vars(node).items():
            if name not in _ASIDE:
                told += (name, value if type(value) in _PLAIN else self._attribute(value))
        return tuple(told)

    def _unusual(self, slot: Any) -> Hashable:
        """Return what is in a slot, where that is no node by itself."""
        expression = self._expression(slot.expression)
        along = None if slot.along is None else self._plate(slot.along)
        part = None if slot.part is None else self._expression(slot.part)
        return expression if along is None and part is None else (expression, along, part)

    def _expression(self, value: Any) -> Hashable:
        if isinstance(value, Node):
            place = self._places.get(id(value))
            if place is None:
                raise _IncomparableError
            return place
        if isinstance(value, Indexed):
            further = () if value.through is None else (value.through,)
            others = (*value.indices, *value.others, *further, *value.givens)
            chosen = self._over(value.candidates)
            return self._expression(value.node), tuple([self._expression(own) for own in others]), chosen
        if isinstance(value, Part):
            return self._expression(value.whole), value.which
        if isinstance(value, Predictor):
            return tuple(
                [
                    (own.coefficient, len(own.numbers), *[self._expression(each) for each in own.operands])
                    for own in value.addends
                ]
            )
        if isinstance(value, Diagonal):
            return Diagonal, self._expression(value.entries)
        if isinstance(value, WeightedSum):
            return WeightedSum, self._expression(value.weights), self._expression(value.parts)
        if isinstance(value, Link):
            return type(value), self._expression(value.predictor)
        raise _IncomparableError

    def _attribute(self, value: Any) -> Hashable:
        """Return another attribute of a variable, of those kinds that have no value of a constant in them."""
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, tuple):
            return tuple([self._attribute(own) for own in value])
        if isinstance(value, dict):
            return tuple([(name, self._attribute(own)) for name, own in value.items()])
        if isinstance(value, Plate):
            return Plate, self._plate(value)
        return self._expression(value)


def _copied(
    nodes: Sequence[Node], leaves: Sequence[Variable], values: Mapping[str, Any] | None
) -> tuple[tuple[Node, ...], tuple[Variable, ...]]:
    """Return a copy of nodes and leaves with these values of constants and smallest variances, or with none."""
    shared: list[Any] = [own for own in vars(roles).values() if isinstance(own, Role)]
    shared += [node.log_density for node in nodes if isinstance(node, Variable)]
    memo: dict[int, Any] = {id(own): own for own in shared}
    for node in nodes:
        if isinstance(node, Constant):
            value = None if values is None else values[node.name]
            memo[id(node)] = node.with_value(value, deepcopy(node.plates, memo))
        elif isinstance(node, Variable) and node.floor is not None:
            unknown = np.full(node.floor.shape, np.nan)
            memo[id(node.floor)] = unknown if values is None else values[node.name]
    return deepcopy((tuple(nodes), tuple(leaves)), memo)


def constants_of(nodes: Sequence[Node]) -> Mapping[str, Any]:
    """Return the values of the constants of a statement, and smallest variances of its precisions, by name."""
    found = {node.name: node.value for node in nodes if isinstance(node, Constant)}
    floors = {
        node.name: node.floor for node in nodes if isinstance(node, Variable) and node.floor is not None
    }
    return {**found, **floors} if floors else found
