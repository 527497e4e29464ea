"""Positive numbers that occur only in products with each other: what multiplies one may divide another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from .....families import Gamma as GammaFamily
from .....language import Constant, Gamma, Node, Plate, Predictor, Variable
from .....language.algebra import Addend
from ....local.family import FamilyFactor
from ...problem import Problem
from ...state import AscentState
from .groups import is_hidden, node_of
from .scaled import Scaled
from .scales import best_logs, gain_of
from .turn import Turned

_Group: TypeAlias = tuple[tuple[Scaled, ...], tuple[Plate, ...]]


_SHARE = 0.3
"""Of what the last step gained, that scales must promise to be worth a pass over the rows."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """Numbers that are multiplied by scales, and others that are divided by these.

    Attributes
    ----------
    members
        All of them.
    along
        Plates that all have: each repetition along these has its own scale.
    """

    members: tuple[Scaled, ...]
    along: tuple[Plate, ...]

    def made(self, state: AscentState, gained: float, place: Turned) -> float:
        """Write to ``place`` where the best scales lead, and return by how much they raise the objective."""
        sides = [own.said(state, place, self.along) for own in self.members]
        known = [own for own in sides if own is not None]
        if len(known) < len(sides):
            return 0.0
        logs = best_logs(known)
        gain = gain_of(known, logs)
        if not gain > _SHARE * max(gained, 0.0):
            return 0.0
        for own, said in zip(self.members, known, strict=True):
            own.turn(state, place, self.along, said, logs)
        return gain


class _Product(NamedTuple):
    """Hidden numbers that are multiplied in an argument of a variable."""

    owner: Variable
    operands: tuple[Any, ...]


def scalings_of(problem: Problem) -> list[Scaling]:
    """Return the scalings of a problem; none where no hidden Gammas are multiplied."""
    found: list[_Group] = problem.fact("numbers that are multiplied", lambda: _groups(problem))
    return [Scaling(*own) for own in found]


def _groups(problem: Problem) -> list[_Group]:
    products = [
        _Product(node, tuple(own for own in map(node_of, addend.operands) if isinstance(own, Gamma)))
        for node in problem.bound.nodes
        if isinstance(node, Variable)
        for addend in _addends(node)
    ]
    if all(len(own.operands) < 2 for own in products):
        return []
    free = {own for product in products for own in product.operands if _is_free(problem, own, products)}
    seen: set[frozenset[Variable]] = set()
    found: list[_Group] = []
    for product in products:
        for pair in combinations([own for own in product.operands if own in free], 2):
            sides = _sides(pair, products, free)
            if sides is not None and frozenset(sides) not in seen:
                seen.add(frozenset(sides))
                members = tuple(Scaled.of(problem, own, dual) for own, dual in sides.items())
                found.append((members, _along(problem, sides, products)))
    return found


def _addends(owner: Variable) -> Iterator[Addend]:
    """Yield the products that are added up in the arguments of a variable."""
    for stated in owner.stated.values():
        if isinstance(stated, Predictor):
            yield from stated.addends


def _is_free(problem: Problem, own: Gamma, products: Sequence[_Product]) -> bool:
    """Whether a Gamma is hidden, alone in its factor, of known shape, and all that others say of it is in products."""
    shape = own.stated["shape"]
    if own.family is not GammaFamily or own in problem.point or not isinstance(shape, Constant):
        return False
    if not is_hidden(problem, own) or problem.bound.is_local(shape) or own.is_flat:
        return False
    owners = [product.owner for product in products if own in product.operands]
    users = [node for node in problem.bound.nodes if isinstance(node, Variable) and own in node.parents]
    if any(user not in owners or _n_slots(user, own) != owners.count(user) for user in users):
        return False
    if not problem.bound.is_local(own):
        return own in problem.order
    alone = [factor for factor in problem.factors if own in factor.variables]
    return all(isinstance(factor, FamilyFactor) for factor in alone)


def _n_slots(user: Variable, own: Node) -> int:
    return sum(slot.node is own for slot in user.slots.values())


def _sides(
    pair: Sequence[Variable], products: Sequence[_Product], free: Set[Variable]
) -> Mapping[Variable, bool] | None:
    """Return two numbers and all that must change with them, and whether each is divided by the scale.

    None if some product would change.
    """
    first, second = pair
    sides = {first: False, second: True}
    waiting = [first, second]
    while waiting:
        variable = waiting.pop()
        for product in products:
            if variable not in product.operands or not _sum_of(product, sides):
                continue
            others = [own for own in product.operands if own in free and own not in sides]
            if len(others) != 1:
                return None
            sides[others[0]] = _sum_of(product, sides) > 0
            waiting.append(others[0])
    return None if any(_sum_of(product, sides) for product in products) else sides


def _sum_of(product: _Product, sides: Mapping[Variable, bool]) -> int:
    """Return how often a scale multiplies a product, less how often it divides it."""
    return sum(-1 if sides[own] else 1 for own in product.operands if own in sides)


def _along(
    problem: Problem, sides: Mapping[Variable, bool], products: Sequence[_Product]
) -> tuple[Plate, ...]:
    """Return the plates along which each repetition of some numbers meets the same one of the others."""
    first, *_ = sides
    found = [plate for plate in first.plates if plate is not problem.bound.data_plate]
    for product in products:
        for slot in product.owner.slots.values():
            if slot.node in sides:
                met = {*product.owner.plates, slot.along} & {*slot.node.plates}
                found = [plate for plate in found if plate in met]
    return tuple(found)
