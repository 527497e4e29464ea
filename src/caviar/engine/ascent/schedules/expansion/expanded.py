"""Expanded: another schedule that rotates hidden vectors to the optimum of their priors after each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ....._errors import ImproperError
from .....language import Variable
from .....numerics.records import replaced
from ...problem import Problem
from ...schedule import Ascent, AscentAround
from ...state import AscentState, at_natural, joined
from .groups import Shrunk, shrunk_of
from .rotations import rotations_of
from .scalings import scalings_of
from .sparse_priors import SparsePriors, sparse_priors_of
from .turn import Turn, Turned

A = TypeVar("A", bound=AscentState)

_SHARE = 0.05
"""Of what the last step gained, that a turn must promise to be worth a pass over the rows."""

_NEAR = 0.3
"""Nats a row of a step below which precisions are settled: far from an optimum that may lead to another, lower one."""

_STILL = 0.01
"""Change of the logarithm of a precision in a step below which it stays where it is."""


def expanded(problem: Problem, schedule: Ascent[A]) -> Ascent[A]:
    """Return a schedule with turns after its steps, if some vectors of the problem can be turned."""
    turns: list[Turn] = [*rotations_of(problem), *scalings_of(problem)]
    shrunk: list[Shrunk | SparsePriors] = [*shrunk_of(problem)]
    for variable in problem.order:
        own = sparse_priors_of(problem, variable) if variable.has_zeros else None
        if own is not None:
            shrunk.append(own)
    return Expanded(schedule, tuple(turns), tuple(shrunk)) if turns or shrunk else schedule


@dataclass(frozen=True)
class Expanded(AscentAround[A]):
    """Another schedule, with a turn of hidden vectors after each step that it promises to gain something by.

    The turned factors are a state like any other: it is taken only where its objective is higher.

    Attributes
    ----------
    own
        The other schedule.
    turns
        Factors that move together.
    shrunk
        Numbers, and vectors with zeros, whose priors are learnt.
    """

    turns: tuple[Turn, ...]
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
        """Return a state after all turns; None where that promises too little."""
        place, promised = Turned.of(state), 0.0
        try:
            for turn in self.turns:
                promised += turn.made(state, gained, place)
        except (ImproperError, np.linalg.LinAlgError):
            return None
        if not promised > _SHARE * max(gained, 0.0):
            return None
        return at_natural(replaced(state, warm=place.warm), joined(state.problem, place.naturals))


def _higher(state: A, other: A | None) -> A:
    """Return another state if there is one that is higher, else the state."""
    return state if other is None or not other.elbo > state.elbo else other


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
