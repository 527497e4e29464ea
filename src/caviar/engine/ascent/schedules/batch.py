"""Batch: the globals are updated once a pass over all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...._errors import ImproperError
from ....numerics.records import replaced
from ...local.kept import last_update
from ...rows.row_map import RowMap
from ..degeneracy import checked
from ..plain_states import place_of, plain_place
from ..problem import Problem
from ..schedule import Ascent, Beginning, settled
from ..state import (
    ROUNDING,
    AscentState,
    at_natural,
    begin,
    expected_of,
    extended,
    held_back,
    iterated,
    joined,
    n_natural,
    slack_of,
    update_locals,
    updated_from,
    updated_globals,
    watched,
)
from ..status import Status
from .moves import acceleration
from .moves.acceleration import (
    Memory,
    Place,
    accepted,
    most_of_a_sweep,
    proposal,
    refused,
    seen,
    share_of_secant,
)

_TOO_FAR = 4
"""Pause after a refused secant move from which on a part of the next refused one is tried: pauses double."""


@dataclass(frozen=True, kw_only=True)
class BatchState(AscentState):
    """Where batch ascent is.

    Attributes
    ----------
    memory
        Of the moves beyond the updates; None where the next sweep is a plain one.
    """

    memory: Memory | None = None


@dataclass(frozen=True)
class Batch(Ascent[BatchState]):
    """Update the globals once a pass over all rows: coordinate ascent as in the textbook, and the default.

    Attributes
    ----------
    moves
        What is remembered of the moves beyond the updates at first: nothing. None makes no such moves.
    goes_on
        Whether a fit goes on from where a race of starts has come to, instead of a first pass over the rows.
    """

    moves: Memory | None = field(default=Memory(), repr=False)
    goes_on: bool = field(default=True, repr=False)

    def resolved(self, problem: Problem, n_rows: int, *, accelerate: bool) -> Batch:
        """Return the schedule with moves beyond the updates, or without."""
        return self if accelerate else Batch(None)

    @property
    def batch_moves(self) -> bool | None:
        """Whether globals are moved beyond their updates."""
        return self.moves is not None if self.goes_on else None

    def at(self, place: AscentState) -> BatchState:
        """Return the state at a place."""
        return extended(BatchState, place, memory=self.moves)

    def init(self, beginning: Beginning[BatchState]) -> BatchState:
        """Return the state after a first pass over the rows, or where a race of starts has come to."""
        raced = beginning.raced
        if raced is None or not self.goes_on:
            return self.at(begin(beginning.problem, beginning.q, beginning.rows))
        rows = beginning.rows.at(raced.problem.rows)
        return replaced(raced, rows=rows, memory=None if self.moves is None else raced.memory)

    def step(self, state: BatchState) -> BatchState:
        """Return the state after each global was updated in turn, and the local factors in a pass."""
        after = checked(state, _advanced)
        return replaced(state, status=Status.COLLAPSED) if after is None else iterated(state, after)

    def judged(self, before: BatchState, after: BatchState, tol: float) -> BatchState:
        """Return the state after an iteration, converged only where a plain sweep gains less than the tolerance.

        Moves beyond the updates may gain less than that.
        """
        if np.isnan(after.change):
            # between two objectives of which one at least is not finite nothing has settled
            return after
        if abs(after.change) >= tol:
            return after if after.memory is not None else replaced(after, memory=self.moves)
        if after.memory is not None and after.memory.has_moved:
            rows = after.problem.rows
            n_factors = len(after.problem.order) + len(rows.apart.movable)
            if not rows.maximises or most_of_a_sweep(after.change, n_factors) >= tol:
                return replaced(after, memory=None)
        return settled(after)

    def to_plain(self, state: BatchState) -> dict[str, Any]:
        """Return a state as values that a checkpoint holds."""
        memory = None if state.memory is None else acceleration.to_plain(state.memory)
        return {**plain_place(state), "memory": memory}

    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> BatchState:
        """Return the state from these values."""
        memory = None if document["memory"] is None else acceleration.from_plain(document["memory"])
        return BatchState(**place_of(document, problem, rows), memory=memory)


def _advanced(state: BatchState) -> BatchState:
    """Return the state after an iteration.

    With a memory of the moves before, the globals may go further than to their updates, where that raises the
    objective by more than these do before the pass: so it rises in each step, whatever is proposed.
    """
    if state.memory is None:
        return after_pass(state)
    try:
        after = updated_globals(state)
    except ImproperError:
        return replaced(after_pass(state), memory=Memory())
    further, memory = _further(state, after, state.memory, state.change)
    if further is None:
        return replaced(after_pass(state, after), memory=memory)
    return replaced(watched(further, after, state.objective, slack_of(state)), memory=memory)


def after_pass(state: BatchState, updated: BatchState | None = None) -> BatchState:
    """Return the state with the globals updated, which may have been done, and then the local factors."""
    before, after, half = updated_from(state, updated)
    return held_back(before, after, update_locals(after, half))


def _further(
    state: BatchState, after: BatchState, memory: Memory, change_per_row: float
) -> tuple[BatchState | None, Memory]:
    """Return the state where a move beyond the updated globals ends, None if that is no better; and the memory."""
    place = place_in(state)
    update = None if place is None else place_in(after)
    if place is None or update is None or after.problem is not state.problem:
        return None, Memory()
    if state.problem.rows.apart.movable:
        place, update = _with_locals(state, place, update)
        if memory.place is not None and len(memory.place.natural) != len(place.natural):
            memory = Memory()
    memory, natural = proposal(seen(memory, place, update), change_per_row)
    if natural is None:
        return None, acceleration.updated(memory)
    found = at_natural(after, natural)
    if (
        found is not None
        and memory.is_secant
        and memory.next_pause > _TOO_FAR
        and not found.elbo >= after.elbo
    ):
        # one more whole move that goes too far, but it is a way uphill
        share = share_of_secant(memory, natural, found.elbo - state.elbo)
        found = at_natural(after, place.natural + share * (natural - place.natural))
    if found is None or not is_worth_it(found, state, after, memory):
        return None, refused(memory)
    return found, accepted(memory)


@np.errstate(all="ignore")
def is_worth_it(found: BatchState, before: BatchState, after: BatchState, memory: Memory) -> bool:
    r"""Whether a move ends no lower than the updates of the globals do before the pass.

    The updates gain at most :math:`f'h`, and mostly their objective need not be known; see :func:`gain_of_updates`.
    """
    if after.problem.tells_gains and memory.move is not None:
        gained, rounding = found.elbo - before.elbo, ROUNDING * abs(before.elbo)
        n = n_natural(before.problem, before.natural) if before.problem.rows.apart.movable else None
        if gained >= float(memory.move.natural[:n] @ memory.move.expected[:n]) > rounding:
            return True
        updated = gain_of_updates(before, after, memory)
        if rounding < abs(gained - updated) < np.inf:
            return gained > updated
    return found.elbo >= after.elbo


def gain_of_updates(before: BatchState, after: BatchState, memory: Memory) -> float:
    r"""Return by how much the updates of the globals have raised the objective, from entropies alone.

    An update from :math:`\eta` to :math:`\eta + f`, by which the expected statistics change by h, gains
    :math:`(\eta + f)'h` and the change of the factor's entropy. That is KL(q || q'), less than the divergences of both
    from each other, :math:`f'h`; for a point, which was the mode for :math:`\eta`, it is not more than that either.
    """
    place, move = memory.place, memory.move
    assert place is not None
    assert move is not None
    entropy = after.objective.entropy - before.objective.entropy
    # local factors have not been updated since
    n = n_natural(before.problem, before.natural) if before.problem.rows.apart.movable else None
    return float((place.natural + move.natural)[:n] @ move.expected[:n]) + entropy


def _with_locals(state: BatchState, place: Place, update: Place) -> tuple[Place, Place]:
    """Return both places with the kept local factors, which the last pass over the rows has updated."""
    found = last_update(state.problem.rows.apart.movable, state.warm, state.rows.weights)
    if found is None:
        return place, update
    whole = (
        Place(np.concatenate([own.natural, kept.natural]), np.concatenate([own.expected, kept.expected]))
        for own, kept in zip((place, update), found, strict=True)
    )
    return next(whole), next(whole)


def place_in(state: BatchState) -> Place | None:
    """Return where the global factors of a state are; None if that is not known, or not finite."""
    if not state.natural:
        return None
    natural = joined(state.problem, state.natural)
    expected = expected_of(state.problem, state.natural, state.arrays, len(natural))
    # labels that are ruled out have the natural parameter minus infinity
    is_finite = np.isfinite(natural).all() and np.isfinite(expected).all()
    return Place(natural, expected) if is_finite else None
