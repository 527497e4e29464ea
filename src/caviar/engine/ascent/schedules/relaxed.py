r"""Relaxed: batch ascent in which each component goes beyond its update by a factor of its own.

Where components are many some come into place while others drift. A factor that suits those that drift is too large
for the rest, and a common one is soon refused. The update moves the natural parameters of component k by
:math:`f_k`, the expected statistics by :math:`h_k`; the move is :math:`\beta_k f_k` with

.. math:: \beta_k = -\frac{s_k^\top \Delta t_k}{s_k^\top \Delta h_k},

where :math:`s_k` and :math:`\Delta t_k` are the last move in both coordinates, and :math:`\Delta h_k` is the change of
:math:`h_k` since: the step length of Barzilai and Borwein in the metric of the factors, :math:`1/(1 - \rho)` where
updates shrink by a factor :math:`\rho` each time. It is limited by :math:`\beta_k^2 f_k^\top h_k \le r N_k`: a
component of :math:`N_k` rows may go so far that its divergence is r nats for each of them. The reach r grows with each
good move.

Sources: Barzilai and Borwein, "Two-point step size gradient methods" (1988); Salakhutdinov and Roweis, "Adaptive
overrelaxed bound optimization methods" (ICML 2003), section 3.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...._errors import ImproperError
from ...._typing import AnyArray, Array
from ....numerics.records import replaced
from ...design.features import CONSTANT
from ...design.keys import StatisticKey, SumKey
from ..degeneracy import checked
from ..problem import Problem
from ..state import AscentState, at_natural, iterated, slack_of, updated_globals, watched
from ..status import Status
from .batch import Batch, BatchState, after_pass, is_worth_it, place_in
from .moves.acceleration import GROWTH, Memory, Move, Place

_REACH, _LONGEST_REACH = 0.1, 100.0
"""Nats for each of its rows that a component may go at first, and at the most."""

_SHORTER = 4.0
"""Factor by which the reach falls where a move is refused, or leads to factors that are improper."""

_MOST = 4.0
"""Factor of an update at the most."""

_LEAST = 1.01
"""Factor below which a move is an update."""

_NO_WAY = 1e-12
"""Nats below which a divergence is rounding."""

_ATTEMPTS = 4
"""Moves that are tried until factors are proper; only then is there a pass over the rows."""


@dataclass(frozen=True)
class Relaxed(Batch):
    """Batch ascent for mixtures of many components, each of which goes beyond its update by itself.

    Attributes
    ----------
    moves
        What is remembered at first: nothing. The relaxation is the reach.
    """

    moves: Memory | None = field(default=Memory(relaxation=_REACH), repr=False)

    @property
    def batch_moves(self) -> None:
        """None: these are not the moves that several starts make side by side."""
        return None

    def step(self, state: BatchState) -> BatchState:
        """Return the state after each global was updated in turn or moved further, and the local factors in a pass."""
        after = checked(state, self._advanced)
        return replaced(state, status=Status.COLLAPSED) if after is None else iterated(state, after)

    def _advanced(self, state: BatchState) -> BatchState:
        """Return the state after an iteration, which raises the objective by no less than the updates of globals do."""
        memory = state.memory
        if memory is None:
            return after_pass(state)
        try:
            after = updated_globals(state)
        except ImproperError:
            return replaced(after_pass(state), memory=self.moves)
        place, update = place_in(state), place_in(after)
        if place is None or update is None or after.problem is not state.problem:
            return replaced(after_pass(state, after), memory=self.moves)
        move = Move(update.natural - place.natural, update.expected - place.expected)
        found, reach = _further(state, after, memory, place, move)
        seen = replaced(memory, place=place, move=move, relaxation=reach, has_moved=False)
        if found is None:
            return replaced(after_pass(state, after), memory=seen)
        if not is_worth_it(found, state, after, seen):
            return replaced(after_pass(state, after), memory=replaced(seen, relaxation=reach / _SHORTER))
        longer = min(GROWTH * reach, _LONGEST_REACH)
        seen = replaced(seen, relaxation=longer, has_moved=True)
        return replaced(watched(found, after, state.objective, slack_of(state)), memory=seen)


def _further(
    state: BatchState, after: BatchState, memory: Memory, place: Place, move: Move
) -> tuple[BatchState | None, float]:
    """Return the state beyond the updated globals, None if no component goes further; and the reach that it has."""
    owners, rows = owners_of(state), _rows_of(state)
    way = np.maximum(np.bincount(owners, move.natural * move.expected, len(rows)), _NO_WAY)
    factors, reach = step_lengths(memory, place, move, owners, len(rows)), memory.relaxation
    for _ in range(_ATTEMPTS):
        own = np.clip(np.sqrt(reach * rows / way), 1.0, factors)
        if own.max() < _LEAST:
            break
        found = at_natural(after, place.natural + own[owners] * move.natural)
        if found is not None:
            return found, reach
        reach /= _SHORTER
    return None, reach


def step_lengths(memory: Memory, place: Place, move: Move, owners: AnyArray, n: int) -> Array:
    """Return by which factor of its update each of n components goes to the top of a parabola, (n,), 1 at the least.

    Parameters
    ----------
    memory
        The last place, and the move that the update made of it.
    place, move
        The present ones.
    owners
        The component of each natural parameter, (P,).
    """
    if memory.place is None or memory.move is None:
        return np.ones(n)
    way = place.natural - memory.place.natural
    length = np.bincount(owners, way * (place.expected - memory.place.expected), n)
    fall = -np.bincount(owners, way * (move.expected - memory.move.expected), n)
    # where it does not fall there is no top
    is_far = fall * _MOST <= length
    return np.where(is_far, _MOST, np.maximum(length / np.where(is_far, 1.0, fall), 1.0))


def owners_of(state: AscentState) -> AnyArray:
    """Return which component each natural parameter of the globals belongs to, (P,); K if it is not one of K."""
    n = state.problem.factors[0].n_rows
    found = []
    for variable in state.problem.order:
        for array in state.natural[variable]:
            is_apart = array.ndim > 0 and len(array) == n
            found.append(np.repeat(np.arange(n), array.size // n) if is_apart else np.full(array.size, n))
    return np.concatenate(found)


def _rows_of(state: AscentState) -> Array:
    """Return the weight of the rows of each component and of all rows, (K + 1,)."""
    problem, total = state.problem, state.per_row
    counts = _counts(problem, state.arrays)
    return np.append(np.full(problem.factors[0].n_rows, total) if counts is None else counts, total)


def _counts(problem: Problem, arrays: Mapping[Hashable, Array]) -> Array | None:
    """Return the weight of the rows of each component, (K,), None if no factor asks for it."""
    return arrays.get(SumKey((StatisticKey(problem.factors[0].name, "x"),), CONSTANT.key))
