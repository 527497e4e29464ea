"""Collapsed passes in loops that numba compiles, the extra ``caviar[compiled]``: the same updates as in NumPy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array

numba: Any = import_module("numba")

_ANY_ORDER = {"reassoc", "contract", "nsz"}
"""Sums may be taken in any order, as BLAS does."""

_FEW = 8.0
"""Tokens of a count up to which a power is taken as a product."""

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER, error_model="numpy")
def _shares(
    own: AnyArray,
    one: Any,
    part: Any,
    of_document: AnyArray,
    of_word: AnyArray,
    prior_of_word: AnyArray,
    all_words: AnyArray,
    least: AnyArray,
    out: AnyArray,
) -> Any:
    """Write the next responsibilities of a count, (K,), not of sum one, with one of its tokens left out; return theirs.

    Parameters
    ----------
    own
        The present ones.
    one, part
        How much of the count is one token of it, and of one document where that counts less.
    of_document, of_word, prior_of_word, all_words
        Counts of its document and the prior, of its word, eta of that, and counts of all words and their eta.
    least
        The least of alpha, of eta and of its sums, which stay where single precision leaves less than nothing.
    """
    least_of_document, least_of_word, least_of_all = least[0], least[1], least[2]
    total = _ZERO
    for k in range(len(out)):
        token = part * own[k]
        share = max(of_document[k] - one * own[k], least_of_document)
        share *= max(of_word[k] + prior_of_word[k] - token, least_of_word)
        share /= max(all_words[k] - token, least_of_all)
        out[k] = share
        total += share
    return total


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _settle(
    shares: AnyArray,
    scale: Any,
    count: Any,
    weighted: Any,
    own: AnyArray,
    document: AnyArray,
    change: AnyArray,
) -> None:
    """Overwrite responsibilities by others, and change the counts of their document and word along."""
    for k in range(len(own)):
        now = scale * shares[k]
        moved = now - own[k]
        own[k] = now
        document[k] += count * moved
        change[k] += weighted * moved


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _move(change: AnyArray, of_word: AnyArray, of_topics: AnyArray) -> Any:
    """Add the change of a word's counts, which stay at least nothing; return its size."""
    size = _ZERO
    for k in range(len(change)):
        of_word[k] = max(of_word[k] + change[k], _ZERO)
        of_topics[k] += change[k]
        size += abs(change[k])
    return size


@numba.njit(nogil=True, cache=True)
def _moved(change: AnyArray, words: AnyArray, of_words: AnyArray, of_topics: AnyArray) -> float:
    """Add the changes of words, and those of topics in all; return the size of the former."""
    moved, of_all = 0.0, np.zeros(len(of_topics), np.float32)
    for place in range(len(words)):
        moved += _move(change[place], of_words[words[place]], of_all)
    for k in range(len(of_topics)):
        of_topics[k] += of_all[k]
    return moved


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _count(counts: AnyArray, responsibilities: AnyArray, document: AnyArray) -> None:
    """Write the counts of a document from the responsibilities of its words."""
    for k in range(len(document)):
        document[k] = _ZERO
    for e in range(len(counts)):
        own = responsibilities[e]
        for k in range(len(document)):
            document[k] += counts[e] * own[k]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def update_block(
    starts: AnyArray,
    words: AnyArray,
    places: AnyArray,
    counts: AnyArray,
    weighted: AnyArray,
    ones: AnyArray,
    ones_weighted: AnyArray,
    prior: AnyArray,
    word_prior: AnyArray,
    totals: AnyArray,
    least: AnyArray,
    n_updates: int,
    responsibilities: AnyArray,
    documents: AnyArray,
    of_words: AnyArray,
    of_topics: AnyArray,
) -> float:
    """Update the tokens of a block of documents in place, one after the other, and then the topics.

    Parameters
    ----------
    starts
        Where the counts of each document begin, and the last end, (B + 1,).
    words, places
        The words that occur, and the place of that of each count, (E,).
    counts, weighted
        The counts, and the same times the weights of their documents, (E,).
    ones, ones_weighted
        How much of each count is one token of it, and of one document where that counts less, (E,).
    prior, word_prior, totals
        Alpha, (K,), eta, (V, K) or the same for all words, (1, K), and its sums over words, (K,).
    least
        The least of each of these three.
    responsibilities, documents
        Those of the block, (E, K), and the counts of its documents, (B, K).
    of_words, of_topics
        Counts of all words, (V, K), and their sums, (K,).

    Returns
    -------
    float
        By how much the counts of words moved.
    """
    n_topics, by_word = len(prior), len(word_prior) > 1
    change, shares = np.zeros((len(words), n_topics), np.float32), np.empty(n_topics, np.float32)
    of_document, all_words = np.empty(n_topics, np.float32), of_topics + totals
    for d in range(len(documents)):
        own = slice(starts[d], starts[d + 1])
        for k in range(n_topics):
            of_document[k] = documents[d, k] + prior[k]
        for _ in range(n_updates):
            for e in range(own.start, own.stop):
                word, now = words[places[e]], responsibilities[e]
                eta, of_word = word_prior[word if by_word else 0], of_words[word]
                one, part = ones[e], ones_weighted[e]
                total = _shares(now, one, part, of_document, of_word, eta, all_words, least, shares)
                _settle(shares, _ONE / total, counts[e], weighted[e], now, of_document, change[places[e]])
        # increments leave rounding behind
        _count(counts[own], responsibilities[own], documents[d])
    return _moved(change, words, of_words, of_topics)


@numba.njit(nogil=True, cache=True, fastmath=_ANY_ORDER)
def _times_none(own: AnyArray, count: float, out: Array) -> None:
    """Multiply by the probabilities that none of so many tokens has a topic, (K,)."""
    if count <= _FEW and count == int(count):
        for _ in range(int(count)):
            for k in range(len(out)):
                out[k] *= 1.0 - own[k]
    else:
        for k in range(len(out)):
            out[k] *= (1.0 - own[k]) ** count


@numba.njit(nogil=True, cache=True)
def multiply_none(
    starts: AnyArray,
    words: AnyArray,
    counts: AnyArray,
    weighted: AnyArray,
    responsibilities: AnyArray,
    of_documents: Array,
    of_words: Array,
) -> None:
    """Multiply by the probabilities that a document, (B, K), and a word, (V, K), has no token of a topic.

    The words are those of each count, (E,); see :func:`update_block` for the others.
    """
    for d in range(len(of_documents)):
        for e in range(starts[d], starts[d + 1]):
            _times_none(responsibilities[e], counts[e], of_documents[d])
            _times_none(responsibilities[e], weighted[e], of_words[words[e]])
