"""Regroup: the winner of the race against itself with clusters merged and split, of many clusters and of chains.

What tells the states of a chain apart may be in the rows before and after, so states are merged and split by these as
well as by the rows themselves. What labels promise says little: a split that is right is coarse at first. So very many
are improved by Gaussians that are like the model, all at once, and the best of these ends are tried in the model.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array
from ..ascent.driver import Settings
from ..ascent.schedule import Beginning
from ..ascent.schedules.batch import Batch, BatchState
from ..local.chain import ChainFactor
from .candidates import start_from
from .clustering.improving import Likely, probabilities, shares_of
from .clustering.likenesses import nearest
from .clustering.orders import InSequence, Order, Unordered
from .clustering.partitions import whitened
from .clustering.regrouping import regrouped
from .clustering.searching import Effort, End, distinct, improved_ends, is_new, searched
from .components.gates import Gate
from .exchange import labels_of
from .guesses.assignment import objective
from .guesses.basis import Basis, Guess
from .guesses.from_labels import from_labels
from .guesses.neighbours import views
from .guesses.points import Cloud
from .race import Begun, Race, begun_at

_T = TypeVar("_T")

log = logging.getLogger("caviar")

_FEWEST_STATES, _FEWEST_CLUSTERS = 4, 3
"""States of a chain, and clusters of an ordinary mixture, from which on it is tried: fewer are found without."""

_MOST_COLUMNS = 50
_MOST_NUMBERS = 200_000
"""Rows times columns times states up to which it is tried: of many rows each further start is dear."""

_ROUNDS = 4
"""Times that ends are tried in the model: the next ones may be possible after the first."""

_OF_STATES, _OF_CLUSTERS = Effort(moves=24, ends=2, steps=2), Effort(moves=40, ends=4, steps=3)
"""How long ends are searched for: of a chain, which has several views of its rows, and of an ordinary mixture."""

_SUMMED = 4e6
"""Numbers, rows times clusters times what is summed of a row, that the moves of an end may have together."""

_COMPARED = 4
"""Guesses, and half of the moves from the first of them, by whose evidence the likely model is chosen."""

_CONCENTRATION = 1.0
"""Of the likely model's weights, or of its steps."""

_LIKE = 0.05
"""Nats a row by which the likely model may differ from the model where guesses are ranked by it."""

_RACED = 3
"""Ends of guesses that still race in the model."""

_TRIED = 6
"""Ends that are tried in the model in each round."""

_TRIALS = ((6, 3), (3, 6))
"""In each round of trials, how many of the best so far go on, and for how many iterations."""

_STRETCH, _MOST_STRETCHES = 6, 10
"""Iterations after which the last ones are compared with the start that they have to beat, and how often."""

_CATCHES_UP = 20
"""Iterations like the last few in which one has to come to it, or it is left out."""

_BETTER = 1e-3
"""Nats a row by which an end has to lead higher."""

_CLIMB, _TOL = Batch(), 1e-5

_TO_SETTLE = Settings(max_iter=100, tol=_TOL)


@dataclass(frozen=True, eq=False)
class Regrouping:
    """What clusters of one label are merged and split with.

    Attributes
    ----------
    basis
        The model and its sample: a mixture whose components differ in their weights at the most, or a chain of states
        without other labels.
    gate
        The label.
    views
        Sets of points, whitened, by each of which clusters are merged and split.
    likely
        What is like the model.
    error
        Nats by which its evidence of a partition differs from the model's.
    """

    basis: Basis
    gate: Gate
    views: Sequence[Array]
    likely: Likely
    error: float

    def shortlist(self, guesses: Sequence[Guess]) -> list[Guess]:
        """Return the guesses that are worth a race: where many lead to by the likely model, and those of other kinds.

        All of them, where the likely model differs from the model by more than guesses do.
        """
        own = [guess for guess in guesses if self.gate.variable in guess]
        others = [guess for guess in guesses if self.gate.variable not in guess]
        ends = improved_ends(self.likely, self._stacked(own))
        if not ends or self.error > _LIKE * self._weight:
            return list(guesses)
        return [*self._guesses(end for end in ends[:_RACED]), *others]

    def regrouped(self, begun: Begun) -> Begun:
        """Return where a fit begins, or where one leads with clusters merged and split, if that is higher.

        Notes
        -----
        It ends with the first round in which no end leads higher.
        """
        ends: list[End] = []
        tried: list[End] = []
        for _ in range(_ROUNDS):
            # one that has not settled may yet come to more than what would take its place
            begun, elbo = _settled(self.basis, begun)
            (own, *_) = improved_ends(self.likely, self._stacked([labels_of(self.basis, begun.start)]))
            tried = distinct([*tried, own], self.likely)
            effort = _OF_STATES if self.basis.has_states else _OF_CLUSTERS
            ends = searched(
                self.likely, self.views, distinct([*ends, own], self.likely), effort, self.basis.rng
            )
            near = [end for end in ends if end.bound > own.bound - self.error]
            fresh = [end for end in near if is_new(end, tried, self.likely)][:_TRIED]
            better = _better(self.basis, elbo, list(self._guesses(fresh)))
            if better is None:
                break
            begun, tried = better, [*tried, *fresh]
        return begun

    def _guesses(self, ends: Iterable[End]) -> Iterator[Guess]:
        shape = self.gate.shape(self.basis.problem, self.basis.sample.n_rows)
        for end in ends:
            yield {self.gate.variable: end.labels.reshape(shape)}

    def _stacked(self, guesses: Sequence[Guess]) -> AnyArray:
        several = [guess[self.gate.variable].ravel() for guess in guesses]
        return np.stack(several) if several else np.empty((0, len(self.likely.points)), dtype=np.int64)

    @property
    def _weight(self) -> float:
        return float(self.likely.weights.sum())


def regrouping_of(basis: Basis, guesses: Sequence[Guess]) -> Regrouping | None:
    """Return what clusters are merged and split with; None where they are not.

    Of likelihoods they are not: a component of few rows may raise one without a bound.

    Parameters
    ----------
    guesses
        The likely model is the one whose evidence of these differs least from the model's.
    """
    if len(basis.gates) != 1 or basis.problem.point or not (basis.has_states or basis.has_components_alike):
        return None
    (gate,) = basis.gates
    clouds = basis.clouds(gate)[:1]
    if not clouds or gate.size < (_FEWEST_STATES if basis.has_states else _FEWEST_CLUSTERS):
        return None
    (cloud,) = clouds
    if cloud.points.shape[1] > _MOST_COLUMNS or cloud.points.size * gate.size > _MOST_NUMBERS:
        return None
    several = views(basis, gate, cloud) if basis.has_states else [cloud.points]
    white = [own for points in several if (own := whitened(points, cloud.weights)).size]
    known = [guess for guess in guesses if gate.variable in guess]
    if not white or not known:
        return None
    likely, error = _likely(basis, gate, cloud, white[0], known)
    return Regrouping(basis, gate, white, likely, error)


def _likely(
    basis: Basis, gate: Gate, cloud: Cloud, white: Array, guesses: Sequence[Guess]
) -> tuple[Likely, float]:
    """Return what is most like the model, and by how much its evidence of guesses differs from the model's."""
    shape = gate.shape(basis.problem, basis.sample.n_rows)
    first = guesses[0][gate.variable].ravel()
    moved = regrouped(white, cloud.weights, first, gate.size, basis.rng, most=gate.size**3, most_lost=np.inf)
    several = [guess[gate.variable].ravel() for guess in evenly(guesses, _COMPARED)]
    labels = np.stack([*several, *evenly(moved, 2 * _COMPARED)])
    of_model = np.array(
        [objective(from_labels(basis, {gate.variable: own.reshape(shape)})) for own in labels]
    )
    # how well those are told apart that no fit comes near does not matter
    best = np.argsort(-of_model, kind="stable")[: 2 * _COMPARED]
    labels, of_model = labels[best], of_model[best]
    order: Order = Unordered(cloud.weights)
    if isinstance(gate.factor, ChainFactor):
        order = InSequence.of(gate.factor.starts.among(basis.sample.columns, basis.sample.n_rows))
    shares = shares_of(labels, gate.size)
    of_model -= probabilities(order.counts(shares.transpose(1, 0, 2)), _CONCENTRATION)[1]
    most_features = int(_SUMMED / (len(cloud.points) * gate.size))
    found = []
    for points in (cloud.points, white):
        likeness, error = nearest(points, cloud.weights, shares, of_model, most_features)
        found.append((Likely(likeness, order, points, cloud.weights, gate.size, _CONCENTRATION), error))
    return min(found, key=lambda one: one[1])


def evenly(several: Sequence[_T], most: int) -> Sequence[_T]:
    """Return at most so many of several things, from the first on."""
    return several[:: max(-(-len(several) // most), 1)]


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
