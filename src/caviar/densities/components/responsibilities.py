"""Responsibilities of the components for rows whose entries were all observed."""

from __future__ import annotations

import numpy as np

from ..._typing import Array
from .component import Components


def joint_log_densities(mixture: Components, X: Array) -> Array:
    """Return :math:`log w_k f_k` of rows, (B, D) -> (K, B)."""
    with np.errstate(divide="ignore"):
        return np.log(mixture.weights)[:, None] + mixture.component_log_densities(X)


def log_sum(joint: Array) -> Array:
    """Return the log of the sum of components, (K, B) -> (B,), from the log of each.

    Examples
    --------
    >>> (log_sum(np.array([[-1.0, -np.inf, -2000.0]] * 2)) - np.log(2)).tolist()
    [-1.0, -inf, -2000.0]
    """
    top = joint.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(joint - top).sum(axis=0)) + top


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
