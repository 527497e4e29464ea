"""Moves: labels near those of a start are tried in the model, and kept if they raise the objective."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from ..._errors import ImproperError
from ..ascent.driver import Settings
from ..ascent.schedule import Beginning
from ..ascent.schedules.batch import Batch, BatchState
from .factors.prior import Start
from .guesses.basis import Basis
from .race import Begun, Race, begun_at

log = logging.getLogger("caviar")

_TRIALS = ((10, 2), (3, 5))
"""For each round of trials, how many of the best go on, and for how many iterations."""

_STRETCH, _MOST_STRETCHES = 6, 10
"""Iterations after which the remaining moves are compared with the start that they must beat, and how often."""

_CATCHES_UP = 20
"""Iterations in which a move must reach that start at its present speed; otherwise it is left out."""

_BETTER = 1e-3
"""Nats for each row by which an end must be higher."""

_CLIMB, _TOL = Batch(), 1e-5

_TO_SETTLE = Settings(max_iter=100, tol=_TOL)


def settled(basis: Basis, begun: Begun) -> tuple[Begun, float]:
    """Return the end of the ascent from a start, and its objective."""
    state = begun.raced or _CLIMB.init(Beginning(*begun.start, basis.row_map))
    reached = Race(basis.row_map, basis.sample, float("inf"), basis.passes).run(state, _TO_SETTLE)
    return (begun, state.elbo) if reached is None else (begun_at(reached, basis.sample), reached.elbo)


def better(basis: Basis, elbo: float, moves: Sequence[Callable[[], Start]]) -> Begun | None:
    """Return the end of the first move that exceeds an objective; None if none does."""
    race = Race(basis.row_map, basis.sample, float("inf"), basis.passes)
    aim = elbo + _BETTER * max(basis.row_map.total_weight, 1.0)
    for state in _trials(race, list(_begun(basis, moves))):
        own: BatchState | None = state
        for _ in range(_MOST_STRETCHES):
            if own is None or own.elbo > aim or not _may_reach(own, aim):
                break
            own = race.run(own, Settings(max_iter=_STRETCH, tol=_TOL))
        if own is not None and own.elbo > aim:
            return begun_at(own, basis.sample)
    return None


def _begun(basis: Basis, moves: Sequence[Callable[[], Start]]) -> Iterator[BatchState]:
    """Yield the start of each move."""
    for start in moves:
        try:
            yield _CLIMB.init(Beginning(*start(), basis.row_map))
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
