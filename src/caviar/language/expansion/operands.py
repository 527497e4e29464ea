"""Operands of a sum or product: a slot for each, and the vectors among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..._errors import ConjugacyError, ModelError, PlateError
from ..nodes.algebra import Addend, Algebra
from ..nodes.constants import Constant, as_known
from ..nodes.node import Data, Indexed, Node, Part, placed
from ..nodes.roles import Role
from ..nodes.slots import Slot, parts_remedy
from ..nodes.stated import Stated


class Operands:
    """The distinct operands of a sum, each a separate slot."""

    def __init__(self, owner: Stated, name: str) -> None:
        self.owner = owner
        self.name = name
        self.slots: dict[str, Slot] = {}
        self._keys: dict[tuple[object, ...], str] = {}

    def add(self, value: Any, role: Role, dimension: int | None = None) -> str:
        """Return the key of an operand's slot."""
        part = value if isinstance(value, Part) else None
        whole: Node | Indexed = value.whole if isinstance(value, Part) else value
        expression = placed(whole, self.owner)
        node: Any = expression
        chosen: tuple[Node, ...] = ()
        if isinstance(expression, Indexed):
            node, chosen = expression.node, expression.choosers
        if isinstance(node, Stated):
            node.refuse_as_parent(self.owner, self.name)
        identity = (id(node), *map(id, chosen))
        if identity in self._keys:
            return self._keys[identity]
        for slot in self.slots.values():
            if slot.node is node and not node.is_known:
                others = slot.expression.choosers if isinstance(slot.expression, Indexed) else ()
                raise ConjugacyError(
                    f"'{node.name}' is used in '{self.name}' of '{self.owner.name}' with two indices, which couples "
                    f"its elements, so they cannot be updated all at once. {_instead(node, (*chosen, *others))}"
                )
        key = f"{self.name}.{len(self.slots)}"
        self._keys[identity] = key
        self.slots[key] = Slot(self.name, expression, role, dimension, part=part)
        return key

    def refuse(self, part: Part) -> NoReturn:
        """Say that a part of a joint factor is not used where it may be."""
        where = f"'{self.name}' of {type(self.owner).__name__} '{self.owner.name}'"
        raise ConjugacyError(f"{where} cannot contain {part!r} in this form. {parts_remedy(part)}")


def _instead(node: Node, choosers: Sequence[Node]) -> str:
    """Say how elements of a variable that meet in one sum can be stated."""
    if not all(isinstance(own, Data) for own in choosers):
        return "Use two variables, or one MultivariateNormal in a dot product."
    name = node.name
    return (
        f"Use two variables; or state the elements as one vector, {name} = MultivariateNormal('{name}', ...), and "
        f"their sum or difference as dot(Data('X', plates=...), {name}), where each row of X has 1 or -1 in the "
        f"columns of its two elements and 0 in the others."
    )


def refuse_numbers(operands: Operands, addend: Addend) -> NoReturn:
    """Say that a dot product is not a vector, and state its entries as numbers on a plate."""
    first, second = addend.dots[0]
    is_array = isinstance(first, list | tuple | np.ndarray)
    spelled = f"an array of shape {np.shape(first)}" if is_array else repr(first)
    rows = "Data('X', plates=row)" if is_array else repr(first)
    name, vector = operands.owner.name, second.spelled if isinstance(second, Algebra) else "v"
    raise ModelError(
        f"'{operands.name}' of {type(operands.owner).__name__} '{name}' must be a vector, but the dot "
        f"product of {spelled} with {second!r} is a number for each row of the array. State the entries "
        f"as numbers on a plate of rows: "
        f"Normal('{name}', dot({rows}, {vector}), precision, plates=row); where their noise "
        f"has a known covariance L L', multiply both sides with the inverse of L before, which leaves precision 1"
    )


def whole_vector(operands: Operands, addend: Addend) -> Any:
    """Return the one vector of a product in the mean of a vector, a known array only if there is no other.

    Raises
    ------
    ModelError
        If it has none, or several.
    """
    nodes: list[Any] = [own.node if isinstance(own, Indexed | Part) else own for own in addend.numbers]
    vectors = [own for own, node in zip(addend.numbers, nodes, strict=True) if event_rank_of(node) == 1]
    if not vectors and sum(isinstance(node, Data) for node in nodes) == 1:
        vectors = [own for own, node in zip(addend.numbers, nodes, strict=True) if isinstance(node, Data)]
    if not vectors and addend.dots:
        refuse_numbers(operands, addend)
    if len(vectors) != 1:
        raise ModelError(
            f"'{operands.name}' of {type(operands.owner).__name__} '{operands.owner.name}' is a sum of vectors: each "
            f"product in it has one vector, as x * v with a MultivariateNormal v; {addend!r} has {len(vectors)}"
        )
    return vectors[0]


def vector_of(operands: Operands, value: Any) -> Node | Indexed | Part:
    """Return an operand of a dot product as a node; a plain vector becomes a constant.

    Raises
    ------
    ConjugacyError, PlateError
        If it is not a vector.
    """
    where = f"dot in '{operands.name}' of '{operands.owner.name}'"
    if isinstance(value, Part):
        if (value.which, value.event_rank, value.node.precision_rank) != ("mean", 1, 0):
            operands.refuse(value)
        return value
    if not isinstance(value, Node | Indexed):
        known = as_known(value, where)
        if known.ndim == 1:
            return Constant(f"{operands.owner.name}.{operands.name}.{len(operands.slots)}", known)
        advice = "Multiply by a number with *."
        if known.ndim:
            advice = "Give the array plates: Constant('X', array, plates=obs)."
        raise PlateError(f"{where} takes vectors; got shape {known.shape}. {advice}")
    node: Any = value.node if isinstance(value, Indexed) else value
    rank = 1 if isinstance(node, Data) else event_rank_of(node)
    if rank == 1:
        return value
    if rank == 0 and not node.is_known and node.plates:
        instead = "state them as one MultivariateNormal"
        if type(node).__name__ in ("Gamma", "HalfNormal"):
            instead = "state a sum of products of HalfNormals, a1 * b1 + a2 * b2, each a variable of its own"
        raise ConjugacyError(
            f"{where} takes vectors, but '{node.name}' is a {type(node).__name__} with plates. Numbers that meet in "
            f"one dot product cannot be updated in parallel; {instead}."
        )
    raise PlateError(
        f"{where} takes vectors, but '{node.name}' is {'a number; multiply with *' if rank == 0 else 'a matrix'}"
    )


def length_of(operands: Operands, vectors: Sequence[Node | Indexed | Part]) -> int:
    """Return the length of two vectors in a dot product.

    Raises
    ------
    PlateError
        If it is not known, or they have two.
    """
    nodes = [vector.node if isinstance(vector, Indexed | Part) else vector for vector in vectors]
    sizes = [node.dimension for node in nodes if node.dimension is not None]
    where = f"dot in '{operands.name}' of '{operands.owner.name}'"
    if not sizes:
        names = " and ".join(f"'{node.name}'" for node in nodes)
        raise PlateError(
            f"{where}: the length of {names} is unknown; one of the two must be a MultivariateNormal or a Constant"
        )
    if len(set(sizes)) > 1:
        lengths = ", ".join(f"'{node.name}' has length {node.dimension}" for node in nodes)
        raise PlateError(f"{where} takes two vectors of one length: {lengths}")
    return sizes[0]


def event_rank_of(node: Node) -> int:
    """Return the event axes of a value of a node: of a known array that comes with the data, no stated ones."""
    if isinstance(node, Constant):
        return node.event_rank
    return node.value_rank if isinstance(node, Stated) else 0
