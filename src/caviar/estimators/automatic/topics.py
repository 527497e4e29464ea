"""Moves of topics: merges, deletions and splits, each kept only where the ELBO of all documents rises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ..._typing import AnyArray, Array
from ...engine.ascent.status import Status
from ...families import Dirichlet
from ...models import latent_dirichlet_allocation
from ...posterior.posterior import Posterior
from .move import Groups, Move

_FIRST = 10
"""Passes after which a move is judged; it goes on once where it may yet catch up."""

_PATIENCE = 30
"""Passes that a move is given to catch up at its present speed."""

_TRIED = 5
"""Moves of each kind that are tried in a round."""

_WORDS = 1.0
"""Words of a topic below which it counts as empty."""

_ENTRIES, _LEAST = 8_192, 1e-3
"""Counts whose shares are found at once, and the least share of a count that is part of a topic."""

_LEAST_WEIGHT = 1e-12
"""A common weight that a topic may begin from."""

_PART_PASSES = 20
"""Passes of the two topics that the words of one are divided by."""


@dataclass
class TopicMoves:
    """Documents, their topics so far, and how a fit goes on from others.

    Attributes
    ----------
    counts
        Of words, documents x words.
    weights
        Of documents, or None.
    prior
        Concentration of the words of a topic, (V,).
    fit
        Where topics begin, by name, and the most passes -> the posterior where these lead.
    posterior
        The best so far.
    slack
        Nats that count as none.
    generator
        Of the starts of splits.
    tell
        Called with each move.
    moves
        Those tried, in their order.
    """

    counts: csr_array
    weights: Array | None
    prior: Array
    fit: Callable[[Mapping[str, Any], int | None], Posterior]
    posterior: Posterior
    slack: float
    generator: np.random.Generator
    tell: Callable[[Move], None]
    moves: list[Move] = field(default_factory=list)

    def made(self, rounds: int) -> Posterior:
        """Return the best posterior after at most so many rounds of moves, settled and in order of size."""
        try:
            for _ in range(rounds):
                if not self._round():
                    break
            self._put_in_order()
        except KeyboardInterrupt:
            self.posterior.status = Status.INTERRUPTED
        return self.posterior

    def _round(self) -> bool:
        """Try moves of each kind; return whether any was accepted."""
        accepted = [self._try(*own) for kind in (_merges, _deletions, _splits) for own in kind(self)]
        if any(accepted):
            self._settle(self.posterior["topics"].concentration, self._shares)
        return any(accepted)

    def _put_in_order(self) -> None:
        """Number the topics by their words; kept unless the ELBO falls."""
        order = np.argsort(-np.round(self.sizes, 6), kind="stable")
        if np.any(np.diff(order) < 0):
            self._settle(self.posterior["topics"].concentration[order], self._shares[order])

    @property
    def sizes(self) -> Array:
        """Words of each topic, (K,)."""
        return (self.posterior["topics"].concentration - self.prior).sum(axis=1)

    @property
    def alive(self) -> AnyArray:
        """Topics that have words, the largest first."""
        order = np.argsort(-self.sizes, kind="stable")
        return order[self.sizes[order] > _WORDS]

    @property
    def _shares(self) -> Array:
        return _shares_of(self.posterior)

    def _try(self, kind: str, group: Groups, topics: Array, shares: Array) -> bool:
        """Fit the topics after a move; keep them if the ELBO is higher."""
        before = self.posterior.elbo
        after = self.fit({"topics": Dirichlet(topics), "weights": shares}, _FIRST)
        speed = after.elbo_trace[-1] - after.elbo_trace[-2] if len(after.elbo_trace) > 1 else 0.0
        if before - _PATIENCE * speed < after.elbo <= before + self.slack:
            after = self.fit({"topics": after["topics"], "weights": _shares_of(after)}, _FIRST + _PATIENCE)
        accepted = bool(after.elbo > before + self.slack)
        if accepted:
            self.posterior = after
        move = Move(kind, group, before, after.elbo, len(self.alive), accepted)
        self.moves.append(move)
        self.tell(move)
        if after.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return accepted

    def _settle(self, topics: Array, shares: Array) -> None:
        after = self.fit({"topics": Dirichlet(topics), "weights": shares}, None)
        if after.elbo >= self.posterior.elbo - self.slack:
            self.posterior = after
        if after.status is Status.INTERRUPTED:
            raise KeyboardInterrupt


def _shares_of(posterior: Posterior) -> Array:
    """Return the expected common weights; those that are nothing to double precision are hardly anything."""
    mean = np.maximum(posterior["weights"].mean, _LEAST_WEIGHT)
    return mean / mean.sum()


_Start = tuple[str, Groups, Array, Array]
"""Kind of a move, the topics that it takes, and where topics and their shares begin."""


def _merges(state: TopicMoves) -> Iterator[_Start]:
    """Yield topics with the two that are most alike as one."""
    means = state.posterior["topics"].mean
    unit = means / np.sqrt((means**2).sum(axis=1, keepdims=True))
    pairs = _pairs(unit @ unit.T, state.alive)
    for k, other in pairs[:_TRIED]:
        if not np.isin([k, other], state.alive).all():
            continue
        topics, shares = state.posterior["topics"].concentration.copy(), state._shares.copy()
        topics[k] += topics[other] - state.prior
        topics[other] = state.prior
        yield "merge", ((int(k), int(other)),), topics, _moved(shares, other, k, 0.99)


def _pairs(likeness: Array, alive: AnyArray) -> Sequence[tuple[int, int]]:
    """Return pairs of topics with words, the most alike first."""
    rows, columns = np.triu_indices(len(alive), 1)
    order = np.argsort(-likeness[alive[rows], alive[columns]], kind="stable")
    return [(int(alive[rows[i]]), int(alive[columns[i]])) for i in order]


def _deletions(state: TopicMoves) -> Iterator[_Start]:
    """Yield topics without one of the smallest."""
    for k in state.alive[::-1][:_TRIED]:
        if len(state.alive) < 3 or k not in state.alive:
            return
        topics, shares = state.posterior["topics"].concentration.copy(), state._shares.copy()
        topics[k] = state.prior
        yield "delete", ((int(k),),), topics, _moved(shares, k, state.alive[0], 0.99)


def _splits(state: TopicMoves) -> Iterator[_Start]:
    """Yield topics with one of the largest divided: its own words, in two topics, of which one takes an empty place."""
    for k in state.alive[:_TRIED]:
        empty = np.setdiff1d(np.arange(len(state.sizes)), state.alive)
        if not len(empty) or k not in state.alive:
            return
        parts = _divided(state, int(k))
        topics, shares = state.posterior["topics"].concentration.copy(), state._shares.copy()
        topics[k], topics[empty[0]] = parts
        part = (parts[1] - state.prior).sum() / (parts - state.prior).sum()
        yield "split", ((int(k),),), topics, _moved(shares, k, empty[0], part)


def _moved(shares: Array, source: int, target: int, part: float) -> Array:
    """Return shares with a part of one moved to another."""
    amount = part * shares[source]
    shares[source] -= amount
    shares[target] += amount
    return shares / shares.sum()


def _divided(state: TopicMoves, k: int) -> Array:
    """Return the concentrations of two topics of the words that one has, (2, V)."""
    own = state.posterior.local({"word": state.counts})["proportions"].expected_statistics[0]
    topics = state.posterior["topics"].expected_statistics[0]
    cells = state.counts.tocoo()
    shares = np.empty(len(cells.data))
    for start in range(0, len(shares), _ENTRIES):
        some = slice(start, start + _ENTRIES)
        logits = own[cells.row[some]] + topics[:, cells.col[some]].T
        logits = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares[some] = logits[:, k] / logits.sum(axis=1)
    kept = cells.data * shares > _LEAST
    places = cells.row[kept], cells.col[kept]
    part = csr_array(((cells.data * shares)[kept], places), shape=state.counts.shape)
    model = latent_dirichlet_allocation(
        2, len(state.prior), concentration=0.5, word_concentration=state.prior
    )
    found = model.fit(
        {"word": part}, seed=state.generator, max_iter=_PART_PASSES, sample_weight=state.weights
    )
    return found["topics"].concentration
