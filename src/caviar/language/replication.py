"""Replication: a statement repeated over one more plate, outside all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from .._typing import Array
from .nodes import roles
from .nodes.constants import Constant
from .nodes.node import Data, Node
from .nodes.plates import Plate
from .nodes.roles import Role
from .variable import Variable


def replicated(
    nodes: Sequence[Node],
    leaves: Sequence[Variable],
    plate: Plate,
    constants: Mapping[str, Array],
    floors: Mapping[str, Array],
    value_of: Callable[[Node], Array],
) -> tuple[tuple[Node, ...], tuple[Variable, ...]]:
    """Return the nodes and leaves of a statement with every variable repeated over one more plate, the outermost.

    The repetitions have nothing in common but the constants: their posteriors are those of as many statements.

    Parameters
    ----------
    nodes, leaves
        Of the statement, each variable before its parents.
    plate
        The plate; its size is the number of repetitions.
    constants
        Name of a constant -> its value in each repetition, (G, shape of one...). The others are the same in all.
    floors
        Name of a variable with a smallest variance -> that of each repetition, (G, shape of one...).
    value_of
        Returns the value of a constant of the statement.
    """
    shared: list[Any] = [own for own in vars(roles).values() if isinstance(own, Role)]
    shared += [node.log_density for node in nodes if isinstance(node, Variable)]
    memo: dict[int, Any] = {id(own): own for own in shared}
    for node in nodes:
        if isinstance(node, Constant):
            plates = deepcopy(node.plates, memo)
            own = constants.get(node.name)
            plates = plates if own is None else (plate, *plates)
            memo[id(node)] = Constant.of_known(node.name, value_of(node) if own is None else own, plates)
    copies, ends = deepcopy((tuple(nodes), tuple(leaves)), memo)
    for node in copies:
        if isinstance(node, Variable | Data):
            node.plates = (plate, *node.plates)
        if isinstance(node, Variable) and node.name in floors:
            floor = floors[node.name]
            # one of a matrix is of its columns, one of a number of its last plates
            n_between = len(node.plates) - 1 + (node.value_rank > 0) - (floor.ndim - 1)
            node.floor = floor.reshape(len(floor), *(1,) * n_between, *floor.shape[1:])
    return copies, ends
