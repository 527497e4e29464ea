"""Log densities and responsibilities of many rows, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._typing import AnyArray, Array
from .components.responsibilities import joint_log_densities, log_sum, normalised
from .conditioning import Conditionable
from .rows import blocks, patterns


def log_densities(mixture: Conditionable, X: AnyArray) -> Array:
    """Return the log density of the observed entries of rows, (N, D) -> (N,)."""
    result = np.zeros(len(X))
    for part, rows, block in _observed_parts(mixture, X):
        values = log_sum(joint_log_densities(part, block))
        result[rows] = np.where(np.isnan(block).all(axis=1), 0.0, values)
    return result


def each_log_densities(mixture: Conditionable, X: AnyArray) -> Array:
    """Return the log density of the observed entries of rows under each component, (N, D) -> (N, K)."""
    result = np.zeros((len(X), mixture.n_components))
    for part, rows, block in _observed_parts(mixture, X):
        values = part.component_log_densities(block)
        result[rows] = np.where(np.isnan(block).all(axis=1), 0.0, values).T
    return result


def shares(mixture: Conditionable, X: AnyArray) -> Array:
    """Return the responsibilities of rows, (N, D) -> (N, K)."""
    result = np.tile(mixture.weights / mixture.weights.sum(), (len(X), 1))
    for part, rows, block in _observed_parts(mixture, X):
        result[rows] = normalised(part, block, joint_log_densities(part, block)).T
    return result


def _observed_parts(mixture: Conditionable, X: AnyArray) -> Iterator[tuple[Conditionable, AnyArray, Array]]:
    """Yield distributions, numbers of rows, and what of these was observed, as the distribution takes it."""
    if X.dtype.kind != "f" or mixture.separable or not np.isnan(X).any():
        for rows in blocks(len(X), mixture.n_components + 3 * mixture.n_features):
            yield mixture, np.arange(rows.start, rows.stop), np.asarray(X[rows], dtype=np.float64)
        return
    for observed, _, rows in patterns(np.isnan(X)):
        if not len(observed):
            continue
        part = mixture.select(observed)
        for within in blocks(len(rows), mixture.n_components + 3 * len(observed)):
            chosen = rows[within]
            yield part, chosen, np.asarray(X[np.ix_(chosen, observed)], dtype=np.float64)
