"""Groups: hidden vectors that meet in dot products with each other alone, which can all be turned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .....families import Gamma as GammaFamily
from .....language import (
    Constant,
    Diagonal,
    Gamma,
    Indexed,
    Link,
    MultivariateNormal,
    Node,
    Normal,
    Part,
    Predictor,
    SparseVector,
    Variable,
)
from ....local.family import FamilyFactor
from ...problem import Problem


@dataclass(frozen=True, eq=False)
class Member:
    """A vector that turns.

    Attributes
    ----------
    variable
        The vector.
    is_dual
        Whether it turns by the inverse transpose.
    relevance
        The Gamma precisions of its coordinates, if nothing else has these; else None.
    """

    variable: Variable
    is_dual: bool
    relevance: Gamma | None


@dataclass(frozen=True, eq=False)
class Group:
    """Vectors that turn together.

    Attributes
    ----------
    members
        All of them.
    """

    members: tuple[Member, ...]

    @property
    def is_scaled(self) -> bool:
        """Whether coordinates can only be scaled: zeros would be lost otherwise."""
        return any(own.variable.has_zeros for own in self.members)


def groups_of(problem: Problem) -> list[Group]:
    """Return the groups of vectors that can be turned; none where a predictor multiplies no two hidden vectors."""
    meets, elsewhere = problem.fact("vectors that meet", lambda: _vectors_that_meet(problem))
    found: list[Group] = []
    seen: set[Variable] = set()
    for variable in meets:
        if variable not in seen:
            sides = _sides(variable, meets)
            seen |= sides.keys()
            if _can_turn(problem, sides, meets, elsewhere):
                members = (Member(own, dual, _relevance(problem, own)) for own, dual in sides.items())
                found.append(Group(tuple(members)))
    return found


def _vectors_that_meet(problem: Problem) -> tuple[dict[Variable, list[Variable]], set[Node]]:
    """Return the vectors that each vector is multiplied with, and the vectors that are used otherwise."""
    meets: dict[Variable, list[Variable]] = {}
    elsewhere: set[Node] = set()
    for node in problem.bound.nodes:
        for stated in node.stated.values() if isinstance(node, Variable) else ():
            for operands, is_dot in _uses(stated):
                hidden = [own for own in operands if _is_vector(own)]
                if is_dot and len(hidden) == 2 and hidden[0] is not hidden[1]:
                    meets.setdefault(hidden[0], []).append(hidden[1])
                    meets.setdefault(hidden[1], []).append(hidden[0])
                else:
                    elsewhere.update(hidden)
    return meets, elsewhere


def _uses(stated: Any) -> Iterator[tuple[list[Any], bool]]:
    """Yield the nodes that are multiplied with each other in an argument, and whether they are of a dot product."""
    expression = stated.predictor if isinstance(stated, Link) else stated
    if isinstance(expression, Diagonal):
        yield [_node(own) for own in expression.nodes], False
    elif isinstance(expression, Predictor):
        for addend in expression.addends:
            yield [_node(own) for own in addend.numbers], False
            yield from (([_node(own) for own in pair], True) for pair in addend.dots)
    else:
        yield [_node(expression)], False


def _node(value: Any) -> Any:
    return value.node if isinstance(value, Indexed | Part) else value


def _is_vector(node: Any) -> bool:
    return isinstance(node, MultivariateNormal | SparseVector)


def _sides(first: Variable, meets: dict[Variable, list[Variable]]) -> dict[Variable, bool]:
    """Return the vectors that are connected with one, and whether each is on the other side than this one."""
    sides, waiting = {first: False}, [first]
    while waiting:
        variable = waiting.pop()
        for other in meets[variable]:
            if other not in sides:
                sides[other] = not sides[variable]
                waiting.append(other)
    return sides


def _can_turn(
    problem: Problem,
    sides: dict[Variable, bool],
    meets: dict[Variable, list[Variable]],
    elsewhere: set[Node],
) -> bool:
    """Whether only the priors of these vectors distinguish one rotation of them from another."""
    if any(sides[other] == own for variable, own in sides.items() for other in meets[variable]):
        return False
    if len({variable.dimension for variable in sides}) > 1 or elsewhere & sides.keys():
        return False
    return all(_is_free(problem, variable) for variable in sides)


def _is_free(problem: Problem, variable: Variable) -> bool:
    """Whether a vector is hidden with all its repetitions, about zero, and alone in its factor."""
    own = problem.bound.of(variable)
    if problem.bound.is_known(variable) or variable.members or problem.coordinates.of(variable) is not None:
        return False
    if any(known is not None for known in (own.clamped, own.prior, own.active, own.entries)):
        return False
    mean = variable.slots.get("mean")
    if mean is None or not isinstance(mean.node, Constant) or np.any(problem.bound.values_of(mean.node)):
        return False
    if problem.bound.is_local(variable):
        alone = [factor for factor in problem.factors if variable in factor.variables]
        is_plain = all(isinstance(factor, FamilyFactor) for factor in alone)
        return is_plain and variable.plates == (problem.bound.data_plate,)
    return variable in problem.order


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Normal numbers about zero with precisions that are learnt, and that nothing else has.

    Attributes
    ----------
    variable
        The numbers, or vectors.
    relevance
        Their precisions.
    is_each
        Whether each coordinate of a vector, or each number, has its own; else one is for all numbers.
    """

    variable: Variable
    relevance: Gamma
    is_each: bool


def shrunk_of(problem: Problem) -> list[Shrunk]:
    """Return the shared Normal numbers about zero whose precisions are learnt from nothing else."""
    found: list[Shrunk] = []
    for variable in problem.order:
        if not isinstance(variable, Normal | MultivariateNormal) or variable in problem.point:
            continue
        relevance = _relevance(problem, variable) if _is_free(problem, variable) else None
        if relevance is not None and relevance.plates and variable.value_rank:
            found.append(Shrunk(variable, relevance, True))
        elif relevance is not None and not variable.value_rank and relevance.plates in ((), variable.plates):
            found.append(Shrunk(variable, relevance, bool(relevance.plates)))
    return found


def _relevance(problem: Problem, variable: Variable) -> Gamma | None:
    """Return the Gammas that are the precisions of a variable, of a vector of its coordinates, and of nothing else."""
    slots = [own for own in variable.slots.values() if own.name == "precision"]
    if len(slots) != 1 or not isinstance(slots[0].node, Gamma) or slots[0].index is not None:
        return None
    (slot,), node = slots, slots[0].node
    own = problem.bound.of(node)
    children = [
        child for child in problem.bound.nodes if isinstance(child, Variable) and node in child.parents
    ]
    known = [node.slots.get(name) for name in ("shape", "rate")]
    if children != [variable] or node not in problem.order or node in problem.point:
        return None
    if own.clamped is not None or own.prior is not None or node.family is not GammaFamily:
        return None
    if variable.value_rank and node.plates != (slot.along,):
        return None
    return node if all(found is not None and isinstance(found.node, Constant) for found in known) else None


def known_shape_and_rate(problem: Problem, relevance: Gamma, size: int) -> Sequence[Any]:
    """Return the known shape and rate of Gammas, one of each for every coordinate."""
    values = (problem.bound.values_of(relevance.slots[name].node) for name in ("shape", "rate"))
    return [np.broadcast_to(np.asarray(own, dtype=np.float64), (size,)) for own in values]
