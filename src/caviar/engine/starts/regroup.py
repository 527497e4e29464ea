"""Regroup: the winner of the race against itself with clusters merged and split, of many clusters and of chains.

What tells the states of a chain apart may be in the rows before and after, so states are merged and split by these as
well as by the rows themselves. What labels promise says little: a split that is right is coarse at first. So very many
are improved by Gaussians that are like the model, all at once, and the best of these ends are tried in the model.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array
from ...language import Dirichlet, StickBreaking
from ..ascent.problem import statistics_of
from .candidates import start_from
from .clustering.improving import Likely, probabilities, shares_of
from .clustering.likenesses import nearest
from .clustering.orders import InSequence, Order, Unordered
from .clustering.partitions import whitened
from .clustering.regrouping import regrouped
from .clustering.searching import Effort, End, distinct, improved_ends, is_new, searched
from .components.gates import Gate
from .exchange import labels_of
from .factors.prior import own_natural
from .guesses.assignment import objective
from .guesses.basis import Basis, Guess
from .guesses.from_labels import from_labels
from .guesses.of_states import views
from .guesses.points import Cloud
from .moves import better, settled
from .race import Begun

_T = TypeVar("_T")

log = logging.getLogger("caviar")

_FEWEST_STATES, _FEWEST_CLUSTERS = 4, 3
"""States of a chain, and clusters of an ordinary mixture, from which on it is tried: fewer are found without."""

_MOST_COLUMNS = 50
_MOST_NUMBERS = 200_000
"""Rows times columns times states up to which it is tried: of many rows each further start is dear."""

_ROUNDS = 4
"""Times that ends are tried in the model: the next ones may be possible after the first."""

_OF_STATES, _OF_CLUSTERS = Effort(moves=24, ends=2, steps=3), Effort(moves=30, ends=3, steps=2)
"""How long ends are searched for: of a chain, which has several views of its rows, and of an ordinary mixture."""

_MOST_LOST = 0.1
"""Nats a row, for each cluster beyond the second, that the best moves may lose by Gaussians with a covariance each, or
clusters are so plain that none is tried: components may be others, and of many clusters some are misplaced."""

_SUMMED, _FEWEST_MOVES = 1e6, 8
"""Numbers, rows times clusters times what is summed of a row, that the moves of an end may have together, and moves
that it has in any case."""

_GUESSES, _MOVES, _COMPARED = 4, 8, 8
"""Guesses, and moves, whose evidence is found, and how many of the best of these the likeness is chosen by."""

_CONCENTRATION = 1.0
"""Of the likely model's weights, or of its steps, where they are not a Dirichlet of the model."""

_LIKE = 0.1
"""Nats a row by which the likely model may differ from the model where guesses are ranked by it."""

_ERROR = 0.005
"""Nats a row by which ends may be behind by the likeness, at least, that are tried in the model."""

_RACED = 3
"""Ends of guesses that still race in the model."""

_TRIED = 6
"""Ends that are tried in the model in each round."""

_TRIED_AS_THEY_ARE = 20
"""Moves that are tried in the model besides, of an ordinary mixture."""


@dataclass(frozen=True, eq=False)
class Regrouping:
    """How clusters of one label are merged and split.

    Attributes
    ----------
    basis
        The model and its sample: a mixture whose components differ in their weights at the most, or a chain of states
        without other labels.
    gate
        The label.
    cloud
        Its points.
    views
        Sets of points, whitened, by each of which clusters are merged and split.
    """

    basis: Basis
    gate: Gate
    cloud: Cloud
    views: Sequence[Array]

    def shortlist(self, guesses: Sequence[Guess]) -> list[Guess]:
        """Return the guesses that are worth a race, those without labels among them.

        Of a chain, whose passes are dear, they are where its guesses lead to by what is like the model. They are all of
        them where that differs from the model by more than guesses do, as where states differ in what is known, and
        those of an ordinary mixture.
        """
        known = [guess for guess in guesses if self.gate.variable in guess]
        is_dear = self.basis.has_states and not self.basis.differs(self.gate)
        if not is_dear or len(known) <= _RACED:
            return list(guesses)
        several = [self._labels(guess) for guess in known]
        likeness = self._likeness([*_evenly(several, _GUESSES), *self._moved(several[0])])
        if likeness is None or likeness.error > _LIKE * self._weight:
            return list(guesses)
        ends = improved_ends(likeness.likely, np.stack(several))[:_RACED]
        return [*map(self._guess, ends), *(guess for guess in guesses if self.gate.variable not in guess)]

    def regrouped(self, begun: Begun) -> Begun:
        """Return where a fit begins, or where one leads with clusters merged and split, if that is higher.

        Notes
        -----
        It ends with the first round in which no end leads higher.
        """
        likeness: _Likeness | None = None
        ends: list[End] = []
        tried: list[End] = []
        for _ in range(_ROUNDS):
            # one that has not settled may yet come to more than what would take its place
            begun, elbo = settled(self.basis, begun)
            labels = self._labels(labels_of(self.basis, begun.start))
            if likeness is None:
                moved = self._moved(labels)
                likeness = self._likeness([labels, *moved]) if moved else None
            if likeness is None:
                break
            likely = likeness.likely
            own = improved_ends(likely, labels[None])
            ends = searched(likely, self.views, distinct([*ends, *own], likely), self._effort)
            tried = distinct([*tried, *own], likely)
            least = max((end.bound for end in own), default=np.inf)
            least -= max(likeness.error, _ERROR * self._weight)
            fresh = [end for end in ends if end.bound > least and is_new(end, tried, likely)][:_TRIED]
            if not self.basis.has_states:
                # what is like the model is not the model, and passes of a mixture are cheap
                fresh += [End(own, -np.inf) for own in self._moved(labels, _TRIED_AS_THEY_ARE)]
            moves = [partial(start_from, self.basis, self._guess(end)) for end in fresh]
            found = better(self.basis, elbo, moves)
            if found is None:
                break
            begun, tried = found, [*tried, *fresh]
        return begun

    def _guess(self, end: End) -> Guess:
        shape = self.gate.shape(self.basis.problem, self.basis.sample.n_rows)
        return {self.gate.variable: end.labels.reshape(shape)}

    def _labels(self, guess: Guess) -> AnyArray:
        return guess[self.gate.variable].ravel()

    def _moved(self, labels: AnyArray, most: int = _MOVES) -> list[AnyArray]:
        """Return some of the partitions to which moves lead from one; none where clusters are plain."""
        moved = regrouped(
            self.views[0],
            self.cloud.weights,
            labels,
            self.gate.size,
            most=max(self._effort.moves, most),
            most_lost=_MOST_LOST * (self.gate.size - 2),
        )
        return list(moved[:most] if most > _MOVES else _evenly(moved, most))

    def _likeness(self, several: Sequence[AnyArray]) -> _Likeness | None:
        """Return the likeness whose evidence of some partitions is closest to the model's."""
        basis, gate, cloud = self.basis, self.gate, self.cloud
        shape = gate.shape(basis.problem, basis.sample.n_rows)
        try:
            evidence = np.array(
                [objective(from_labels(basis, {gate.variable: labels.reshape(shape)})) for labels in several]
            )
        except ImproperError as error:
            log.info("no likeness: %s", error)
            return None
        # how well partitions far from every fit are distinguished does not matter
        best = np.argsort(-evidence, kind="stable")[:_COMPARED]
        evidence, shares = evidence[best], shares_of(np.stack(several)[best], gate.size)
        if not np.isfinite(evidence).all():
            return None
        order: Order = Unordered(cloud.weights)
        if gate.chain is not None:
            begins = gate.chain.starts.among(basis.sample.columns, basis.sample.n_rows)
            order = InSequence.of(begins, cloud.weights)
        concentration = _concentration(basis, gate)
        evidence -= probabilities(order.counts(shares.transpose(1, 0, 2)), concentration)[1]
        likeness, points, error = nearest(
            (cloud.points, self.views[0]), cloud.weights, shares, evidence, int(_SUMMED / self._numbers)
        )
        if not np.isfinite(error):
            return None
        return _Likeness(Likely(likeness, order, points, cloud.weights, gate.size, concentration), error)

    @property
    def _effort(self) -> Effort:
        """How long ends are searched for: of a chain in several views of its rows, of many rows by fewer moves."""
        # a covariance each is what most components have at the most
        moves = int(_SUMMED / (self._numbers * (1 + self.cloud.points.shape[1]) ** 2))
        own = _OF_STATES if self.basis.has_states else _OF_CLUSTERS
        return replace(own, moves=min(max(moves, _FEWEST_MOVES), own.moves))

    @property
    def _numbers(self) -> int:
        return len(self.cloud.points) * self.gate.size

    @property
    def _weight(self) -> float:
        return float(self.cloud.weights.sum())


@dataclass(frozen=True, eq=False)
class _Likeness:
    """What is like the model, and the nats by which its evidence of a partition differs from the model's."""

    likely: Likely
    error: float


def regrouping_of(basis: Basis) -> Regrouping | None:
    """Return how clusters are merged and split; None where they are not.

    Of likelihoods they are not: a component of few rows may raise one without a bound.
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
    return Regrouping(basis, gate, cloud, white) if white else None


def _concentration(basis: Basis, gate: Gate) -> float:
    """Return the mean concentration of what the prior of a label is drawn from: of a chain, of its steps."""
    problem, found = basis.problem, _CONCENTRATION
    for slot in gate.variable.slots.values():
        if isinstance(slot.node, Dirichlet) and slot.node in problem.order:
            found = float(np.mean(own_natural(problem, slot.node, statistics_of(problem, basis.q))[0]))
        elif isinstance(slot.node, StickBreaking):
            # most of its pieces have no rows
            found = 1.0 / gate.size
    return found


def _evenly(several: Sequence[_T], most: int) -> Sequence[_T]:
    """Return at most a number of items, evenly spaced from the first one."""
    return several[:: max(-(-len(several) // most), 1)]
