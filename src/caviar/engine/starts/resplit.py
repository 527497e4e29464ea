"""Resplit: the winner of the race of a chain's starts against itself with states merged and split.

A chain that has two states in one place and one state in two does not leave it by small steps, and guesses of all
states at once are caught in other such places. What tells states apart may be in the rows before and after, so states
are merged and split by these as well as by the rows themselves. What labels promise says little: a split that is
right is coarse at first. So all of them are tried, the better ones for longer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from ..._errors import ImproperError
from ..ascent.driver import Settings
from ..ascent.schedule import Beginning
from ..ascent.schedules.batch import Batch, BatchState
from .candidates import start_from
from .clustering.partitions import whitened
from .clustering.regrouping import regrouped
from .exchange import labels_of
from .guesses.basis import Basis, Guess
from .guesses.neighbours import views
from .race import Begun, Race

__all__ = ["resplit"]


log = logging.getLogger("caviar")

_FEWEST_STATES = 4
"""States from which on it is tried: fewer are found by the guesses."""

_MOST_COLUMNS = 50
_MOST_NUMBERS = 200_000
"""Rows times columns times states up to which it is tried: of many rows each further start is dear."""

_ROUNDS = 4
"""Times that states are merged and split: the next move may be possible after the first."""

_MOVES = 6
"""Moves that are tried in each view of the rows."""

_TRIALS = ((6, 3), (2, 6))
"""In each round of trials, how many of the best so far go on, and for how many iterations."""

_TO_SETTLE = 100
"""Iterations in which one settles, before it is compared with others."""

_STRETCH, _MOST_STRETCHES = 6, 10
"""Iterations after which the last ones are compared with the start that they have to beat, and how often."""

_CATCHES_UP = 10
"""Iterations like the last few in which one has to come to it, or it is left out."""

_BETTER = 1e-3
"""Nats a row by which a move has to lead higher."""

_CLIMB, _TOL = Batch(), 1e-5


def resplit(basis: Basis, begun: Begun) -> Begun:
    """Return where a fit begins, or where one leads with states merged and split, if that is higher.

    Parameters
    ----------
    basis
        The model and its sample. Models without a chain of states are left as they are, and those with other labels
        beside it, and likelihoods.
    begun
        With global factors that have nearly settled on the sample.

    Notes
    -----
    About 60 passes over the sample a round. It ends with the first round in which no move leads higher.
    """
    if not basis.has_states or len(basis.gates) != 1 or basis.problem.point:
        return begun
    (gate,) = basis.gates
    for cloud in basis.clouds(gate)[:1] if gate.size >= _FEWEST_STATES else ():
        if cloud.points.shape[1] > _MOST_COLUMNS or cloud.points.size * gate.size > _MOST_NUMBERS:
            continue
        shape = gate.shape(basis.problem, basis.sample.n_rows)
        several = [whitened(points, cloud.weights) for points in views(basis, gate, cloud)]
        for _ in range(_ROUNDS):
            # one that has not settled may yet come to more than what would take its place
            begun, elbo = _settled(basis, begun)
            labels = labels_of(basis, begun.start)[gate.variable].ravel()
            moves: list[Guess] = [
                {gate.variable: own.reshape(shape)}
                for white in several
                if white.size
                for own in regrouped(white, cloud.weights, labels, gate.size, basis.rng, most=_MOVES)
            ]
            better = _better(basis, elbo, moves)
            if better is None:
                break
            begun = better
    return begun


def _settled(basis: Basis, begun: Begun) -> tuple[Begun, float]:
    """Return where the ascent from where a fit begins comes to, and its objective there."""
    state = _CLIMB.init(Beginning(*begun.start, basis.row_map))
    reached = Race(basis.row_map, basis.sample, float("inf")).run(
        state, Settings(max_iter=_TO_SETTLE, tol=_TOL)
    )
    if reached is None:
        return begun, state.elbo
    return Begun((reached.problem, dict(reached.q))), reached.elbo


def _better(basis: Basis, elbo: float, moves: Sequence[Guess]) -> Begun | None:
    """Return where the first of some moves leads that gets beyond an objective; None if none does."""
    race = Race(basis.row_map, basis.sample, float("inf"))
    aim = elbo + _BETTER * max(basis.row_map.source.total_weight, 1.0)
    for state in _trials(race, list(_begun(basis, moves))):
        own: BatchState | None = state
        for _ in range(_MOST_STRETCHES):
            if own is None or own.elbo > aim or not _may_reach(own, aim):
                break
            own = race.run(own, Settings(max_iter=_STRETCH, tol=_TOL))
        if own is not None and own.elbo > aim:
            return Begun((own.problem, dict(own.q)))
    return None


def _begun(basis: Basis, moves: Sequence[Guess]) -> Iterator[BatchState]:
    """Yield where each move begins, in which clusters are assigned to states."""
    for guess in moves:
        try:
            yield _CLIMB.init(Beginning(*start_from(basis, guess), basis.row_map))
        except ImproperError as error:
            log.info("start left out: %s", error)


def _trials(race: Race, states: list[BatchState]) -> list[BatchState]:
    """Return the best of some states after a few iterations, best first."""
    for n_left, n_iter in _TRIALS:
        states = sorted(states, key=lambda state: -state.elbo)[:n_left]
        ran = (race.run(state, Settings(max_iter=n_iter, tol=_TOL)) for state in states)
        states = [state for state in ran if state is not None]
    return sorted(states, key=lambda state: -state.elbo)


def _may_reach(state: BatchState, aim: float) -> bool:
    """Whether a state has not settled, and rises fast enough to reach an objective."""
    lately = state.trace[-4:]
    gain = (lately[-1] - lately[0]) / max(len(lately) - 1, 1)
    return state.status is None and aim - state.elbo <= _CATCHES_UP * gain
