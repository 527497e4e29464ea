"""Compiled loops over the tokens of a block of documents; they need numba, the extra ``caviar[compiled]``.

They do what :meth:`~.collapsed.CollapsedTopics.sweep` does in NumPy, up to rounding, document by document: all that is
known of the tokens of a document fits into the cache. No loop divides its work among threads.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...._typing import AnyArray

numba: Any = import_module("numba")

_ANY_ORDER = {"reassoc", "contract", "nsz"}
"""Sums may be taken in any order, as BLAS does."""


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _first(
    before: AnyArray,
    tokens: tuple[float, float],
    least: tuple[float, float, float],
    document: AnyArray,
    of_word: AnyArray,
    word_prior: AnyArray,
    totals: AnyArray,
    factors: AnyArray,
    now: AnyArray,
) -> float:
    """Write the factors of a word, (K,), and the first update of its topics, of sum other than one; return the sum.

    Parameters
    ----------
    tokens
        How much of a count is one token, in its document and in all of them.
    """
    total: Any = np.float32(0.0)
    token, weighted = tokens
    of_document, of_words, of_topic = least
    for k in range(len(now)):
        own = before[k]
        word = of_word[k] + word_prior[k] - weighted * own
        word = word if word > of_words else of_words
        topic = totals[k] - weighted * own
        factor = word / (topic if topic > of_topic else of_topic)
        factors[k] = factor
        left = document[k] - token * own
        own = (left if left > of_document else of_document) * factor
        now[k] = own
        total += own
    return total


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _again(document: AnyArray, token: float, least: float, factors: AnyArray, now: AnyArray) -> float:
    """Overwrite the probabilities of a token's topics by their updates, of sum other than one; return the sum."""
    total: Any = np.float32(0.0)
    for k in range(len(now)):
        left = document[k] - token * now[k]
        own = (left if left > least else least) * factors[k]
        now[k] = own
        total += own
    return total


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _counted(now: AnyArray, total: float, count: float, out: AnyArray) -> None:
    """Divide probabilities by their sum, and add them to the counts of a document."""
    scale = np.float32(1.0) / total
    for k in range(len(now)):
        own = now[k] * scale
        now[k] = own
        out[k] += count * own


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _last(
    now: AnyArray,
    total: float,
    counts: tuple[float, float],
    out: AnyArray,
    before: AnyArray,
    change: AnyArray,
) -> None:
    """Divide probabilities by their sum, add them to the counts of a document, and their change to those of a word."""
    scale, (count, weighted) = np.float32(1.0) / total, counts
    for k in range(len(now)):
        own = now[k] * scale
        out[k] += count * own
        change[k] += weighted * (own - before[k])
        before[k] = own


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _take_up(change: AnyArray, of_word: AnyArray, gained: AnyArray) -> float:
    """Add a change to the counts of a word, which stay at 0 at least, and to that of topics; return its size."""
    size: Any = np.float32(0.0)
    for k in range(len(change)):
        own = change[k]
        now = of_word[k] + own
        of_word[k] = now if now > 0 else np.float32(0.0)
        gained[k] += own
        size += abs(own)
    return size


@numba.njit(nogil=True, cache=True)
def _taken_up(changes: AnyArray, words: AnyArray, of_words: AnyArray, of_topics: AnyArray) -> float:
    """Add changes to the counts of words, and of topics; return their size."""
    # each change by itself would be lost in the digits of a total
    moved, gained = 0.0, np.zeros(len(of_topics), np.float32)
    for place in range(len(words)):
        moved += _take_up(changes[place], of_words[words[place]], gained)
    for k in range(len(gained)):
        of_topics[k] += gained[k]
    return moved


@numba.njit(nogil=True, cache=True)
def update_block(
    starts: AnyArray,
    words: AnyArray,
    places: AnyArray,
    counts: AnyArray,
    ones: AnyArray,
    weights: AnyArray,
    of_words: AnyArray,
    of_topics: AnyArray,
    word_prior: AnyArray,
    totals: AnyArray,
    prior: AnyArray,
    least: tuple[float, float, float],
    responsibilities: AnyArray,
    documents: AnyArray,
    n_updates: int,
) -> float:
    """Update the tokens of a block several times, given the counts of topics before; return how many changed topics.

    Those that did count twice, where they leave and where they come to.

    Parameters
    ----------
    starts
        Where the counts of each document begin, and where the last ends, (B + 1,).
    words
        Of the block, (W,).
    places, counts, ones
        The word of each count, as its place among those of the block; the count; and how much of it is one token.
    weights
        How often each document counts, (B,).
    of_words, of_topics
        Expected counts of all words, (V, K), and of topics, (K,); overwritten.
    word_prior
        Of the words of the block, (W, K) or (1, K).
    totals
        Expected counts of topics, their prior included, (K,).
    prior
        Of the documents, (K,).
    least
        Smallest numbers that are left of counts and their prior, in a document, of a word, and of a topic.
    responsibilities
        Overwritten, (counts, K).
    documents
        Expected counts of topics of each document; overwritten, (B, K).
    """
    n_topics, longest = len(prior), np.max(starts[1:] - starts[:-1])
    factors, now = np.empty((longest, n_topics), np.float32), np.empty((longest, n_topics), np.float32)
    changes = np.zeros((len(words), n_topics), np.float32)
    document, one = np.empty(n_topics, np.float32), np.float32(1.0)
    for d in range(len(starts) - 1):
        first, of_document, weight = starts[d], documents[d], weights[d]
        for update in range(n_updates):
            for k in range(n_topics):
                document[k] = of_document[k] + prior[k]
                of_document[k] = 0.0
            for i in range(first, starts[d + 1]):
                own, factor, before = now[i - first], factors[i - first], responsibilities[i]
                place = places[i]
                if update == 0:
                    tokens = ones[i], ones[i] * min(weight, one)
                    of_prior = word_prior[min(place, len(word_prior) - 1)]
                    total = _first(
                        before, tokens, least, document, of_words[words[place]], of_prior, totals, factor, own
                    )
                else:
                    total = _again(document, ones[i], least[0], factor, own)
                if update < n_updates - 1:
                    _counted(own, total, counts[i], of_document)
                else:
                    both = counts[i], counts[i] * weight
                    _last(own, total, both, of_document, before, changes[place])
    return _taken_up(changes, words, of_words, of_topics)
