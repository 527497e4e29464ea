"""Positive numbers that occur only in products with each other: what multiplies one may divide another.

Sides of a scaling: what a state tells of numbers that are multiplied by scales, and how they are turned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....._typing import Array, Statistics
from .....families import Gamma as GammaFamily
from .....language import Axis, Constant, Gamma, Node, Plate, Predictor, Variable
from .....language.nodes.algebra import Addend
from ....design.keys import StatisticKey, SumKey
from ....local.family import FamilyFactor
from ....local.kept import kept_statistic, with_divided
from ....local.local_factor import LocalFactor
from ...problem import Problem
from ...state import AscentState
from .groups import is_hidden, node_of
from .scales import Learnt, Said, best_logs, gain_of
from .turn import Turned


@dataclass(frozen=True, eq=False)
class Scaled:
    """Gammas that are multiplied by scales.

    Attributes
    ----------
    variable
        The Gammas.
    is_dual
        Whether they are divided by the scales.
    rate
        Their rates, if these are Gammas with known parameters that nothing else has; else None.
    """

    variable: Variable
    is_dual: bool
    rate: Variable | None

    @classmethod
    def of(cls, problem: Problem, variable: Variable, is_dual: bool) -> Scaled:
        """Return a number as a side of a scaling."""
        rate = variable.stated["rate"]
        is_own = isinstance(rate, Gamma) and _is_own_rate(problem, variable, rate)
        return cls(variable, is_dual, rate if is_own else None)

    def said(self, state: AscentState, place: Turned, along: Sequence[Plate]) -> Said | None:
        """Return what their priors say of scales along some plates; None where that is not known here."""
        problem, sizes = state.problem, _sizes(state)
        plates, numbers = _of_globals(problem, self.variable), None
        if self._is_kept(problem):
            factor = _factor(problem, self.variable)
            numbers = kept_statistic(place.warm, factor, self._key)
            if numbers is None:
                return None
        shapes = _known(problem, self.variable, "shape")
        if problem.bound.is_local(self.variable):
            shapes = shapes * state.rows.total_weight
        count = _onto(shapes, plates, along, sizes).ravel()
        if self.rate is not None and len({*along} & {*self.rate.plates}) in (0, len(along)):
            learnt = self._learnt(state, place, along, numbers)
            return None if learnt is None else Said(count, np.zeros_like(count), learnt, self.is_dual)
        linear = np.zeros_like(count)
        for key, said, axes in self._own_terms(problem, place):
            if isinstance(key, SumKey) and len(key.local) > 1:
                # rows have hidden rates of their own
                return None
            # rates that labels choose are told apart by the category, too
            chosen = tuple(i for i, axis in enumerate(axes) if axis.of not in plates)
            of_plates = (said * place.arrays[key]).sum(axis=chosen)
            order = [axis.of for axis in axes if axis.of in plates]
            linear = linear - _onto(of_plates, order, along, sizes).ravel()
        return Said(count, linear, None, self.is_dual)

    def turn(
        self, state: AscentState, place: Turned, along: Sequence[Plate], said: Said, logs: Array
    ) -> None:
        """Write the factors to which these scales lead to ``place``, and those of rates that are learnt."""
        problem, rate, sizes = state.problem, self.rate, _sizes(state)
        scales = np.exp(-logs if self.is_dual else logs)
        shaped = scales.reshape([sizes[plate] for plate in along])
        spread = _onto(shaped, along, _of_globals(problem, self.variable), sizes)
        if not problem.bound.is_local(self.variable):
            shape, negative_rate = place.naturals[self.variable]
            _put(problem, place, self.variable, (shape, negative_rate / spread))
        elif self._is_kept(problem):
            factor = _factor(problem, self.variable)
            place.warm = with_divided(place.warm, factor, self._key, spread)
        # for what other turns say of them
        plates = _of_globals(problem, self.variable)
        for key, axes in {key: axes for key, _, axes in self._own_terms(problem, place)}.items():
            if isinstance(key, SumKey) and key.local == (self._key,):
                order = [axis.of for axis in axes if axis.of in plates]
                others = [i for i, axis in enumerate(axes) if axis.of not in plates]
                own = spread.transpose([plates.index(plate) for plate in order])
                place.arrays[key] = place.arrays[key] * np.expand_dims(own, others)
        if said.learnt is not None and rate is not None and not problem.bound.is_local(rate):
            order = _rest_first(rate, along)
            found = said.learnt.rates(scales).reshape([sizes[plate] for plate in order])
            _put(problem, place, rate, (place.naturals[rate][0], -_onto(found, order, rate.plates, sizes)))

    @property
    def _key(self) -> StatisticKey:
        return StatisticKey(self.variable.name, "x")

    def _is_kept(self, problem: Problem) -> bool:
        """Whether a pass over the rows starts from their factors, and not from those of the globals alone."""
        return problem.bound.is_local(self.variable) and problem.rows.keeps_locals

    def _own_terms(self, problem: Problem, place: Turned) -> Iterator[tuple[Any, Array, tuple[Axis, ...]]]:
        """Yield what holds them in the terms of their own density, what it is multiplied by, and the axes of both."""
        for term in problem.compiled.terms:
            for position, key in enumerate(term.contraction.keys if term.owner is self.variable else ()):
                if key == self._key or (isinstance(key, SumKey) and self._key in key.local):
                    axes = term.contraction.factors[position].axes
                    yield key, np.asarray(term.derivative(position)(place.arrays)), axes

    def _learnt(
        self, state: AscentState, place: Turned, along: Sequence[Plate], numbers: Array | None
    ) -> Learnt | None:
        """Return the rates with what adds up below each; None where rows have others and keep no numbers."""
        problem, rate, sizes = state.problem, self.rate, _sizes(state)
        assert rate is not None
        plates, order = _of_globals(problem, self.variable), _rest_first(rate, along)
        rest = [plate for plate in order if plate not in along]
        shapes, weight, data_plate = _known(problem, self.variable, "shape"), np.ones((1, 1)), None
        if problem.bound.is_local(rate):
            if numbers is None:
                return None
            data_plate, weights = problem.bound.data_plate, state.rows.weights
            sizes = {**sizes, data_plate: len(weights)}
            weight = _onto(weights, [data_plate], rest, sizes).reshape(-1, 1)
        else:
            ((key, _, _),) = self._own_terms(problem, place)
            numbers = place.arrays[key]
            if problem.bound.is_local(self.variable):
                shapes = shapes * state.rows.total_weight
        of_numbers = plates if data_plate is None else [*plates, data_plate]
        first, second = (_known(problem, rate, name) for name in ("shape", "rate"))
        first, second = (_onto(own, _of_globals(problem, rate), order, sizes) for own in (first, second))
        size = int(np.prod([sizes[plate] for plate in along], dtype=int))
        width = size if len(rest) < len(order) else 1
        return Learnt(
            shape=(first + _onto(shapes, plates, order, sizes)).reshape(-1, width),
            rate=second.reshape(-1, width),
            below=_onto(numbers, of_numbers, [*rest, *along], sizes).reshape(-1, size),
            weight=weight,
        )


def _is_own_rate(problem: Problem, variable: Variable, rate: Gamma) -> bool:
    """Whether Gammas are the rates of a variable alone, with known parameters that are the same for all rows."""
    bound = problem.bound
    if (
        not is_hidden(problem, rate)
        or rate.family is not GammaFamily
        or rate.is_flat
        or rate in problem.point
    ):
        return False
    if [own for own in bound.nodes if isinstance(own, Variable) and rate in own.parents] != [variable]:
        return False
    if not all(isinstance(own, Constant) and not bound.is_local(own) for own in rate.stated.values()):
        return False
    if not bound.is_local(rate):
        return rate in problem.order
    return all(isinstance(own, FamilyFactor) for own in problem.factors if rate in own.variables)


def _factor(problem: Problem, variable: Variable) -> LocalFactor:
    return next(own for own in problem.factors if variable in own.variables)


def _put(problem: Problem, place: Turned, variable: Variable, natural: Statistics) -> None:
    """Write a factor of a global with these natural parameters to a place."""
    like = place.naturals[variable]
    place.naturals[variable] = tuple(
        np.broadcast_to(own, old.shape) for own, old in zip(natural, like, strict=True)
    )
    place.arrays.update(problem.statistics(variable, problem.factor(variable, place.naturals[variable])))


def _sizes(state: AscentState) -> Mapping[Any, int]:
    return state.problem.bound.sizes


def _of_globals(problem: Problem, variable: Variable) -> list[Plate]:
    """Return the plates of a variable other than that of the rows."""
    return [plate for plate in variable.plates if plate is not problem.bound.data_plate]


def _rest_first(rate: Variable, along: Sequence[Plate]) -> list[Plate]:
    """Return the plates of a variable, those along which scales differ last."""
    shared = [plate for plate in along if plate in rate.plates]
    return [*(plate for plate in rate.plates if plate not in along), *shared]


def _known(problem: Problem, variable: Variable, name: str) -> Array:
    """Return a known parameter along the plates of a variable other than that of the rows."""
    node, plates = variable.stated[name], _of_globals(problem, variable)
    values = np.asarray(problem.bound.values_of(node), dtype=np.float64)
    return _onto(values, list(node.plates), plates, problem.bound.sizes)


def _onto(
    array: Array, plates: Sequence[Plate | None], onto: Sequence[Plate], sizes: Mapping[Any, int]
) -> Array:
    """Return an array along some plates summed over those it is not wanted along, and spread along others."""
    whole = np.broadcast_to(array, [sizes[plate] for plate in plates])
    total = whole.sum(axis=tuple(i for i, plate in enumerate(plates) if plate not in onto))
    left = [plate for plate in plates if plate in onto]
    total = total.transpose([left.index(plate) for plate in onto if plate in left])
    shape = [sizes[plate] if plate in left else 1 for plate in onto]
    return np.broadcast_to(total.reshape(shape), [sizes[plate] for plate in onto])


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
