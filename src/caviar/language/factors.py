"""What a model makes of its variables: tabulated factors if terms need other functions, and other terms of parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from ..families.tabulated.scalar_functions import Function
from .nodes import roles
from .nodes.node import Node
from .nodes.roles import Role
from .outcomes.links import Answer
from .terms import nodes_above, terms_of
from .variable import Variable


def with_factors(
    leaves: tuple[Variable, ...], nodes: Sequence[Node]
) -> tuple[tuple[Variable, ...], tuple[Node, ...]]:
    """Return the leaves and all nodes of a model whose variables have the families of their factors.

    If each factor has the family of its variable, these are the given ones. If a scalar needs a tabulated factor, for
    functions that its family lacks, or an answer behind a link has other terms where something depends on it, they are
    copies, with copies of all variables above them, because that depends on the model, and they may be part of others.

    Raises
    ------
    ModelError
        If such a scalar cannot have a tabulated factor.
    """
    asked, parents = _functions_asked(nodes), _answers_with_children(nodes)
    if not asked and not parents:
        return leaves, tuple(nodes)
    own = deepcopy(leaves, {id(shared): shared for shared in _shared(nodes)})
    nodes = nodes_above(own)
    for node in nodes:
        if node.name in asked and isinstance(node, Variable):
            functions = asked[node.name]
            node.settle(tuple(functions[name] for name in sorted(functions)))
        if node.name in parents and isinstance(node, Answer):
            node.settle_as_parent()
    return own, tuple(nodes_above(own) if parents else nodes)


def _answers_with_children(nodes: Sequence[Node]) -> set[str]:
    """Return the answers behind links on which others depend, and whose terms are other ones then."""
    found = set()
    for node in nodes:
        for parent in node.parents if isinstance(node, Variable) else ():
            if isinstance(parent, Answer) and parent.hidden is not None and parent.hidden.term_of_parent:
                found.add(parent.name)
    return found


def _functions_asked(nodes: Sequence[Node]) -> Mapping[str, dict[str, Function]]:
    """Return for each scalar the functions of it that terms need and its family lacks, by name."""
    asked: dict[str, dict[str, Function]] = {}
    for node in nodes:
        if not isinstance(node, Variable) or not node.functions:
            continue
        for operand in (operand for term in terms_of(node) for operand in term.operands):
            scalar: Any = operand.node
            if operand.function is not None and operand.statistic not in scalar.own_family.statistics:
                asked.setdefault(scalar.name, {})[operand.statistic] = operand.function
    return asked


def _shared(nodes: Sequence[Node]) -> list[Any]:
    """Return the parts that copies of the variables share with them, which never change with the model."""
    plates = {plate for node in nodes for plate in node.plates}
    outer = {plate.within for plate in plates if plate.within is not None}
    known = [node for node in nodes if not isinstance(node, Variable)]
    own_roles = [value for value in vars(roles).values() if isinstance(value, Role)]
    return [*plates, *outer, *known, *own_roles]
