"""Sums by label: the sum of the entries with each label."""

from __future__ import annotations

import numpy as np

from ..._typing import AnyArray, Array


def sums_by_label(values: Array, labels: AnyArray, n_labels: int, out: Array | None = None) -> Array:
    """Return the sum of each row of ``values``, (E, C), by the ``labels`` of its entries, (C,): (E, ``n_labels``).

    Examples
    --------
    >>> sums_by_label(np.array([[1.0, 2.0, 4.0]]), np.array([1, 0, 1]), 3)
    array([[2., 5., 0.]])
    """
    total = np.empty((len(values), n_labels)) if out is None else out
    for row, own in zip(total, values, strict=True):
        row[...] = np.bincount(labels, own, minlength=n_labels)
    return total
