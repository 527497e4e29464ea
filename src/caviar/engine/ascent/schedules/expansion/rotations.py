"""Rotations of vectors that occur only in dot products with each other, as turns of a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....._typing import Array
from .....language import Variable
from ...problem import Problem
from ...state import AscentState
from .groups import Group, groups_of
from .rotation import BRIEF, EXACT, Side, best_rotation, best_scales, foreseen
from .sides import sides_of
from .turn import Turned

_NEAR_OF_CHAINS = 0.03
"""Nats a row of a step below which chains turn: turned earlier, states fall silent that the data would need yet."""

_SHARE_OF_CHAINS = 0.3
"""Of what the last step gained, that is foreseen of a turn of a chain before it is searched for.

Mostly a turn gains twice what it promises, for another pass.
"""


def rotations_of(problem: Problem) -> list[Rotation]:
    """Return the rotations of a problem; none where a predictor multiplies no two hidden vectors."""
    return [Rotation(own) for own in groups_of(problem)]


@dataclass(frozen=True, eq=False)
class Rotation:
    """The rotation of a group of vectors, and of what else follows from it.

    Attributes
    ----------
    group
        The vectors.
    """

    group: Group

    def made(self, state: AscentState, gained: float, place: Turned) -> float:
        """Write to ``place`` where the best rotation leads, and return by how much it raises the objective."""
        group = self.group
        if group.has_chain and not state.change < _NEAR_OF_CHAINS:
            return 0.0
        sides = sides_of(state, group)
        if sides is None or (group.has_chain and not foreseen(sides) > _SHARE_OF_CHAINS * gained):
            return 0.0
        turn, gain = _best(group, sides)
        _turn(state.problem, group, sides, turn, place)
        return gain


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


def _turn(problem: Problem, group: Group, sides: Sequence[Side], turn: Array, place: Turned) -> None:
    """Turn the shared factors of a group in place, and update the precisions of their coordinates."""
    naturals, arrays = place.naturals, place.arrays
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
