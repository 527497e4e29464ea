"""Moves of topics: merges, deletions and splits, each kept only where the ELBO of all documents rises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

from ..._typing import AnyArray, Array
from ...engine.ascent.status import Status
from ...families import Dirichlet
from ...models import latent_dirichlet_allocation
from ...posterior.posterior import Posterior
from .move import Groups, Move, Patience, Until
from .pace import Pace

PATIENCE = Patience(least=3, ahead=30, slow=1e-3)
"""Beside the best topics so far."""

_MOST_PASSES = 40
"""Passes of a move."""

_TRIED = 5
"""Moves of each kind that are tried in a round."""

_SAME = 0.05
"""Share of its words by which a topic may have changed and still be the same."""

_PARTED = 12
"""Topics that are parted in a round, of which the best are tried as splits."""

_WORDS = 1.0
"""Words of a topic below which it counts as empty."""

_ENTRIES, _LEAST = 8_192, 1e-3
"""Counts whose shares are found at once, and the least share of a count that is part of a topic."""

_LEAST_WEIGHT = 1e-12
"""A common weight that a topic may begin from."""

_NEXT = 0.9
"""Common weight of an empty topic, as a multiple of the one before; together they have that of one document.

Of 90 documents with 3 topics, a fit with 50 ended after 4 passes at -12,468; with 1, equal weights, at -12,496. With
0.75 it ended higher, at -12,450, but the last weights were too small for 24 documents.
"""

_SPARE = 3
"""Empty topics beside which moves are tried: splits fill them."""

_FALLS = 3
"""Numbers of topics in a row, each without a higher ELBO, after which larger ones are not fitted."""

AFTER_INTERRUPTION = 1
"""Passes of the fit with all topics that ends an interrupted search: weights that are stated have no finite bound."""

_PART_PASSES = 20
"""Passes of the two topics that the words of one are divided by."""


@dataclass
class TopicMoves:
    """Documents, their topics, and how to continue a fit from other topics.

    Moves are made among the topics that have words and a few empty ones: the fewer there are, the faster is a pass.

    Attributes
    ----------
    counts
        Of words, documents x words.
    weights
        Of documents, or None.
    prior
        Concentration of the words of a topic, (V,).
    fit
        How many topics, where they begin, by name, the most passes, and whether to end by what is told of each pass ->
        the posterior where these lead.
    most
        Topics at most, in which the last fit is.
    posterior
        The best so far.
    slack
        Nats that count as none.
    generator
        Of the starts of splits.
    tell
        Called with each move.
    pace
        Told of each step.
    moves
        Those tried, in their order.
    """

    counts: csr_array
    weights: Array | None
    prior: Array
    fit: Callable[[int, Mapping[str, Any], int | None, Until | None], Posterior]
    most: int
    posterior: Posterior
    slack: float
    generator: np.random.Generator
    tell: Callable[[Move], object]
    pace: Pace
    moves: list[Move] = field(default_factory=list)
    _refused: list[tuple[str, Array]] = field(default_factory=list)
    _parted: list[tuple[Array, tuple[Array, float]]] = field(default_factory=list)

    def made(self, rounds: int) -> Posterior:
        """Return the best posterior after a limited number of rounds of moves, settled and in order of size."""
        try:
            for _ in range(rounds if self.posterior.status is not Status.INTERRUPTED else 0):
                self.pace.sweep()
                self.pace.phase("settle", 1)
                self._settle(min(len(self.alive) + _SPARE, self.most))
                if not self._round():
                    break
        except KeyboardInterrupt:
            self.posterior.status = Status.INTERRUPTED
        return self._whole()

    def _round(self) -> bool:
        """Try moves of each kind; return whether any was accepted."""
        accepted = [self._tried(kind) for kind in (_merges, _deletions, _splits)]
        return any(accepted)

    def _tried(self, kind: Callable[[TopicMoves], Iterator[_Start]]) -> bool:
        """Try moves of a kind, after each accepted one those of the topics then; return whether any was accepted."""
        left, before = _TRIED, len(self.moves)
        self.pace.phase(kind.__name__, _TRIED)
        while left > 0:
            for own in islice(kind(self), left):
                left -= 1
                is_accepted = not self._was_refused(*own[:2]) and self._try(*own)
                self.pace.step()
                if is_accepted:
                    break
            else:
                break
        return any(move.accepted for move in self.moves[before:])

    def _was_refused(self, kind: str, group: Groups) -> bool:
        """Whether the same move of topics with nearly the same words was refused before."""
        own = self._words[list(group[0])]
        return any(known == kind and _are_same(words, own) for known, words in self._refused)

    def parted(self, k: int) -> tuple[Array, float]:
        """Return what :func:`_divided` says of a topic, or said of one with nearly the same words."""
        own = self._words[k]
        for words, found in self._parted:
            if _are_same(words, own):
                return found
        self._parted.append((own, _divided(self, k)))
        return self._parted[-1][1]

    @property
    def _words(self) -> Array:
        """Words that each topic has, (K, V)."""
        return self.posterior["topics"].concentration - self.prior

    @property
    def sizes(self) -> Array:
        """Words of each topic, (K,)."""
        return self._words.sum(axis=1)

    @property
    def alive(self) -> AnyArray:
        """Topics that have words, the largest first."""
        order = np.argsort(-np.round(self.sizes, 6), kind="stable")
        return order[self.sizes[order] > _WORDS]

    @property
    def _shares(self) -> Array:
        return _shares_of(self.posterior)

    def _try(self, kind: str, group: Groups, topics: Array, shares: Array) -> bool:
        """Fit the topics after a move, the largest first; keep them if the ELBO is higher."""
        before, size, words = self.posterior.elbo, len(topics), self._words[list(group[0])]
        order = np.argsort(-np.round((topics - self.prior).sum(axis=1), 6), kind="stable")
        init: dict[str, Any] = {"topics": Dirichlet(topics[order]), "weights": shares[order]}
        until = PATIENCE.until(before + self.slack, before, self.counts.shape[0])
        after = self.fit(size, init, _MOST_PASSES, until)
        accepted = bool(after.elbo > before + self.slack)
        if accepted:
            self.posterior = after
            self.pace.best(len(self.alive), after.elbo)
        elif after.status is not Status.INTERRUPTED:
            self._refused.append((kind, words))
        self.pace.moved()
        move = Move(kind, group, before, after.elbo, len(self.alive), accepted)
        self.moves.append(move)
        self.tell(move)
        if after.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return accepted

    def _settle(self, size: int) -> None:
        """Fit that many topics, the largest of those so far, until they settle."""
        self.posterior = self.fit(size, self._largest(size), None, None)
        if self.posterior.status is Status.INTERRUPTED:
            raise KeyboardInterrupt

    def _largest(self, size: int) -> dict[str, Any]:
        """Return where that many topics begin: the largest so far, and empty ones beyond these."""
        alive = self.alive[:size]
        topics, shares = np.tile(self.prior, (size, 1)), _NEXT ** np.arange(size)
        topics[: len(alive)] = self.posterior["topics"].concentration[alive]
        shares /= max(shares[len(alive) :].sum(), 1.0) * self.counts.shape[0]
        shares[: len(alive)] = self._shares[alive]
        return {"topics": Dirichlet(topics), "weights": shares / shares.sum()}

    def _whole(self) -> Posterior:
        """Return the posterior with all topics; of an interrupted search, without the passes that settle it."""
        is_interrupted = self.posterior.status is Status.INTERRUPTED
        self.pace.sweep()
        passes = AFTER_INTERRUPTION if is_interrupted else None
        found = self.fit(self.most, self._largest(self.most), passes, None)
        if is_interrupted:
            found.status = Status.INTERRUPTED
        return found


def _are_same(before: Array, now: Array) -> bool:
    """Whether topics with these words are nearly the same."""
    return before.shape == now.shape and float(np.abs(before - now).sum()) < _SAME * float(now.sum())


def best_of_numbers(fit: Callable[[int, float], Posterior], most: int, pace: Pace) -> Posterior:
    """Return the topics of highest ELBO among those of growing numbers, where moves begin.

    Parameters
    ----------
    fit
        Number of topics, and the ELBO to exceed -> their posterior, from separate starts.
    most
        Topics at most, at least 2.
    pace
        Told of each number.
    """
    best, falls, numbers = fit(2, -np.inf), 0, list(_numbers(most))
    pace.best(2, best.elbo)
    for done, number in enumerate(numbers):
        pace.alike(min(_FALLS - falls, len(numbers) - done))
        if falls == _FALLS or best.status is Status.INTERRUPTED:
            break
        found = fit(number, best.elbo)
        if found.status is Status.INTERRUPTED:
            best.status = found.status
        elif found.elbo > best.elbo:
            best, falls = found, 0
            pace.best(number, found.elbo)
        else:
            falls += 1
    return best


def _numbers(most: int) -> Iterator[int]:
    """Yield numbers above 2, each by a third to a half larger than the one before: 3, 4, 6, 8, 12 and so on."""
    number = 2
    while number < most:
        number = min(number * 3 // 2 if number & (number - 1) == 0 else number * 4 // 3, most)
        yield number


def _shares_of(posterior: Posterior) -> Array:
    """Return the expected common weights; those that are nothing to double precision are hardly anything."""
    mean = np.maximum(posterior["weights"].mean, _LEAST_WEIGHT)
    return mean / mean.sum()


_Start = tuple[str, Groups, Array, Array]
"""Kind of a move, the topics that it takes, and where topics and their shares begin."""


def _merges(state: TopicMoves) -> Iterator[_Start]:
    """Yield topics with two as one, those first that gain most, or lose least, where each word keeps its topics."""
    for k, other in _pairs(_gains_of_merges(state), state.alive)[:_TRIED]:
        if not np.isin([k, other], state.alive).all():
            continue
        topics, shares = state.posterior["topics"].concentration.copy(), state._shares.copy()
        topics[k] += topics[other] - state.prior
        topics[other] = state.prior
        yield "merge", ((int(k), int(other)),), topics, _moved(shares, other, k, 0.99)


def _gains_of_merges(state: TopicMoves) -> Array:
    """Return by how much the ELBO rises if two topics become one, from sums alone, (K, K).

    Words keep their topics otherwise, and what is lost by telling the two apart is left out: it is the same or less.
    """
    prior, words = state.prior, state._words
    size, base = words.shape[0], _log_beta(prior)
    concentration = state.posterior.local({"word": state.counts})["proportions"].concentration
    own = _log_beta(prior + words)
    gains = np.full((size, size), -np.inf)
    # the prior of a document's proportions, which is what documents without words of a topic have
    least = concentration.min(axis=0)
    weights = np.ones(len(concentration)) if state.weights is None else state.weights
    for k in state.alive:
        both = weights @ gammaln(concentration + concentration[:, [k]])
        apart = weights @ gammaln(concentration)
        empty = gammaln(least + least[k]) - gammaln(least) - gammaln(least[k])
        gains[k] = _log_beta(prior + words + words[k]) + base - own - own[k]
        gains[k] += both - apart - apart[k] - weights.sum() * empty
    return gains


def _log_beta(concentration: Array) -> Array:
    """Return the logarithm of the normaliser of Dirichlet distributions, over the last axis."""
    return gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1))


def _pairs(gains: Array, alive: AnyArray) -> Sequence[tuple[int, int]]:
    """Return pairs of topics with words, those of the largest gain first."""
    rows, columns = np.triu_indices(len(alive), 1)
    order = np.argsort(-gains[alive[rows], alive[columns]], kind="stable")
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
    """Yield topics with one divided: its own words, in two topics, of which one takes an empty place.

    Of the largest those come first of whose words two topics have the highest ELBO beside that of one.
    """
    empty = np.setdiff1d(np.arange(len(state.sizes)), state.alive)
    if not len(empty):
        return
    parted = [(int(k), *state.parted(int(k))) for k in state.alive[:_PARTED]]
    for k, parts, _ in sorted(parted, key=lambda own: -own[2])[:_TRIED]:
        topics, shares = state.posterior["topics"].concentration.copy(), state._shares.copy()
        topics[k], topics[empty[0]] = parts
        part = (parts[1] - state.prior).sum() / (parts - state.prior).sum()
        yield "split", ((k,),), topics, _moved(shares, k, empty[0], part)


def _moved(shares: Array, source: int, target: int, part: float) -> Array:
    """Return shares with a part of one moved to another."""
    amount = part * shares[source]
    shares[source] -= amount
    shares[target] += amount
    return shares / shares.sum()


def _divided(state: TopicMoves, k: int) -> tuple[Array, float]:
    """Return the concentrations of two topics of the words that one has, (2, V), and by how much the ELBO rises."""
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
        {"word": part},
        seed=state.generator,
        max_iter=_PART_PASSES,
        sample_weight=state.weights,
        progress=False,
    )
    kept_of = part if state.weights is None else part * state.weights[:, None]
    one = _log_beta(state.prior + np.asarray(kept_of.sum(axis=0)).ravel()) - _log_beta(state.prior)
    return found["topics"].concentration, float(found.elbo - one)
