"""Clusters of a start named by the labels that are known of some rows."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._typing import AnyArray, Array

__all__ = ["named_by_labels"]


def named_by_labels(clusters: AnyArray, known: AnyArray, weights: Array, n_categories: int) -> AnyArray:
    """Return clusters renamed so that they agree best with the known labels; rows with a known one have it.

    Without this a start may give every cluster the name of another, which coordinate ascent seldom mends.

    Parameters
    ----------
    clusters
        Shape (n,), from 0 to K - 1.
    known
        Known labels, -1 where unknown, shape (n,).
    weights
        Of the rows, shape (n,).

    Examples
    --------
    >>> named_by_labels(np.array([0, 0, 1, 1]), np.array([1, -1, -1, 0]), np.ones(4), 2)
    array([1, 1, 0, 0])
    """
    told = known >= 0
    agreement = np.zeros((n_categories, n_categories))
    np.add.at(agreement, (clusters[told], known[told]), weights[told])
    _, names = linear_sum_assignment(agreement, maximize=True)
    return np.where(told, known, names[clusters])
