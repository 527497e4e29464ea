"""Expanded: another schedule that rotates hidden vectors to the optimum of their priors after each step."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ....._errors import ImproperError
from ....._typing import Array, Statistics
from .....language import Variable
from .....numerics.records import replaced
from ....design.features import CONSTANT
from ....design.keys import StatisticKey, SumKey
from ...problem import Problem
from ...schedule import Ascent, AscentAround
from ...state import AscentState, at_natural, joined
from .groups import Group, Member, Shrunk, groups_of, known_parameters, shrunk_of
from .rotation import Turned, best_rotation, best_scales
from .sparse_priors import SparsePriors, sparse_priors_of

A = TypeVar("A", bound=AscentState)

_SHARE = 0.05
"""Of what the last step gained, that a turn must promise to be worth a pass over the rows."""

_NEAR = 0.3
"""Nats a row of a step below which precisions are settled: far from an optimum that may lead to another, lower one."""

_STILL = 0.01
"""Change of the logarithm of a precision in a step below which it stays where it is."""


def expanded(problem: Problem, schedule: Ascent[A]) -> Ascent[A]:
    """Return a schedule with turns after its steps, if some vectors of the problem can be turned."""
    groups = groups_of(problem)
    shrunk: list[Shrunk | SparsePriors] = [*shrunk_of(problem)]
    for variable in problem.order:
        own = sparse_priors_of(problem, variable) if variable.has_zeros else None
        if own is not None:
            shrunk.append(own)
    return Expanded(schedule, tuple(groups), tuple(shrunk)) if groups or shrunk else schedule


@dataclass(frozen=True)
class Expanded(AscentAround[A]):
    """Another schedule, with a turn of hidden vectors after each step that it promises to gain something by.

    The turned factors are a state like any other: it is taken only where its objective is higher.

    Attributes
    ----------
    own
        The other schedule.
    groups
        Vectors that turn together.
    shrunk
        Numbers, and vectors with zeros, whose priors are learnt.
    """

    groups: tuple[Group, ...]
    shrunk: tuple[Shrunk | SparsePriors, ...]

    def step(self, state: A) -> A:
        """Return the state after a step of the other schedule, turned if that is better."""
        after = self.own.step(state)
        if after.status is not None or not after.natural or after.rows.is_single:
            return after
        found = _higher(after, self._turned(after, after.elbo - state.elbo))
        found = _higher(found, _with_settled(state, found, self.shrunk))
        if found is after:
            return after
        change = (found.elbo - state.trace[-1]) / found.per_row
        return replaced(found, trace=(*after.trace[:-1], found.elbo), change=change)

    def _turned(self, state: A, gained: float) -> A | None:
        """Return a state with all groups turned; None where that promises too little."""
        naturals, arrays, promised = dict(state.natural), dict(state.arrays), 0.0
        for group in self.groups:
            sides = _sides_of(state, group)
            if sides is None:
                continue
            turn, gain = _best(group, sides)
            promised += gain
            try:
                _turn(state.problem, group, turn, naturals, arrays)
            except (ImproperError, np.linalg.LinAlgError):
                return None
        if not promised > _SHARE * max(gained, 0.0):
            return None
        return at_natural(state, joined(state.problem, naturals))


def _higher(state: A, other: A | None) -> A:
    """Return another state if there is one that is higher, else the state."""
    return state if other is None or not other.elbo > state.elbo else other


def _sides_of(state: AscentState, group: Group) -> list[Turned] | None:
    """Return what is known of the vectors of a group; None where a prior differs from repetition to repetition."""
    found = [_side_of(state, own) for own in group.members]
    return None if any(own is None for own in found) else [own for own in found if own is not None]


def _side_of(state: AscentState, member: Member) -> Turned | None:
    problem, variable = state.problem, member.variable
    moments, count = _moments(state, member)
    size = len(moments)
    if member.relevance is not None:
        shape, rate = known_parameters(problem, member.relevance, size)
        repeated = np.prod([problem.bound.sizes[plate] for plate in variable.plates])
        chosen = count if variable.has_zeros else repeated
        return Turned(moments, count, member.is_dual, None, shape + 0.5 * chosen, rate)
    precision = _precision(state, member, size)
    return None if precision is None else Turned(moments, count, member.is_dual, precision)


def _moments(state: AscentState, member: Member) -> tuple[Array, Any]:
    """Return the sum of the second moments of a vector, (K, K), and how many change their volume."""
    variable, arrays = member.variable, state.arrays
    if state.problem.bound.is_local(variable):
        key = SumKey((StatisticKey(variable.name, "xx"),), CONSTANT.key)
        return arrays[key], state.rows.total_weight
    name = "squares" if variable.has_zeros else "xx"
    sizes = tuple(state.problem.bound.sizes[plate] for plate in variable.plates)
    values = arrays[StatisticKey(variable.name, name)]
    event = values.shape[-1:] if variable.has_zeros else values.shape[-2:]
    axes = tuple(range(len(sizes)))
    total = np.broadcast_to(values, (*sizes, *event)).sum(axis=axes)
    if not variable.has_zeros:
        return total, 0.0 if variable in state.problem.point else float(np.prod(sizes))
    included = np.broadcast_to(arrays[StatisticKey(variable.name, "included")], (*sizes, *event))
    return np.diag(total), included.sum(axis=axes) if variable not in state.problem.point else 0.0


def _precision(state: AscentState, member: Member, size: int) -> Array | None:
    """Return the expected precision of a vector under its prior, (K, K); None if repetitions have different ones."""
    variable = member.variable
    name = "squares" if variable.has_zeros else "xx"
    key, total = StatisticKey(variable.name, name), np.zeros((size, size))
    for term in state.problem.compiled.terms:
        if term.owner is not variable:
            continue
        for position, own in enumerate(term.contraction.keys):
            of_rows = isinstance(own, SumKey) and own.local == (key,)
            if own != key and not of_rows:
                continue
            said = np.asarray(term.derivative(position)(state.arrays))
            n_event = 1 if variable.has_zeros else 2
            said = said.reshape(-1, *said.shape[said.ndim - n_event :])
            if not np.all(said == said[0]):
                return None
            total = total - 2.0 * (
                np.diag(said[0]) if variable.has_zeros else np.broadcast_to(said[0], total.shape)
            )
    return 0.5 * (total + total.T)


def _best(group: Group, sides: Sequence[Turned]) -> tuple[Array, float]:
    """Return the best turn of a group, (K, K), and by how much the objective rises with it."""
    turn = np.diag(best_scales(sides)) if group.is_scaled else best_rotation(sides)
    gain = 0.0
    dual: Any = np.linalg.inv(turn).T
    for own in sides:
        matrix = dual if own.is_dual else turn
        if group.is_scaled:
            volume = float(np.sum(own.count * np.log(np.diagonal(matrix))))
        else:
            volume = float(np.mean(own.count) * np.linalg.slogdet(matrix)[1])
        gain += volume + own.value(matrix)[0] - own.value(np.eye(len(matrix)))[0]
    return turn, gain


def _turn(
    problem: Problem,
    group: Group,
    turn: Array,
    naturals: dict[Any, Statistics],
    arrays: dict[Hashable, Array],
) -> None:
    """Turn the shared factors of a group in place, and update the precisions of their coordinates."""
    inverse: Any = np.linalg.inv(turn)
    for own in group.members:
        if problem.bound.is_local(own.variable):
            # the factors of the rows follow from the others
            continue
        back = turn.T if own.is_dual else inverse
        natural = naturals[own.variable]
        naturals[own.variable] = (_scaled if own.variable.has_zeros else _rotated)(natural, back)
        factor = problem.factor(own.variable, naturals[own.variable])
        arrays.update(problem.statistics(own.variable, factor))
    for own in group.members:
        if own.relevance is None:
            continue
        naturals[own.relevance], factor = problem.update_with_natural(own.relevance, arrays)
        arrays.update(problem.statistics(own.relevance, factor))


def _with_settled(before: A, state: A, shrunk: Sequence[Shrunk | SparsePriors]) -> A | None:
    """Return a state with priors where turns of updates lead; None where none of them is far from there.

    Only those are looked at whose precisions the last step has moved.
    """
    shrunk = [own for own in shrunk if _has_moved(before, state, own.relevance)]
    if not state.change < _NEAR or not shrunk:
        return None
    problem, naturals, arrays = state.problem, dict(state.natural), dict(state.arrays)
    moved = False
    for own in shrunk:
        naturals[own.variable], _ = problem.update_with_natural(own.variable, arrays)
        found = own.settled(problem, naturals)
        if found is None:
            continue
        moved = True
        for prior, natural in found.items():
            arrays.update(problem.statistics(prior, problem.factor(prior, natural)))
        for variable in (own.variable, *own.priors):
            naturals[variable], factor = problem.update_with_natural(variable, arrays)
            arrays.update(problem.statistics(variable, factor))
    return at_natural(state, joined(problem, naturals)) if moved else None


def _has_moved(before: AscentState, after: AscentState, relevance: Variable) -> bool:
    """Whether some precision has changed in a step."""
    if not before.natural or before.problem is not after.problem:
        return False
    (shape, rate), (shape_after, rate_after) = before.natural[relevance], after.natural[relevance]
    return bool(np.abs(np.log(shape_after / rate_after * rate / shape)).max() > _STILL)


def _rotated(natural: Statistics, back: Array) -> Statistics:
    """Return the natural parameters of Normal vectors times the inverse of ``back``."""
    linear, quadratic = natural
    return linear @ back, back.T @ quadratic @ back


def _scaled(natural: Statistics, back: Array) -> Statistics:
    """Return the natural parameters of vectors with zeros, of whose entries each is divided by one of ``back``."""
    included, linear, quadratic = natural
    scale = np.diagonal(back)
    return included + np.log(scale), linear * scale, quadratic * np.square(scale)
