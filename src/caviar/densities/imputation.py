"""Missing entries filled in, from their distribution given what was observed of the row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._typing import AnyArray, Array
from .conditioning import Conditionable, ConditionalRows
from .evaluation import shares
from .rows import blocks, patterns


def means(mixture: Conditionable, X: AnyArray) -> Array:
    """Return rows, (N, D), with conditional means in place of NaN."""
    result = np.array(X, dtype=np.float64)
    if mixture.separable and mixture.has_moments(1):
        # columns tell of each other only through the component: no pattern needs work of its own
        for rows in blocks(len(X), mixture.n_components + 3 * mixture.n_features):
            block = result[rows]
            block[...] = np.where(np.isnan(block), shares(mixture, block) @ mixture.locations, block)
        return result
    for absent, rows, given in _conditional_parts(mixture, X, entries_per_row=1):
        result[np.ix_(rows, absent)] = given.means()
    return result


def draws(mixture: Conditionable, X: AnyArray, n_draws: int, rng: np.random.Generator) -> Array:
    """Return rows with draws in place of NaN, (n_draws, N, D)."""
    result = np.repeat(np.asarray(X, dtype=np.float64)[None], n_draws, axis=0)
    for absent, rows, given in _conditional_parts(mixture, X, entries_per_row=n_draws):
        result[np.ix_(np.arange(n_draws), rows, absent)] = given.draws(n_draws, rng)
    return result


def _conditional_parts(
    mixture: Conditionable, X: AnyArray, entries_per_row: int
) -> Iterator[tuple[AnyArray, AnyArray, ConditionalRows]]:
    """Yield columns, the rows where just these are missing, and their distributions."""
    for observed, absent, rows in patterns(np.isnan(X)):
        if not len(absent):
            continue
        regression = mixture.regression(observed, absent)
        entries = (mixture.n_components + entries_per_row) * (len(absent) + 3) + 3 * len(observed)
        for within in blocks(len(rows), entries):
            chosen = rows[within]
            given = regression.at(np.asarray(X[np.ix_(chosen, observed)], dtype=np.float64))
            yield absent, chosen, given
