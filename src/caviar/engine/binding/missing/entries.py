"""Vectors with some observed and some missing entries.

The rows of data are sorted by which entries they lack, so that what depends on the pattern of missing entries alone is
made once for all rows that share it; see :mod:`~caviar.engine.rows.terms.missing_patterns` for what that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...._typing import AnyArray, Array
from ....language import MultivariateNormal, Node
from ....lazy.moments import moments

_CONSTANT = 4 * np.finfo(float).eps
"""Standard deviation of a column, in units of its largest value, that is nothing but rounding."""
_LEAST_VARIANCE = 1e-12
"""Variance that a constant column is taken to have at a start, in units of its square."""


@dataclass(frozen=True)
class Gaps:
    """Which entries of a variable's vectors were observed, and the columns of what was.

    Attributes
    ----------
    seen
        Which entries were observed, shape (N, D).
    mean, variance
        Of the observed entries of each column, weighted, shape (D,); 0 and 1 for columns without any.
    """

    seen: AnyArray
    mean: Array
    variance: Array


def observed_entries(node: Node, array: AnyArray) -> AnyArray | None:
    """Return which entries of the vectors (N, D) of a variable were observed; None if none is missing in part."""
    if not isinstance(node, MultivariateNormal) or array.ndim != 2 or array.dtype.kind != "f":
        return None
    seen = ~np.isnan(array)
    # rows one by one take forty times as long
    return seen if not seen.all() and np.any(seen.any(axis=1) & ~seen.all(axis=1)) else None


def gaps_of(array: AnyArray, seen: AnyArray, weights: Array | None) -> Gaps:
    """Return the gaps of vectors (N, D), and the weighted moments of the entries that were observed."""
    mean, variance = np.zeros(array.shape[1]), np.ones(array.shape[1])
    for column, own in enumerate(seen.T):
        weight = None if weights is None else weights[own]
        if not (own if weight is None else weight).any():
            continue
        found = moments(array[own, column], weight)
        # what is too large for a square is refused with the frame
        with np.errstate(over="ignore"):
            mean[column] = found.mean
            varies = found.spread > _CONSTANT * found.largest
            variance[column] = found.spread**2 if varies else _LEAST_VARIANCE * found.largest**2 or 1.0
    return Gaps(seen, mean, variance)


def with_column_means(array: AnyArray, gaps: Gaps) -> AnyArray:
    """Return vectors with the mean of its column in the place of each missing entry."""
    return np.where(gaps.seen, array, gaps.mean.astype(array.dtype))


def order_of_patterns(seen: Sequence[AnyArray]) -> AnyArray:
    """Return the order of rows that brings the same missing entries together, (N, D) each, complete rows first.

    Rows that lack equally many entries of the first array come together; rows of one pattern keep their order.
    """
    keys: list[AnyArray] = []
    for entries in seen:
        gone = ~entries
        keys += [gone.sum(axis=1, dtype=np.uint32), *np.packbits(gone, axis=1).T]
    return np.lexsort(keys[::-1])
