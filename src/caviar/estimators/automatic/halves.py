"""Rows cut in two, in ways that k-means would not find: starts of fits with two components."""

from __future__ import annotations

import numpy as np

from ..._typing import AnyArray, Array

_CUTS = 2


def halves(X: AnyArray, weights: Array) -> list[AnyArray]:
    """Return labels 0 and 1 of weighted rows, shape (N,), of several cuts in two.

    Inner rows against outer ones, which separates a narrow component from a wide one about the same place; and the
    two sides of the mean along the principal axes whose kurtosis is smallest, where two clusters show. Columns are
    taken in units of their spread, missing entries at their mean.

    Examples
    --------
    >>> for labels in halves(np.array([[-9.0], [-8.0], [-1.0], [1.0], [8.0], [9.0]]), np.ones(6)):
    ...     print(labels)
    [1 1 0 0 1 1]
    [0 0 0 1 1 1]
    """
    units = _in_units(np.asarray(X, dtype=np.float64), weights)
    distance = np.square(units).sum(axis=1)
    cuts = [distance > np.average(distance, weights=weights)]
    axes = np.linalg.eigh((units * weights[:, None]).T @ units / weights.sum())[1]
    scores = units @ axes
    second, fourth = (np.average(scores**power, axis=0, weights=weights) for power in (2, 4))
    # an axis without spread has no two sides
    kurtosis = np.where(second > 1e-12, fourth / np.maximum(second, 1e-12) ** 2, np.inf)
    cuts += [scores[:, axis] > 0 for axis in np.argsort(kurtosis, kind="stable")[:_CUTS]]
    return [cut.astype(np.int64) for cut in cuts if cut.any() and not cut.all()]


def _in_units(X: Array, weights: Array) -> Array:
    """Return columns in units of their standard deviation, from their mean; 0 where an entry is missing."""
    share = weights[:, None] * ~np.isnan(X)
    total = np.maximum(share.sum(axis=0), np.finfo(float).tiny)
    deviation = X - np.sum(share * np.nan_to_num(X), axis=0) / total
    np.nan_to_num(deviation, copy=False, nan=0.0)
    spread = np.sqrt(np.sum(share * deviation**2, axis=0) / total)
    return deviation / np.where(spread > 0, spread, 1.0)
