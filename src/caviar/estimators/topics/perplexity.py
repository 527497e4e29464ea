"""Perplexity of documents: during a fit, which it may stop, and of held-out words."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from ..._errors import DataError
from ..._typing import Array
from ...engine.ascent.driver import Progress

log = logging.getLogger("caviar")

_ENTRIES = 8_192
"""Counts above zero whose probabilities are found at once."""


class PerplexityWatch:
    """A progress function that ends a start once its perplexity changes by less than a tolerance.

    Parameters
    ----------
    every
        Passes between two looks at the perplexity.
    tol
        Change between two looks below which the start ends.
    n_words
        Weight of all words that the bound is of.
    then
        Another progress function, also called for each pass; or None.
    """

    def __init__(
        self, every: int, tol: float, n_words: float, then: Callable[[Progress], object] | None = None
    ) -> None:
        self._every, self._tol, self._n_words, self._then = every, tol, n_words, then
        self._last: tuple[int, float] | None = None

    def __call__(self, progress: Progress) -> bool:
        """Return whether the start is to end."""
        if self._then is not None:
            self._then(progress)
        if progress.iteration % self._every:
            return False
        perplexity = float(np.exp(-progress.elbo / self._n_words)) if self._n_words else np.nan
        log.info("iteration %d  perplexity %.4f", progress.iteration, perplexity)
        before, self._last = self._last, (progress.restart, perplexity)
        if before is None or before[0] != progress.restart:
            return False
        return abs(before[1] - perplexity) < self._tol


def perplexity_of(counts: csr_array, proportions: Array, topics: Array) -> float:
    """Return the perplexity of words, from proportions of their documents (D, K) and topics, words first, (V, K)."""
    owners, total = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)), 0.0
    for start in range(0, counts.nnz, _ENTRIES):
        some = slice(start, start + _ENTRIES)
        each = np.einsum("ek,ek->e", proportions[owners[some]], topics[counts.indices[some]])
        total += float(counts.data[some] @ np.log(each))
    return float(np.exp(-total / counts.sum()))


def divided(counts: csr_array, rng: np.random.Generator) -> tuple[csr_array, csr_array]:
    """Return counts of words that are seen and of those held out, each word with probability one half."""
    if (counts.data != np.floor(counts.data)).any():
        raise DataError("only whole numbers of words can be divided at random; give the others as held_out=")
    seen, rest = counts.copy(), counts.copy()
    seen.data = rng.binomial(counts.data.astype(np.int64), 0.5).astype(np.float64)
    rest.data = counts.data - seen.data
    for part in (seen, rest):
        part.eliminate_zeros()
    return seen, rest
