"""The arguments of variables as plain values, and stated again from them: nodes, choices, sums and links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..language import (
    Constant,
    Diagonal,
    Indexed,
    Link,
    Node,
    Part,
    Predictor,
    WeightedSum,
    diagonal,
    dot,
    weighted_sum,
)
from ..language.nodes.algebra import Addend
from ..language.outcomes.links import (
    Exponential,
    ExponentialOfNormal,
    Logistic,
    LogisticOfNormal,
    Probit,
    ProbitOfNormal,
)
from ..language.outcomes.ordinal import Ordered, ordered
from ..language.outcomes.softmax import LinkOfClasses, Softmax, StickBreakingLogits

_LINKS: dict[str, type[Link]] = {"probit": Probit, "logistic": Logistic, "exp": Exponential}
_LINKS |= {
    "logistic of a Normal": LogisticOfNormal,
    "probit of a Normal": ProbitOfNormal,
    "exp of a Normal": ExponentialOfNormal,
}
_LINKS |= {"softmax": Softmax, "stick_breaking": StickBreakingLogits}
_PARTS = ("mean", "precision")


def document_of_expression(expression: Any) -> dict[str, Any]:
    """Return the expression in a slot as plain values; a node by its name.

    Examples
    --------
    >>> import caviar as cv
    >>> obs, w = cv.Plate("obs"), cv.Normal("w", 0, 1)
    >>> document_of_expression(2.0 * w - 1)
    {'sum': [{'coefficient': 2.0, 'numbers': [{'node': 'w'}]}, {'coefficient': -1.0}]}
    """
    if isinstance(expression, Link):
        if isinstance(expression, Ordered):
            cuts = _document_of_operand(expression.thresholds)
            return {"link": "ordered", "thresholds": cuts, **document_of_expression(expression.predictor)}
        name = next(name for name, kind in _LINKS.items() if kind is type(expression))
        along = (
            {"along": expression.along.name}
            if isinstance(expression, LinkOfClasses) and expression.along
            else {}
        )
        return {"link": name, **along, **document_of_expression(expression.predictor)}
    if isinstance(expression, Predictor):
        return {"sum": [_document_of_addend(addend) for addend in expression.addends]}
    if isinstance(expression, Diagonal):
        entries = expression.entries
        return {"diagonal": entries.name if isinstance(entries, Node) else document_of_expression(entries)}
    if isinstance(expression, WeightedSum):
        return {
            "weighted_sum": [_document_of_operand(expression.weights), _document_of_operand(expression.parts)]
        }
    return _document_of_operand(expression)


def _document_of_addend(addend: Addend) -> dict[str, Any]:
    document: dict[str, Any] = {"coefficient": addend.coefficient}
    if addend.numbers:
        document["numbers"] = [_document_of_operand(number) for number in addend.numbers]
    if addend.dots:
        document["dots"] = [[_document_of_operand(vector) for vector in pair] for pair in addend.dots]
    return document


def _document_of_operand(operand: Any) -> dict[str, Any]:
    if isinstance(operand, Part):
        return {**_document_of_operand(operand.whole), "part": operand.which}
    if isinstance(operand, Indexed):
        # the labels of a nested plate are the language's own: they come back with the plate
        indices = [] if is_membership(operand.by) else [_document_of_index(own) for own in operand.indices]
        # one name alone is how a single index has always been written
        chosen: dict[str, Any] = (
            {"by": indices} if len(indices) > 1 or not all(map(_is_name, indices)) else {}
        )
        if len(indices) == 1 and _is_name(indices[0]):
            chosen = {"by": indices[0]}
        return {"node": operand.node.name, **chosen}
    if isinstance(operand, Node):
        return {"node": operand.name}
    # a plain vector of a dot product
    plain = isinstance(operand, list) and all(isinstance(number, float | int) for number in operand)
    return {"value": operand if plain else np.asarray(operand, dtype=np.float64)}


def _document_of_index(index: Node | Indexed) -> Any:
    """Return the name of an index; of labels that are themselves chosen, that and the names of what chooses them."""
    if isinstance(index, Node):
        return index.name
    of = [_document_of_index(own) for own in index.indices]
    return {"label": index.node.name, "of": of[0] if len(of) == 1 else of}


def _is_name(index: Any) -> bool:
    return isinstance(index, str)


def _index_of(document: Any, nodes: Mapping[str, Node]) -> Any:
    if _is_name(document):
        return nodes[document]
    of = document["of"]
    return Indexed(nodes[document["label"]], *[nodes[own] for own in (of if isinstance(of, list) else [of])])  # type: ignore[arg-type]


def is_membership(node: Node) -> bool:
    """Whether a node is the labels that the language itself gives to a plate which lies within another."""
    return any(vars(plate).get("_membership") is node for plate in node.plates)


def expression_of(document: Mapping[str, Any], nodes: Mapping[str, Node]) -> Any:
    """Return what plain values state for a slot.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If they state nothing that can be there.
    """
    if document.get("link") == "ordered":
        return ordered(_predictor_of(document, nodes), _operand_of(document["thresholds"], nodes))
    if "link" in document:
        kind, predictor = _LINKS[document["link"]], _predictor_of(document, nodes)
        if issubclass(kind, LinkOfClasses):
            plates = [plate for node in _names_of(predictor) for plate in node.plates]
            return kind(predictor, next(plate for plate in plates if plate.name == document["along"]))
        return kind(predictor)
    if "sum" in document:
        return _predictor_of(document, nodes)
    if "diagonal" in document:
        entries = document["diagonal"]
        return diagonal(expression_of(entries, nodes) if isinstance(entries, Mapping) else nodes[entries])
    if "weighted_sum" in document:
        weights, parts = (_operand_of(own, nodes) for own in document["weighted_sum"])
        return weighted_sum(weights, parts)
    found = _operand_of(document, nodes)
    if not isinstance(found, Node | Indexed):
        raise TypeError(f"a slot that holds {found!r:.60}")
    return found


def _predictor_of(document: Mapping[str, Any], nodes: Mapping[str, Node]) -> Predictor:
    addends = tuple(_addend_of(entry, nodes) for entry in document["sum"])
    if not addends:
        raise ValueError("a sum of nothing")
    return Predictor(addends)


def _addend_of(document: Mapping[str, Any], nodes: Mapping[str, Node]) -> Addend:
    coefficient = document["coefficient"]
    if not isinstance(coefficient, float | int) or not np.isfinite(coefficient):
        raise ValueError(f"a coefficient {coefficient!r:.40}")
    numbers = tuple(_operand_of(entry, nodes) for entry in document.get("numbers", ()))
    if not all(isinstance(number, Node | Indexed | Part) for number in numbers):
        raise TypeError("a product with an array")
    dots: tuple[tuple[Any, Any], ...] = ()
    for first, second in document.get("dots", ()):
        dots += dot(_operand_of(first, nodes), _operand_of(second, nodes)).addends[0].dots
    return Addend(float(coefficient), numbers, dots)


def _operand_of(document: Mapping[str, Any], nodes: Mapping[str, Node]) -> Any:
    if "value" in document:
        value = document["value"]
        if isinstance(value, np.ndarray):
            is_plain = value.dtype == np.float64
        else:
            is_plain = isinstance(value, list) and all(isinstance(number, float | int) for number in value)
        if not is_plain:
            raise TypeError(f"a vector {value!r:.40}")
        return value
    node: Any = nodes[document["node"]]
    by: Any = document.get("by", [])
    indices = [_index_of(own, nodes) for own in (by if isinstance(by, list) else [by])]
    whole = Indexed(node, *indices) if indices else node
    if "part" not in document:
        return whole
    if document["part"] not in _PARTS or not node.has_parts:
        raise ValueError(f"a part {document['part']!r:.40} of {node!r:.60}")
    return Part(whole, document["part"])


def work_of_sums(slots: Mapping[str, Any]) -> int:
    """Return what writing out the sums of some slots costs: the square of how many operands there are.

    Parameters
    ----------
    slots
        Name -> expression, as plain values.
    """
    work = 0
    for slot in slots.values():
        addends = slot.get("sum", ())
        n_operands = sum(1 + len(a.get("numbers", ())) + 2 * len(a.get("dots", ())) for a in addends)
        work += n_operands**2
    return work


def _names_of(expression: Any) -> list[Node]:
    """Return the nodes that an expression names."""
    if isinstance(expression, Ordered):
        return [*_names_of(expression.predictor), *_names_of(expression.thresholds)]
    if isinstance(expression, Link):
        return _names_of(expression.predictor)
    if isinstance(expression, Predictor):
        return [node for addend in expression.addends for op in addend.operands for node in _names_of(op)]
    if isinstance(expression, Diagonal):
        return _names_of(expression.entries)
    if isinstance(expression, WeightedSum):
        return [*_names_of(expression.weights), *_names_of(expression.parts)]
    if isinstance(expression, Part):
        return _names_of(expression.whole)
    if isinstance(expression, Indexed):
        return [expression.node, *dict.fromkeys(expression.choosers)]
    return [expression] if isinstance(expression, Node) else []


def constants_named(stated: Mapping[str, Any]) -> set[Node]:
    """Return the constants that the slots of a variable name, without those that the language makes of vectors."""
    return {node for value in stated.values() for node in _names_of(value) if isinstance(node, Constant)}
