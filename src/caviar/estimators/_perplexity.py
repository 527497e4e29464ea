"""Perplexity during a fit to documents: logged, and a reason to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from ..engine.ascent.driver import Progress

log = logging.getLogger("caviar")


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
        Another progress function, which is told of each pass too; or None.
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
