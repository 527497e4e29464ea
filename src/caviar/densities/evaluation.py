"""Log densities and responsibilities of many rows, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

from .._typing import AnyArray, Array
from .components import Components
from .rows import blocks, patterns

__all__ = ["joint_log_densities", "log_densities", "normalised", "shares"]


def log_densities(mixture: Components, X: AnyArray) -> Array:
    """Return the log density of the observed entries of rows, (N, D) -> (N,)."""
    result = np.zeros(len(X))
    for part, rows, block in _observed_parts(mixture, X):
        values = logsumexp(joint_log_densities(part, block), axis=0)
        result[rows] = np.where(np.isnan(block).all(axis=1), 0.0, values)
    return result


def shares(mixture: Components, X: AnyArray) -> Array:
    """Return the responsibilities of rows, (N, D) -> (N, K)."""
    result = np.tile(mixture.weights / mixture.weights.sum(), (len(X), 1))
    for part, rows, block in _observed_parts(mixture, X):
        result[rows] = normalised(part, block, joint_log_densities(part, block)).T
    return result


def joint_log_densities(mixture: Components, X: Array) -> Array:
    """Return :math:`log w_k f_k` of rows, (B, D) -> (K, B)."""
    with np.errstate(divide="ignore"):
        return np.log(mixture.weights)[:, None] + mixture.component_log_densities(X)


def normalised(mixture: Components, X: Array, joint: Array) -> Array:
    """Return the responsibilities, (K, B), of rows with these joint log densities."""
    top = joint.max(axis=0)
    lost = np.isneginf(top)
    result = np.exp(joint - np.where(lost, 0.0, top))
    if lost.any():
        # all densities are below the range of logarithms: the limit is the nearest component
        distances = np.where(mixture.weights[:, None] > 0, mixture.distances(X[lost]), np.inf)
        nearest = distances == distances.min(axis=0)
        result[:, lost] = np.where(nearest, mixture.weights[:, None], 0.0)
    return result / result.sum(axis=0)


def _observed_parts(mixture: Components, X: AnyArray) -> Iterator[tuple[Components, AnyArray, Array]]:
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
