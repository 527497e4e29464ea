"""The statement of a model as plain values, and the same model stated again from them.

A document can name nothing but the distributions of the language, in a table; its sums and products are lists of
operands. What it costs to state them again is bounded by what the document holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._errors import ModelError
from ..language import DISTRIBUTIONS, Constant, Data, Node, Plate, Variable
from .expressions import constants_named, document_of_expression, expression_of, is_membership, work_of_sums

_PLAIN = ("truncation", "trials", "categories", "length")
"""Arguments of distributions that are plain numbers, not nodes."""

_MOST_NODES = 10_000
_MOST_PLATES = 32
"""Plates of one node: arrays have no more axes."""
_MOST_WORK = 250_000
"""Work of writing out sums: that of one with 500 operands."""
_MOST_PIECES = 2_000_000
"""Truncations and categories together, which alone are larger than what states them."""


def document_of_statement(nodes: Sequence[Node], leaves: Sequence[Variable]) -> dict[str, Any]:
    """Return the statement of a model: its plates, its nodes, each after those above it, and its leaves.

    Raises
    ------
    ModelError
        If it has a variable of a class that is not the language's own, or is too large to be stated again.
    """
    named = {node for v in nodes if isinstance(v, Variable) for node in constants_named(_in_slots(v))}
    kept = [node for node in reversed(nodes) if _is_stated(node, named)]
    document = {
        "plates": [_document_of_plate(plate) for plate in _plates_of(kept)],
        "nodes": [_document_of_node(node) for node in kept],
        "leaves": [leaf.name for leaf in leaves],
    }
    try:
        _check_extent(document)
    except ValueError as error:
        raise ModelError(f"the model is too large to be saved: {error}") from error
    return document


def _is_stated(node: Node, named: set[Node]) -> bool:
    """Whether a node is in the statement itself, and not derived from it by the language."""
    if isinstance(node, Constant):
        return node in named
    return not (isinstance(node, Variable) and node.is_brought) and not is_membership(node)


def _in_slots(variable: Variable) -> dict[str, Any]:
    """Return the arguments of a variable that are nodes or expressions."""
    return {name: value for name, value in variable.arguments.items() if not _is_plain(name, value)}


def _is_plain(name: str, value: Any) -> bool:
    """Whether an argument is a plain number or array: the trials of a Binomial may be Data."""
    return name in _PLAIN and not isinstance(value, Node)


def _plates_of(nodes: Sequence[Node]) -> list[Plate]:
    """Return the plates of some nodes, outer ones first."""
    plates = list(dict.fromkeys(plate for node in nodes for plate in node.plates))
    outer = list(dict.fromkeys(plate.within for plate in plates if plate.within is not None))
    found = [*outer, *(plate for plate in plates if plate not in outer)]
    names = [plate.name for plate in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(
            f"two Plate objects are both named '{twice}': rename one, so that the model can be saved"
        )
    return found


def _document_of_plate(plate: Plate) -> dict[str, Any]:
    within = {} if plate.within is None else {"within": plate.within.name}
    names = {} if plate.names is None else {"names": list(plate.names)}
    return {"name": plate.name, "size": plate.size, **within, **names}


def _document_of_node(node: Node) -> dict[str, Any]:
    kind = type(node).__name__
    document: dict[str, Any] = {
        "kind": kind,
        "name": node.name,
        "plates": [plate.name for plate in node.plates],
    }
    if node.entry_names is not None:
        document["entry_names"] = list(node.entry_names)
    if isinstance(node, Constant):
        return {**document, "value": node.value}
    if isinstance(node, Data):
        return document
    if not isinstance(node, Variable) or DISTRIBUTIONS.get(kind) is not type(node):
        raise ModelError(f"'{node.name}' is a {kind}, which caviar.load could not find; pickle it")
    document["slots"] = {name: document_of_expression(stated) for name, stated in _in_slots(node).items()}
    document |= {name: value for name, value in node.arguments.items() if _is_plain(name, value)}
    if node.floor is not None:
        document["smallest_variance"] = node.floor
    if node.tied is not None:
        document["tied"] = node.tied.name
    return document


def leaves_of_statement(document: Mapping[str, Any]) -> list[Variable]:
    """Return the leaves of the model that plain values state.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If they state none.
    """
    _check_extent(document)
    plates: dict[str, Plate] = {}
    for entry in document["plates"]:
        within = plates[entry["within"]] if "within" in entry else None
        size, names = _checked_size(entry["size"]), entry.get("names")
        _put(plates, Plate(entry["name"], size, within=within, names=names))
    nodes: dict[str, Node] = {}
    for entry in document["nodes"]:
        _put(nodes, _node_of(entry, plates, nodes))
    return [_variable(nodes, name) for name in document["leaves"]]


def _put(known: dict[str, Any], found: Any) -> None:
    if found.name in known:
        raise ValueError(f"two entries named {found.name!r:.40}")
    known[found.name] = found


def _check_extent(document: Mapping[str, Any]) -> None:
    """Refuse what would take much more time or memory to state than to write down.

    Raises
    ------
    ValueError
        If so: the message says of what.
    """
    nodes = document["nodes"]
    work = sum(work_of_sums(entry.get("slots", {})) for entry in nodes)
    sizes = [entry.get(name) for entry in nodes for name in ("truncation", "categories", "length")]
    pieces = sum(_checked_size(size) or 0 for size in sizes)
    widest = max((len(entry["plates"]) for entry in nodes), default=0)
    for what, found, most in (
        ("nodes", max(len(nodes), len(document["plates"]), len(document["leaves"])), _MOST_NODES),
        ("plates of one node", widest, _MOST_PLATES),
        ("products of operands of sums", work, _MOST_WORK),
        (
            "pieces of StickBreakings, categories of Dirichlets and entries of SpikeSlabs",
            pieces,
            _MOST_PIECES,
        ),
    ):
        if found > most:
            raise ValueError(f"it has {found} {what}, and {most} is the most")


def _checked_size(size: Any) -> int | None:
    if size is None or (type(size) is int and 0 < size < 2**62):
        return size
    raise ValueError(f"a size {size!r:.40}")


def _node_of(entry: Mapping[str, Any], plates: Mapping[str, Plate], nodes: Mapping[str, Node]) -> Node:
    name, kind = entry["name"], entry["kind"]
    own = tuple([plates[plate] for plate in entry["plates"]])
    if kind == "Constant":
        return Constant(name, _array(entry["value"]), plates=own)
    if kind == "Data":
        return Data(name, plates=own, names=entry.get("entry_names"))
    slots = {str(slot): expression_of(stated, nodes) for slot, stated in entry["slots"].items()}
    if "truncation" in entry:
        slots["truncation"] = entry["truncation"]
    for size in ("categories", "length"):
        if size in entry:
            slots[size] = _checked_size(entry[size])
    if "trials" in entry:
        slots["trials"] = None if entry["trials"] is None else _array(entry["trials"])
    if "smallest_variance" in entry:
        slots["smallest_variance"] = _array(entry["smallest_variance"])
    if "tied" in entry:
        slots["tied"] = plates[entry["tied"]]
    variable = DISTRIBUTIONS[kind].state_again(name, own, slots)
    if type(variable) is not DISTRIBUTIONS[kind]:
        raise TypeError(f"{name!r:.40} is a {type(variable).__name__}, and said to be a {kind}")
    variable.name_entries(entry.get("entry_names"))
    return variable


def _array(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype != np.float64:
        raise TypeError(f"a value {value!r:.40} that is not an array of float64")
    return value


def _variable(nodes: Mapping[str, Node], name: str) -> Variable:
    node = nodes[name]
    if not isinstance(node, Variable):
        raise TypeError(f"{name!r:.40} is not a variable")
    return node
