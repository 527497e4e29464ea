r"""Documents given topics: coordinate ascent between q(theta_d) and q(z_dn), a few documents at a time.

With :math:`\theta_{dk} = \exp\langle\log\theta_{dk}\rangle` and :math:`\beta_{kv} = \exp\langle\log\beta_{kv}\rangle`
the optimal factors of the tokens are :math:`r_{dvk} = \theta_{dk}\beta_{kv} / Z_{dv}`,
:math:`Z_{dv} = \sum_k \theta_{dk}\beta_{kv}`, and all that is needed of them follows from the Z of the words that occur
(Hoffman, Blei and Bach 2010):

.. math::
    \alpha_{dk} = \alpha_k + \theta_{dk} \sum_v \frac{n_{dv}}{Z_{dv}} \beta_{kv}, \qquad
    \sum_d n_{dv} r_{dvk} = \beta_{kv} \sum_d \frac{n_{dv}}{Z_{dv}} \theta_{dk}

Documents of about the same length are put side by side, so many that the words of their topics stay in the cache while
their factors settle. Nothing of documents x vocabulary x topics is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

from ..._typing import AnyArray, Array
from ..design.scratch import Scratch
from .passes.alike import alike_documents

_GROUP_NUMBERS = 1 << 19
"""Numbers (words of documents x topics) that are worked on at once: 4 MB, which a cache holds."""

_SMALLEST = 1e-200
"""Normaliser of a word below which products of exponentials have no digits left, and logarithms are taken."""


@dataclass(frozen=True)
class TopicWords:
    r"""What documents need of the topics.

    Attributes
    ----------
    expected_log
        :math:`\langle\log\beta_{kv}\rangle`, shape (K, V).
    highest
        Its largest value for each word, shape (V,).
    scaled
        ``exp(expected_log - highest)``, words first: shape (V, K), contiguous.
    """

    expected_log: Array
    highest: Array
    scaled: Array

    @classmethod
    def of(cls, expected_log: Array) -> TopicWords:
        """Return what documents need of topics with these expected logarithms, shape (K, V)."""
        highest = expected_log.max(axis=0)
        scaled = np.subtract(expected_log, highest).T.copy()
        np.exp(scaled, out=scaled)
        return cls(expected_log, highest, scaled)


_PLAIN, _LENGTHS = 20, (1.0, 1.4, 2.7, 7.0)
"""Updates before longer ones, and how many times the way of each of these is gone, in turn.

The lengths are those of Chebyshev's iteration for errors of which an update leaves up to nine tenths. If it leaves
0.97, four such updates leave two thirds, and four plain ones nine tenths. The first updates decide between optima, so
they are plain: 1,500 posts with 100 topics settled where they did before, except 3, in 72 updates each in place of 176.
"""


@dataclass(frozen=True)
class Found:
    r"""The factors of a block of documents, the ones of their tokens at their optimum given those of the proportions.

    Attributes
    ----------
    concentration
        :math:`\alpha_{dk}`, shape (B, K).
    theta
        ``exp`` of the expected log proportions over its largest value, shape (B, K).
    ratios
        :math:`n_{dv} / Z_{dv}` of each entry of the counts, Z that of ``theta`` and ``TopicWords.scaled``.
    log_normalisers
        :math:`\sum_v n_{dv} \log Z_{dv}`, with the true Z, shape (B,).
    apart
        :math:`n_{dv} r_{dvk}` of words that were worked on in logarithms, whose ratios are 0: (words, (E, K) numbers,
        documents), or None.
    """

    concentration: Array
    theta: Array
    ratios: Array
    log_normalisers: Array
    apart: tuple[AnyArray, Array, AnyArray] | None


def ascend_documents(
    counts: Any,
    topics: TopicWords,
    prior: Array,
    concentration: Array,
    scratch: Scratch,
    *,
    most: int,
    tol: float,
    stretch: float = 1.0,
) -> Found:
    """Return the factors of documents after coordinate ascent.

    Parameters
    ----------
    counts
        Of words, a sparse array by rows, shape (B, V), without zeros or duplicates.
    topics
        What the documents need of the topics.
    prior
        Concentration of the proportions' prior, shape (K,).
    concentration
        Of the proportions to start from, shape (B, K).
    most
        Updates of the proportions at most; with 0 they stay as they are.
    tol
        An entry of a concentration that changes by less than this, relative to the words of its document, has settled.
    stretch
        How many times the way to the next update is gone. Beyond 1 documents settle in fewer updates, without a bound
        that rises in each; below 2 they settle at the same places.
    """
    n_docs, n_topics = concentration.shape
    lengths = np.diff(counts.indptr)
    found = Found(
        concentration.copy(), np.zeros((n_docs, n_topics)), np.zeros(counts.nnz), np.zeros(n_docs), None
    )
    empty = lengths == 0
    if most:
        found.concentration[empty] = prior
    apart = []
    for docs in alike_documents(lengths, max(_GROUP_NUMBERS // n_topics, 1)):
        group = _Group.of(counts, docs, topics, scratch)
        own = group.settled(prior, found.concentration[docs], most, tol, stretch)
        found.concentration[docs] = own
        apart += group.finish(own, found)
    if apart:
        words, shares, owners = (np.concatenate(parts) for parts in zip(*apart, strict=True))
        found = Found(
            found.concentration, found.theta, found.ratios, found.log_normalisers, (words, shares, owners)
        )
    found.log_normalisers[:] += counts @ topics.highest
    return found


class _Group:
    """A few documents side by side: words and counts padded to a common length with the word 0, zero times."""

    def __init__(
        self,
        docs: AnyArray,
        places: AnyArray,
        inside: AnyArray,
        words: AnyArray,
        counts: Array,
        topics: TopicWords,
    ) -> None:
        self.docs, self.places, self.inside, self.words = docs, places, inside, words
        self.counts, self.topics = counts, topics
        self.scaled: Array = counts

    @classmethod
    def of(cls, counts: Any, docs: AnyArray, topics: TopicWords, scratch: Scratch) -> _Group:
        """Return some documents of a block, with the words of their topics gathered."""
        starts, lengths = counts.indptr[docs], counts.indptr[docs + 1] - counts.indptr[docs]
        offsets = np.arange(lengths.max())
        inside = offsets < lengths[:, None]
        places = np.where(inside, starts[:, None] + offsets, 0)
        words = np.where(inside, counts.indices[places], 0)
        group = cls(docs, places, inside, words, np.where(inside, counts.data[places], 0.0), topics)
        n_topics = topics.scaled.shape[1]
        group.scaled = scratch.array("words of documents", (words.size, n_topics)).reshape(
            *words.shape, n_topics
        )
        np.take(topics.scaled, words, axis=0, out=group.scaled, mode="clip")
        return group

    def settled(
        self, prior: Array, concentration: Array, most: int, tol: float, stretch: float = 1.0
    ) -> Array:
        """Return the concentrations (G, K) of the proportions after updates, each until it has settled.

        A settled document stays while others continue: results do not depend on the other documents of a group.
        """
        close = tol * self.counts.sum(axis=1)
        found, now = concentration.copy(), concentration
        counts, scaled = self.counts, self.scaled
        active, is_open = np.arange(len(found)), np.ones(len(found), dtype=bool)
        for number in range(most):
            after = _updated(now, prior, counts, scaled)
            if after is None:
                found[active[is_open]] = self._settled_in_logs(
                    active[is_open], prior, now[is_open], most, tol
                )
                return found
            if stretch != 1.0 and number < _PLAIN:
                after = np.maximum(now + stretch * (after - now), prior)
            is_moving = np.abs(after - now).max(axis=1) > close[active]
            settled = is_open & ~is_moving
            found[active[settled]] = after[settled]
            length = _LENGTHS[number % len(_LENGTHS)] if number >= _PLAIN else 1.0
            if length != 1.0:
                after = np.maximum(now + length * (after - now), prior)
            now, is_open = after, is_open & is_moving
            n_open = np.count_nonzero(is_open)
            if not n_open:
                return found
            if 2 * n_open <= len(active):
                counts, scaled = counts[is_open], scaled[is_open]
                active, now, is_open = active[is_open], now[is_open], np.ones(n_open, dtype=bool)
        found[active[is_open]] = now[is_open]
        return found

    def _settled_in_logs(
        self, docs: AnyArray, prior: Array, concentration: Array, most: int, tol: float
    ) -> Array:
        """Return the same for documents of the group in which a product of exponentials underflows."""
        counts, words, found = self.counts[docs], self.words[docs], concentration.copy()
        active = np.arange(len(docs))
        for _ in range(most):
            now = found[active]
            shares, _ = self._in_logs(words[active], expected_log_of(now))
            after = prior + np.einsum("dl,dlk->dk", counts[active], shares)
            found[active] = after
            active = active[np.abs(after - now).max(axis=1) > tol * counts[active].sum(axis=1)]
            if not len(active):
                break
        return found

    def _in_logs(self, words: AnyArray, expected_log: Array) -> tuple[Array, Array]:
        """Return the probabilities of the topics of each word, (G, L, K), and the log normalisers (G, L)."""
        log_words = np.moveaxis(self.topics.expected_log[:, words], 0, -1) - self.topics.highest[words, None]
        logits = log_words + expected_log[:, None, :]
        top = logits.max(axis=-1, keepdims=True)
        shares = np.exp(logits - top)
        total = shares.sum(axis=-1, keepdims=True)
        return shares / total, (top + np.log(total))[..., 0]

    def finish(self, concentration: Array, found: Found) -> list[tuple[AnyArray, Array, AnyArray]]:
        """Write what follows from these concentrations; return shares of words that took logarithms."""
        expected_log = expected_log_of(concentration)
        highest = expected_log.max(axis=1)
        theta = np.exp(expected_log - highest[:, None])
        found.theta[self.docs] = theta
        normalisers = np.matmul(self.scaled, theta[:, :, None])[:, :, 0]
        if normalisers.min() > _SMALLEST:
            found.ratios[self.places[self.inside]] = (self.counts / normalisers)[self.inside]
            logs = np.log(normalisers) + highest[:, None]
            found.log_normalisers[self.docs] = np.einsum("dl,dl->d", self.counts, logs)
            return []
        shares, logs = self._in_logs(self.words, expected_log)
        found.log_normalisers[self.docs] = np.einsum("dl,dl->d", self.counts, logs)
        owners = np.broadcast_to(self.docs[:, None], self.words.shape)[self.inside]
        return [(self.words[self.inside], (self.counts[..., None] * shares)[self.inside], owners)]


def _updated(concentration: Array, prior: Array, counts: Array, scaled: Array) -> Array | None:
    """Return the next concentrations (G, K), the tokens at their optimum; None where that takes logarithms."""
    theta = np.exp(digamma(concentration))
    normalisers = np.matmul(scaled, theta[:, :, None])[:, :, 0]
    if not normalisers.min() > _SMALLEST:
        return None
    np.divide(counts, normalisers, out=normalisers)
    after = np.matmul(normalisers[:, None, :], scaled)[:, 0]
    after *= theta
    after += prior
    return after


def expected_log_of(concentration: Array) -> Array:
    """Return the expected log proportions (B, K) of concentrations (B, K)."""
    return digamma(concentration) - digamma(concentration.sum(axis=1, keepdims=True))


def bounds_of_proportions(concentration: Array, prior: Array) -> Array:
    r"""Return what the proportions of each document add to the bound, :math:`-\mathrm{KL}(q(\theta_d) \| p(\theta_d))`.

    Shape (B,), for concentrations of shape (B, K).
    """
    expected_log = expected_log_of(concentration)
    own = gammaln(concentration).sum(axis=1) - gammaln(concentration.sum(axis=1))
    return (
        own
        - (gammaln(prior).sum() - gammaln(prior.sum()))
        + ((prior - concentration) * expected_log).sum(axis=1)
    )
