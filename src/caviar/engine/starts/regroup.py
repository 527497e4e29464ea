"""Regroup: the winner of the race against itself with clusters merged and split, of many clusters and of chains.

A fit that has two clusters in one place and one cluster in two does not leave it by small steps, and guesses of all
clusters at once are caught in other such places. What tells the states of a chain apart may be in the rows before and
after, so states are merged and split by these as well as by the rows themselves. What labels promise says little: a
split that is right is coarse at first. So many are tried, the better ones for longer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from ..._errors import ImproperError
from ..._typing import Array
from ..ascent.driver import Settings
from ..ascent.schedule import Beginning
from ..ascent.schedules.batch import Batch, BatchState
from .candidates import start_from
from .clustering.partitions import whitened
from .clustering.regrouping import regrouped
from .components.gates import Gate
from .exchange import labels_of
from .guesses.basis import Basis, Guess
from .guesses.neighbours import views
from .race import Begun, Race, begun_at

log = logging.getLogger("caviar")

_FEWEST_STATES, _FEWEST_CLUSTERS = 4, 3
"""States of a chain, and clusters of an ordinary mixture, from which on it is tried: fewer are found without."""

_MOST_COLUMNS = 50
_MOST_NUMBERS = 200_000
"""Rows times columns times states up to which it is tried: of many rows each further start is dear."""

_ROUNDS = 4
"""Times that states are merged and split: the next move may be possible after the first."""

_MOVES_OF_STATES, _MOVES = 6, 20
"""Moves that are tried in each view of the rows: of a chain, which has several views, and of an ordinary mixture."""

_MOST_LOST = 0.1
"""Nats a row, for each cluster beyond the second, that a move may lose by Gaussians with a covariance each: components
may be others, and of many clusters fewer are where they should be."""

_TRIALS = ((6, 3), (2, 6))
"""In each round of trials, how many of the best so far go on, and for how many iterations."""

_STRETCH, _MOST_STRETCHES = 6, 10
"""Iterations after which the last ones are compared with the start that they have to beat, and how often."""

_CATCHES_UP = 10
"""Iterations like the last few in which one has to come to it, or it is left out."""

_BETTER = 1e-3
"""Nats a row by which a move has to lead higher."""

_CLIMB, _TOL = Batch(), 1e-5

_TO_SETTLE = Settings(max_iter=100, tol=_TOL)


def regroup(basis: Basis, begun: Begun) -> Begun:
    """Return where a fit begins, or where one leads with clusters merged and split, if that is higher.

    Parameters
    ----------
    basis
        The model and its sample: a mixture whose components differ in their weights at the most, or a chain of states
        without other labels. Others are left as they are, and likelihoods: a component of few rows may raise one
        without a bound.
    begun
        With global factors that have nearly settled on the sample.

    Notes
    -----
    About 60 passes over the sample a round. It ends with the first round in which no move leads higher.
    """
    if len(basis.gates) != 1 or basis.problem.point or not (basis.has_states or basis.has_components_alike):
        return begun
    (gate,) = basis.gates
    n_moves, fewest = (_MOVES_OF_STATES, _FEWEST_STATES) if basis.has_states else (_MOVES, _FEWEST_CLUSTERS)
    for cloud in basis.clouds(gate)[:1] if gate.size >= fewest else ():
        if cloud.points.shape[1] > _MOST_COLUMNS or cloud.points.size * gate.size > _MOST_NUMBERS:
            continue
        several = views(basis, gate, cloud) if basis.has_states else [cloud.points]
        white = [own for points in several if (own := whitened(points, cloud.weights)).size]
        for _ in range(_ROUNDS):
            # one that has not settled may yet come to more than what would take its place
            begun, elbo = _settled(basis, begun)
            better = _better(basis, elbo, list(_moves(basis, begun, gate, white, cloud.weights, n_moves)))
            if better is None:
                break
            begun = better
    return begun


def _moves(
    basis: Basis, begun: Begun, gate: Gate, several: Sequence[Array], weights: Array, n_moves: int
) -> Iterator[Guess]:
    """Yield labels of where a fit begins with clusters merged and split, so many by each of several sets of points."""
    shape = gate.shape(basis.problem, basis.sample.n_rows)
    labels = labels_of(basis, begun.start)[gate.variable].ravel()
    most_lost = _MOST_LOST * (gate.size - 2)
    for points in several:
        for own in regrouped(
            points, weights, labels, gate.size, basis.rng, most=n_moves, most_lost=most_lost
        ):
            yield {gate.variable: own.reshape(shape)}


def _settled(basis: Basis, begun: Begun) -> tuple[Begun, float]:
    """Return where the ascent from where a fit begins comes to, and its objective there."""
    state = begun.raced or _CLIMB.init(Beginning(*begun.start, basis.row_map))
    reached = Race(basis.row_map, basis.sample, float("inf")).run(state, _TO_SETTLE)
    return (begun, state.elbo) if reached is None else (begun_at(reached, basis.sample), reached.elbo)


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
            return begun_at(own, basis.sample)
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
