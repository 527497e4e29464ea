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
from ...problem import Problem
from ...schedule import Ascent, AscentAround
from ...state import AscentState, at_natural, joined
from .groups import Group, Shrunk, groups_of, shrunk_of
from .rotation import BRIEF, EXACT, Side, best_rotation, best_scales, foreseen
from .sides import sides_of
from .sparse_priors import SparsePriors, sparse_priors_of

A = TypeVar("A", bound=AscentState)

_SHARE = 0.05
"""Of what the last step gained, that a turn must promise to be worth a pass over the rows."""

_NEAR = 0.3
"""Nats a row of a step below which precisions are settled: far from an optimum that may lead to another, lower one."""

_NEAR_OF_CHAINS = 0.03
"""Nats a row of a step below which chains turn: turned earlier, states fall silent that the data would need yet."""

_SHARE_OF_CHAINS = 0.3
"""Of what the last step gained, that is foreseen of a turn of a chain before it is searched for.

Mostly a turn gains twice what it promises, for another pass.
"""

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
            if group.has_chain and not state.change < _NEAR_OF_CHAINS:
                continue
            sides = sides_of(state, group)
            if sides is None:
                continue
            try:
                if group.has_chain and not foreseen(sides) > _SHARE_OF_CHAINS * gained:
                    continue
                turn, gain = _best(group, sides)
                _turn(state.problem, group, sides, turn, naturals, arrays)
            except (ImproperError, np.linalg.LinAlgError):
                return None
            promised += gain
        if not promised > _SHARE * max(gained, 0.0):
            return None
        return at_natural(state, joined(state.problem, naturals))


def _higher(state: A, other: A | None) -> A:
    """Return another state if there is one that is higher, else the state."""
    return state if other is None or not other.elbo > state.elbo else other


def _best(group: Group, sides: Sequence[Side]) -> tuple[Array, float]:
    """Return the best turn of a group, (K, K), and by how much the objective rises with it."""
    if group.is_scaled:
        turn = np.diag(best_scales(sides))
    else:
        turn = best_rotation(sides, BRIEF if group.has_chain else EXACT)
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
    sides: Sequence[Side],
    turn: Array,
    naturals: dict[Any, Statistics],
    arrays: dict[Hashable, Array],
) -> None:
    """Turn the shared factors of a group in place, and update the precisions of their coordinates."""
    inverse: Any = np.linalg.inv(turn)
    for own, side in zip(group.members, sides, strict=True):
        variable: Variable = own.variable if own.transition is None else own.transition
        if problem.bound.is_local(variable):
            # the factors of the rows follow from the others
            continue
        around, back = (inverse.T, turn.T) if own.is_dual else (turn, inverse)
        naturals[variable] = side.natural_after(around, back, naturals[variable])
        arrays.update(problem.statistics(variable, problem.factor(variable, naturals[variable])))
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
