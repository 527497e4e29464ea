"""A stated model as plain values, and stated again from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import language
from .._model import Model
from ..language import Constant, Data, Diagonal, Indexed, Node, Plate, Variable
from ..language.nodes import membership

__all__ = ["document_of_model", "model_of_document"]

_VARIABLES: dict[str, type[Variable]] = {
    kind.__name__: kind
    for kind in (
        language.Bernoulli,
        language.Beta,
        language.Categorical,
        language.Dirichlet,
        language.Gamma,
        language.MultivariateNormal,
        language.Normal,
        language.NormalGamma,
        language.NormalWishart,
        language.StickBreaking,
        language.TiedNormalGamma,
        language.TiedNormalWishart,
        language.Wishart,
    )
}
"""All that a document can name; a name that is not here is refused."""

_LARGEST_PLATE = 10**6
"""Plates with a stated size are those of components; this is what a made-up document may ask for."""


def document_of_model(model: Model) -> dict[str, Any]:
    """Return the statement of a model as plain values: its plates, its nodes from the top down, and its leaves."""
    plates = {id(plate): plate for node in model.nodes for plate in node.plates}
    return {
        "plates": [_document_of_plate(plate) for plate in _outer_first(plates.values())],
        "nodes": [_document_of_node(node) for node in reversed(model.nodes)],
        "leaves": [leaf.name for leaf in model.leaves],
    }


def _outer_first(plates: Iterable[Plate]) -> list[Plate]:
    return sorted(plates, key=lambda plate: plate.within is not None)


def _document_of_plate(plate: Plate) -> dict[str, Any]:
    within = {} if plate.within is None else {"within": plate.within.name}
    return {"name": plate.name, "size": plate.size, **within}


def _document_of_node(node: Node) -> dict[str, Any]:
    document: dict[str, Any] = {
        "kind": type(node).__name__,
        "name": node.name,
        "plates": [plate.name for plate in node.plates],
    }
    if isinstance(node, Constant):
        document["value"] = node.value
    elif isinstance(node, Variable):
        document["slots"] = _document_of_slots(node)
        if isinstance(node, language.StickBreaking):
            document["truncation"] = node.dimension
        if node.floor is not None:
            document["smallest_variance"] = node.floor
        if node.tied is not None:
            document["tied"] = node.tied.name
    return document


def _document_of_slots(variable: Variable) -> dict[str, Any]:
    """Return what stands in the slots of a variable; a diagonal as it was stated, and not as it is written out."""
    slots = {
        name: {"node": slot.node.name, "index": None if slot.index is None else slot.index.name}
        for name, slot in variable.slots.items()
        if slot.along is None
    }
    for name, stated in variable.stated.items():
        if isinstance(stated, Diagonal):
            slots[name] = {"node": stated.node.name, "index": None, "is_diagonal": True}
    return slots


def model_of_document(document: Mapping[str, Any]) -> Model:
    """Return the model that plain values state.

    Raises
    ------
    ValueError, LookupError, TypeError
        If they state none.
    """
    plates: dict[str, Plate] = {}
    for entry in document["plates"]:
        within = plates[entry["within"]] if "within" in entry else None
        plates[entry["name"]] = Plate(entry["name"], _checked_size(entry["size"]), within=within)
    nodes: dict[str, Node] = {}
    for entry in document["nodes"]:
        nodes[entry["name"]] = _node_of(entry, plates, nodes)
    return Model(*(_variable(nodes, name) for name in document["leaves"]))


def _checked_size(size: Any) -> int | None:
    if size is None or (isinstance(size, int) and size <= _LARGEST_PLATE):
        return size
    raise ValueError(f"a plate of size {size!r:.40}")


def _node_of(entry: Mapping[str, Any], plates: Mapping[str, Plate], nodes: Mapping[str, Node]) -> Node:
    own = tuple(plates[name] for name in entry["plates"])
    if entry["kind"] == "Constant":
        return Constant(entry["name"], entry["value"], plates=own)
    if entry["kind"] == "Data":
        if len(own) == 1 and own[0].within is not None and own[0].within.name == entry["name"]:
            return membership(own[0])
        return Data(entry["name"], plates=own)
    slots = {name: _expression(nodes, slot) for name, slot in entry["slots"].items()}
    if entry["kind"] == "Beta":
        slots = {"a": slots["shapes"], "b": slots["shapes"]}
    if entry["kind"] == "StickBreaking":
        slots["truncation"] = _checked_size(entry["truncation"])
    extra = {"smallest_variance": entry["smallest_variance"]} if "smallest_variance" in entry else {}
    if "tied" in entry:
        extra["tied"] = plates[entry["tied"]]
    return _VARIABLES[entry["kind"]](entry["name"], plates=own, **slots, **extra)  # type: ignore[call-arg]


def _expression(nodes: Mapping[str, Node], slot: Mapping[str, Any]) -> Any:
    node = nodes[slot["node"]]
    if slot.get("is_diagonal"):
        return language.diagonal(node)
    if slot["index"] is None or _is_membership(nodes[slot["index"]]):
        # the language itself chooses the outer repetition of what stands on a nested plate
        return node
    return Indexed(node, _variable(nodes, slot["index"]))  # type: ignore[arg-type]


def _is_membership(node: Node) -> bool:
    """Whether a node is the labels of a plate that lies within another."""
    return any(plate.within is not None and node is membership(plate) for plate in node.plates)


def _variable(nodes: Mapping[str, Node], name: str) -> Variable:
    node = nodes[name]
    if not isinstance(node, Variable):
        raise TypeError(f"{name!r:.40} is no variable")
    return node
