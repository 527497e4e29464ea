r"""Topics with their distributions integrated out: expected counts of the collapsed model, to zero order (CVB0).

The factors are those of the tokens alone, :math:`\gamma_{dvk}`, one for the equal words of a document. Each is updated
given the expected counts of all other tokens (Asuncion, Welling, Smyth and Teh 2009, equation 15):

.. math:: \gamma_{dvk} \propto \frac{(N_{dk}^\neg + \alpha_k)(N_{kv}^\neg + \eta_{kv})}{N_k^\neg + \sum_v \eta_{kv}}

where :math:`\neg` leaves one token out, also where the word is there more than once. The way is one to good topics, and
no bound rises along it: the mean-field bound is that of topics :math:`\mathrm{Dir}(\eta_{kv} + N_{kv})`. So single
precision serves, in 0.6 times the time of double; where it could leave less of a count than nothing, the prior stays.

Learnt concentrations: what expected counts say of the prior of labels that are drawn from proportions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln, xlogy

from ...._extras import can_compile
from ...._typing import AnyArray, Array

_BLOCK_NUMBERS = 1 << 16
"""Numbers (counts above zero x topics) that are updated at once, given the same counts of topics: 256 kB."""

_UPDATES = 3
"""Updates of the tokens of a block before the topics are."""

_UPDATES_IN_TURN = 1
"""The same where tokens are updated one after the other."""

_LEAST, _MOST = 1e-8, 1e8
"""Concentrations that learnt priors stay between."""

_LEARNING_STEPS = 5
"""Steps of the fixed point at a time."""


@dataclass(frozen=True)
class _Block:
    """Documents that are updated at once.

    Attributes
    ----------
    documents, entries
        Where they and their counts lie.
    words, places
        The words that occur, and the place of that of each count.
    ones, ones_weighted
        How much of each count is one token of it, and of one document where that counts less; None where all are 1.
    owners
        The document of each count, from the first of the block.
    starts
        Where the counts of each document begin, from the first of the block, and the last end.
    counts, weighted
        The counts, and the same times the weights of their documents.
    by_document, by_word
        Matrices that sum over the counts of a document, and of a word, these weighted.
    """

    documents: slice
    entries: slice
    words: AnyArray
    places: AnyArray
    ones: AnyArray | None
    ones_weighted: AnyArray | None
    owners: AnyArray
    starts: AnyArray
    counts: AnyArray
    weighted: AnyArray
    by_document: Any
    by_word: Any


class CollapsedTopics:
    r"""Expected counts of topics, which passes over the documents change in place.

    Parameters
    ----------
    counts
        Of words, a sparse array by rows, shape (D, V), without zeros or duplicates.
    weights
        How often each document counts, shape (D,), or None for once.
    doc_topic_prior
        :math:`\alpha`, shape (K,).
    topic_word_prior
        :math:`\eta`, of a shape that broadcasts to (K, V).
    responsibilities
        The probabilities that tokens begin with, shape (counts above zero, K), rows of sum one; not changed.

    Attributes
    ----------
    prior, word_prior
        :math:`\alpha`, shape (K,), and :math:`\eta`, words first, shape (V, K).
    responsibilities
        :math:`\gamma`, shape (counts above zero, K).
    of_documents, of_words, of_topics
        :math:`N_{dk}`, shape (D, K); :math:`N_{kv}`, words first, shape (V, K); :math:`N_k`, shape (K,). The last two
        count documents by their weights.
    """

    def __init__(
        self,
        counts: Any,
        weights: Array | None,
        doc_topic_prior: Array,
        topic_word_prior: Array,
        responsibilities: AnyArray,
    ) -> None:
        self.counts, self.prior = counts, np.array(doc_topic_prior, dtype=float)
        n_topics = len(self.prior)
        self.word_prior = np.broadcast_to(topic_word_prior, (n_topics, counts.shape[1])).T
        self._ones = np.ones(n_topics, dtype=np.float32)
        self._weights = np.ones(counts.shape[0]) if weights is None else weights
        self._blocks = list(_blocks(counts, self._weights, n_topics))
        self.responsibilities = np.array(responsibilities, dtype=np.float32)
        self.of_documents = np.zeros((counts.shape[0], n_topics))
        self.of_words = np.zeros((counts.shape[1], n_topics), dtype=np.float32)
        for block in self._blocks:
            self._add(block, self.responsibilities[block.entries])
        self.of_topics = self.of_words.sum(axis=0)

    def _add(self, block: _Block, change: AnyArray) -> None:
        self.of_documents[block.documents] += block.by_document @ change
        self.of_words[block.words] += block.by_word @ change

    def sweep(self) -> float:
        """Update the tokens of every document; return the share of them that changed topics, from 0 to 1.

        The tokens of a block are updated several times before the topics are.
        """
        moved = self._moved_by_loops() if can_compile() else self._moved_by_arrays()
        return moved / max(2 * self.of_topics.sum(), np.finfo(float).tiny)

    def _moved_by_loops(self) -> float:
        """Update the tokens of every document in compiled loops; return by how much counts moved."""
        from .compiled import update_block

        is_even = bool(np.ptp(self.word_prior, axis=0).max() == 0)
        word_prior = np.ascontiguousarray(self.word_prior[:1] if is_even else self.word_prior, np.float32)
        prior, totals = self.prior.astype(np.float32), self.word_prior.sum(axis=0).astype(np.float32)
        least = np.array([prior.min(), word_prior.min(), totals.min()])
        moved = 0.0
        for block in self._blocks:
            all_ones = np.ones(len(block.counts), np.float32)
            documents = self.of_documents[block.documents].astype(np.float32)
            moved += update_block(
                block.starts,
                block.words,
                block.places,
                block.counts,
                block.weighted,
                all_ones if block.ones is None else block.ones,
                all_ones if block.ones_weighted is None else block.ones_weighted,
                prior,
                word_prior,
                totals,
                least,
                _UPDATES_IN_TURN,
                self.responsibilities[block.entries],
                documents,
                self.of_words,
                self.of_topics,
            )
            self.of_documents[block.documents] = documents
        return moved

    def _moved_by_arrays(self) -> float:
        """Update the tokens of every document; return by how much counts moved."""
        moved = 0.0
        least, is_even = np.float32(self.word_prior.min()), bool(np.ptp(self.word_prior) == 0)
        totals = self.word_prior.sum(axis=0)
        least_total = np.float32(totals.min())
        for block in self._blocks:
            before = self.responsibilities[block.entries]
            own = before if block.ones_weighted is None else before * block.ones_weighted[:, None]
            of_words = np.take(self.of_words, block.words, axis=0)
            prior = (
                np.float32(self.word_prior[0, 0])
                if is_even
                else self.word_prior[block.words].astype(np.float32)
            )
            words = np.take(of_words + prior, block.places, axis=0)
            words -= own
            np.maximum(words, least, out=words)
            all_words = (self.of_topics + totals).astype(np.float32) - own
            words /= np.maximum(all_words, least_total, out=all_words)
            now, documents = self._updated(block, before, words)
            change = np.subtract(now, before, out=words)
            before[:] = now
            sums = block.by_word @ change
            of_words += sums
            self.of_words[block.words] = np.maximum(of_words, 0, out=of_words)
            self.of_topics += np.ones(len(sums), dtype=np.float32) @ sums
            self.of_documents[block.documents] = documents
            moved += float((np.abs(sums, out=sums) @ self._ones).sum())
        return moved

    def _updated(self, block: _Block, before: AnyArray, words: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return responsibilities after updates given the factors of the words, and the counts of the documents."""
        now, prior, least = before, self.prior.astype(np.float32), np.float32(self.prior.min())
        documents = self.of_documents[block.documents].astype(np.float32)
        for _ in range(_UPDATES):
            then = np.take(documents + prior, block.owners, axis=0)
            then -= now if block.ones is None else now * block.ones[:, None]
            np.maximum(then, least, out=then)
            then *= words
            then *= np.reciprocal(then @ self._ones)[:, None]
            now, documents = then, block.by_document @ then
        return now, documents

    def bound(self) -> float:
        r"""Return about what the collapsed bound is: the log joint probability at the expected counts, and the entropy.

        .. math:: \sum_d \log\frac{\Gamma(\sum_k \alpha_k)}{\Gamma(\sum_k \alpha_k + n_d)}
                  \prod_k \frac{\Gamma(\alpha_k + N_{dk})}{\Gamma(\alpha_k)} + \dots
                  - \sum_{dvk} n_{dv} \gamma_{dvk} \log\gamma_{dvk}

        No bound of anything, since a log Gamma function of a mean is below the mean of one; but among fits of the same
        model the higher one is the better.
        """
        of_documents = self._weights @ _log_shares(self.prior, self.of_documents)
        of_topics = _log_shares(self.word_prior.T, self.of_words.T).sum()
        entropy = 0.0
        for block in self._blocks:
            own = self.responsibilities[block.entries]
            each = xlogy(own, own).sum(axis=1, dtype=float)
            entropy -= float((block.by_word @ each).sum())
        return float(of_documents + of_topics + entropy)

    def learn(self, *, of_documents: bool, of_words: bool) -> None:
        r"""Update the priors by steps of Minka's fixed point, with expected counts in the place of counts.

        Parameters
        ----------
        of_documents
            Whether :math:`\alpha` is updated, each entry by itself.
        of_words
            Whether :math:`\eta` is, a number for all topics and words.
        """
        if not self.of_topics.any():
            return
        met_in_documents, met_in_words = self._probabilities_of_meeting()
        if of_documents:
            weights, lengths = self._weights, self.of_documents.sum(axis=1)
            slopes = ExpectedSlopes(self.of_documents, met_in_documents, weights)
            for _ in range(_LEARNING_STEPS):
                total = self.prior.sum()
                spent = weights @ (digamma(total + lengths) - digamma(total))
                self.prior = np.clip(self.prior * slopes.at(self.prior) / spent, _LEAST, _MOST)
        if of_words:
            n_words, n_topics = self.word_prior.shape
            slopes, eta = ExpectedSlopes(self.of_words, met_in_words, np.ones(n_words)), self.word_prior[0, 0]
            for _ in range(_LEARNING_STEPS):
                spent = n_words * (digamma(n_words * eta + self.of_topics) - digamma(n_words * eta)).sum()
                eta = np.clip(eta * slopes.at(np.full(n_topics, eta)).sum() / spent, _LEAST, _MOST)
            self.word_prior = np.broadcast_to(eta, self.word_prior.shape)

    def _probabilities_of_meeting(self) -> tuple[Array, Array]:
        """Return the probabilities that a document, and a word, has any token of a topic: (D, K) and (V, K)."""
        if can_compile():
            from .compiled import multiply_none

            documents, words = np.ones(self.of_documents.shape), np.ones(self.of_words.shape)
            for block in self._blocks:
                multiply_none(
                    block.starts,
                    block.words[block.places],
                    block.counts,
                    block.weighted,
                    self.responsibilities[block.entries],
                    documents[block.documents],
                    words,
                )
            return 1 - documents, 1 - words
        documents, words = np.zeros_like(self.of_documents), np.zeros(self.of_words.shape)
        for block in self._blocks:
            logs = np.log1p(-np.minimum(self.responsibilities[block.entries], 1 - 1e-16, dtype=float))
            documents[block.documents] += block.by_document @ logs
            words[block.words] += block.by_word @ logs
        return -np.expm1(documents), -np.expm1(words)


def _log_shares(prior: Array, counts: AnyArray) -> Array:
    """Return log probabilities of the labels behind counts (..., K), in their order, under a Dirichlet prior."""
    total = prior.sum(axis=-1)
    own = (gammaln(prior + counts) - gammaln(prior)).sum(axis=-1)
    return own + gammaln(total) - gammaln(total + counts.sum(axis=-1))


def _blocks(counts: Any, weights: Array, n_topics: int) -> Iterator[_Block]:
    """Yield the documents in runs of about the same number of counts above zero."""
    most, starts = max(_BLOCK_NUMBERS // n_topics, 1), counts.indptr
    first = 0
    while first < counts.shape[0]:
        last = max(int(np.searchsorted(starts, starts[first] + most, side="right")) - 1, first + 1)
        a, b = int(starts[first]), int(starts[last])
        owners = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
        words, places = np.unique(counts.indices[a:b], return_inverse=True)
        # of one type, whichever the matrix has: loops are compiled for each type that comes
        words, own_starts = words.astype(np.intp), (starts[first : last + 1] - a).astype(np.intp)
        own, each = counts.data[a:b].astype(np.float32), np.arange(b - a)
        weight, ones = weights[first:last].astype(np.float32)[owners], np.minimum(own, 1.0)
        weighted = ones * np.minimum(weight, 1.0)
        yield _Block(
            slice(first, last),
            slice(a, b),
            words,
            places,
            None if (ones == 1.0).all() else ones,
            None if (weighted == 1.0).all() else weighted,
            owners,
            own_starts,
            own,
            own * weight,
            csr_array((own, (owners, each)), shape=(last - first, b - a)),
            csr_array((own * weight, (places, each)), shape=(len(words), b - a)),
        )
        first = last


_RARE = 1e-3
"""Probability that a count is above zero, below which the count is 0 or 1."""


class ExpectedSlopes:
    r"""What is expected of :math:`\psi(a_k + N) - \psi(a_k)`, summed over rows of counts, of any concentrations a.

    A count N of tokens whose probabilities are :math:`\gamma_i` is above zero with probability
    :math:`P = 1 - \prod_i (1 - \gamma_i)`, and the expectation is about :math:`P\,(\psi(a + N / P) - \psi(a))`, or
    :math:`P / a` where P is small. Without P, counts near zero would count as ones.

    Source: Teh, Newman and Welling, "A collapsed variational Bayesian inference algorithm for latent Dirichlet
    allocation" (NeurIPS 2006).

    Parameters
    ----------
    counts
        Expected counts, (R, K).
    met
        Probabilities that they are above zero, (R, K).
    weights
        How often each row counts, (R,).
    """

    def __init__(self, counts: AnyArray, met: Array, weights: Array) -> None:
        often = met > _RARE
        rows, self._topics = np.nonzero(often)
        own = met[often]
        self._means, self._weighted = counts[often] / own, own * weights[rows]
        self._rarely = weights @ np.where(often, 0.0, met)

    def at(self, prior: Array) -> Array:
        """Return the sums for concentrations, both of shape (K,)."""
        each = digamma(prior[self._topics] + self._means) - digamma(prior)[self._topics]
        often = np.bincount(self._topics, self._weighted * each, len(prior))
        return np.asarray(often + self._rarely / prior)
