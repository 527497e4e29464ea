"""Axes of a model that run over the same places, such as a plate and the labels that choose from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from .._errors import ModelError
from .._typing import Array
from ..engine.binding.nested import nested_plates
from ..engine.binding.values import value_ranks
from ..language import Constant, Data, Indexed, Label, Link, Node, Plate, Predictor, Variable
from ..language.nodes.node import membership


class NamedAxis(NamedTuple):
    """An axis whose places may have names: a plate, the entries of a vector, or the categories of a label."""

    kind: Literal["plate", "entry"]
    name: str


@dataclass(frozen=True, eq=False)
class ModelAxes:
    """The axes of a model, and which of them run over the same places.

    Attributes
    ----------
    nodes
        Those of the model, or of its structure.
    values
        Of its constants, by name.
    """

    nodes: tuple[Node, ...]
    values: Mapping[str, Array] = field(default_factory=dict)

    def settled(self) -> ModelAxes:
        """Return these after what every fit asks was found."""
        _ = self.by_name, self.labels, self.declared
        return self

    def with_values(self, values: Mapping[str, Array]) -> ModelAxes:
        """Return these, and what was found of them, with these values of the constants."""
        other = ModelAxes(self.nodes)
        vars(other).update(vars(self), values=values)
        return other

    @cached_property
    def ranks(self) -> Mapping[Node, int]:
        """Event axes of the values of each node."""
        return value_ranks(self.nodes)

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by their names, with the known labels of nested plates."""
        outer = [membership(plate) for plate in nested_plates(self.nodes)]
        return {node.name: node for node in (*outer, *self.nodes)}

    @cached_property
    def groups(self) -> Mapping[NamedAxis, tuple[NamedAxis, ...]]:
        """Each axis -> all axes with the same places, itself among them."""
        together: dict[NamedAxis, list[NamedAxis]] = {}
        for one, other in self._equal():
            first, second = together.setdefault(one, [one]), together.setdefault(other, [other])
            if first is not second:
                first.extend(second)
                together.update(dict.fromkeys(second, first))
        return {axis: tuple(dict.fromkeys(group)) for axis, group in together.items()}

    def group(self, axis: NamedAxis) -> tuple[NamedAxis, ...]:
        """Return all axes with the places of this one."""
        return self.groups.get(axis, (axis,))

    @cached_property
    def labels(self) -> frozenset[str]:
        """Names of nodes that hold labels, which may be texts: Categoricals, and labels that choose from a plate."""
        found = {node.name for node in self.nodes if isinstance(node, Label)}
        found |= {plate.within.name for plate in nested_plates(self.nodes) if plate.within is not None}
        return frozenset(found | {chosen.by.name for chosen in self._chosen() if isinstance(chosen.by, Data)})

    @cached_property
    def declared(self) -> Mapping[NamedAxis, tuple[str, ...]]:
        """Axis -> names that the statement gives to its places, and so to those of all axes of its group.

        Raises
        ------
        ModelError
            If the statement gives the places of one axis two sets of names.
        """
        stated = [
            (NamedAxis("plate", plate.name), plate.names)
            for plate in dict.fromkeys(plate for node in self.nodes for plate in node.plates)
        ]
        stated += [(NamedAxis("entry", node.name), node.entry_names) for node in self.nodes]
        found: dict[NamedAxis, tuple[str, ...]] = {}
        told_by: dict[NamedAxis, NamedAxis] = {}
        for axis, names in stated:
            if names is None:
                continue
            for other in self.group(axis):
                if found.setdefault(other, names) != names:
                    raise ModelError(
                        f"{in_words(axis)} and {in_words(told_by[other])} run over the same positions, but "
                        f"have different names: {listed(names)}, and {listed(found[other])}. Name only one of "
                        "them, or give both the same names"
                    )
                told_by.setdefault(other, axis)
        return found

    @cached_property
    def sizes(self) -> Mapping[NamedAxis, int]:
        """Sizes of axes that the model states."""
        found = {
            NamedAxis("plate", plate.name): plate.size
            for node in self.nodes
            for plate in node.plates
            if plate.size is not None
        }
        for node in self.nodes:
            is_vector = isinstance(node, Label) or self.ranks.get(node, 0)
            if isinstance(node, Variable) and is_vector and node.dimension is not None:
                found[NamedAxis("entry", node.name)] = node.dimension
        return found

    def columns_axis(self, node: Node) -> NamedAxis | None:
        """Return the axis that the columns of a table run along, as data of a node; None where it takes one column."""
        if len(node.plates) == 2 and not self.ranks.get(node, 0):
            return NamedAxis("plate", node.plates[1].name)
        if len(node.plates) == 1 and self.ranks.get(node, 0) == 1:
            return NamedAxis("entry", node.name)
        return None

    def chosen_by(self, name: str) -> str | None:
        """Return the plate from which the categories of a variable choose; None if there is no such plate."""
        node = self.by_name.get(name)
        if not isinstance(node, Variable) or not node.sums_to_one:
            return None
        along = self.group(NamedAxis("entry", name))
        return next((axis.name for axis in along if axis.kind == "plate"), None)

    def _chosen(self) -> Iterator[Indexed]:
        """Yield each node that chooses from a plate, with the plate."""
        for variable in self._variables():
            for slot in variable.slots.values():
                yield from slot.chosen
                yield from (
                    own for each in slot.chosen for own in (each.through, *each.givens) if own is not None
                )

    def _variables(self) -> Iterator[Variable]:
        return (node for node in self.nodes if isinstance(node, Variable))

    def _equal(self) -> Iterator[tuple[NamedAxis, NamedAxis]]:
        """Yield pairs of axes with the same places."""
        for chosen in self._chosen():
            yield NamedAxis("plate", chosen.plate.name), NamedAxis("entry", chosen.by.name)
        for plate in nested_plates(self.nodes):
            if plate.within is not None:
                yield NamedAxis("plate", plate.within.name), NamedAxis("entry", plate.within.name)
        for variable in self._variables():
            own = NamedAxis("entry", variable.name)
            if isinstance(variable, Label) or variable.value_rank:
                for node in _direct(variable):
                    if self._is_vector_of(node, variable):
                        yield own, NamedAxis("entry", node.name)
                first, *others = _apart(variable) or [own]
                yield from ((first, other) for other in others)
            for slot in variable.slots.values():
                if slot.along is not None and slot.along.size in (None, variable.dimension):
                    yield own, NamedAxis("plate", slot.along.name)
            for stated in variable.stated.values():
                yield from _of_dots(stated)

    def _is_vector_of(self, node: Node, owner: Variable) -> bool:
        """Whether the entries of a node are those of the variable that it is a parameter of."""
        if isinstance(node, Constant) or not self.ranks.get(node, 0):
            return False
        return node.dimension in (None, owner.dimension)


def check_names(nodes: Sequence[Node]) -> None:
    """Refuse a model that gives the places of one axis two different lists of names.

    Raises
    ------
    ModelError
        If so.
    """
    names = [node.entry_names for node in nodes]
    if any(names) or any(plate.names for node in nodes for plate in node.plates):
        _ = ModelAxes(tuple(nodes)).declared


def _direct(variable: Variable) -> Iterator[Node]:
    """Yield the nodes that are parameters of a variable by themselves, chosen or not, with entries like its own."""
    for name, stated in variable.stated.items():
        node = stated.node if isinstance(stated, Indexed) else stated
        slot = variable.slots.get(name)
        if isinstance(node, Node) and not (slot is not None and slot.role.is_apart):
            yield node


def _apart(variable: Variable) -> list[NamedAxis]:
    """Return the entries of parameters whose length is not that of the variable: all of them the same places."""
    own = [slot.node for slot in variable.slots.values() if slot.role.is_apart]
    return [NamedAxis("entry", node.name) for node in own if not isinstance(node, Constant)]


def _of_dots(stated: Any) -> Iterator[tuple[NamedAxis, NamedAxis]]:
    """Yield the entries of the two vectors of each dot product."""
    predictor = stated.predictor if isinstance(stated, Link) else stated
    for addend in predictor.addends if isinstance(predictor, Predictor) else ():
        for pair in addend.dots:
            first, second = (_node_of(vector) for vector in pair)
            if first is not None and second is not None:
                yield NamedAxis("entry", first.name), NamedAxis("entry", second.name)


def _node_of(vector: Any) -> Node | None:
    node = vector if isinstance(vector, Node) else getattr(vector, "node", None)
    return node if isinstance(node, Node) and not isinstance(node, Constant) else None


def in_words(axis: NamedAxis) -> str:
    """Return the name of an axis for messages."""
    return f"plate '{axis.name}'" if axis.kind == "plate" else f"the entries of '{axis.name}'"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return names for a message, only the first ones if there are many."""
    told = ", ".join(f"'{name}'" for name in names[:most])
    return told if len(names) <= most else f"{told}, ... ({len(names)} names)"


def plates_of(nodes: Sequence[Node]) -> dict[str, Plate]:
    """Return the plates of a model by their names, with those that others lie within."""
    plates = [plate for node in nodes for plate in node.plates]
    outer = [plate.within for plate in plates if plate.within is not None]
    return {plate.name: plate for plate in (*plates, *outer)}
