"""Rows under a fitted mixture: their components, how certain these are, and which rows are unexpected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array

RATE = 0.01
"""Share of rows of the fitted density itself that lie beyond the threshold of outliers."""

_BLOCK_ROWS = 65_536
_N_DRAWS = 10_000
_MOST_PATTERNS = 64


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """N rows under a mixture.

    Attributes
    ----------
    labels
        Most probable component of each, (N,).
    certainty
        Its probability, (N,).
    scores
        Minus the log density of what was observed of each, (N,), in nats; NaN where nothing was.
    tails
        Share of rows of the fitted density that are less expected than each, (N,); NaN where it was not found out.
    """

    labels: AnyArray
    certainty: Array
    scores: Array
    tails: Array


def judge(estimator: Any, rows: Any) -> JudgedRows:
    """Return what a mixture says of rows, which are read in blocks.

    Parameters
    ----------
    estimator
        A fitted mixture of Gaussians.
    rows
        Shape (N, D); NaN where an entry is missing.
    """
    n_rows = len(rows)
    labels = np.empty(n_rows, dtype=np.int32)
    certainty, scores, tails = np.empty(n_rows), np.empty(n_rows), np.full(n_rows, np.nan)
    reference = _Reference(estimator)
    for start in range(0, n_rows, _BLOCK_ROWS):
        part = slice(start, min(start + _BLOCK_ROWS, n_rows))
        block = np.asarray(rows[part], dtype=np.float64)
        probabilities = estimator.predict_proba(block)
        labels[part] = probabilities.argmax(axis=1)
        certainty[part] = probabilities.max(axis=1)
        scores[part] = -estimator.score_samples(block)
        tails[part] = reference.tails(block, scores[part])
    return JudgedRows(labels, certainty, scores, tails)


class _Reference:
    """Scores of draws from the fitted density, for each pattern of observed columns."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._drawn, _ = estimator.sample(_N_DRAWS, random_state=0)
        self._scores: dict[bytes, Array] = {}

    def tails(self, block: Array, scores: Array) -> Array:
        """Return the share of draws that score higher than each row, (B,), each pattern by itself."""
        missing = np.isnan(block)
        found = np.full(len(block), np.nan)
        patterns, index = np.unique(missing, axis=0, return_inverse=True)
        index = np.ravel(index)
        for number, pattern in enumerate(patterns):
            reference = None if pattern.all() else self._of(pattern)
            if reference is not None:
                own = index == number
                below = np.searchsorted(reference, scores[own], side="right")
                found[own] = 1 - below / (len(reference) + 1)
        return found

    def _of(self, pattern: AnyArray) -> Array | None:
        key = pattern.tobytes()
        if key not in self._scores:
            if len(self._scores) >= _MOST_PATTERNS:
                return None
            drawn = np.where(pattern, np.nan, self._drawn)
            self._scores[key] = np.sort(-self._estimator.score_samples(drawn))
        return self._scores[key]
