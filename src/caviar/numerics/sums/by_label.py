"""Sums by label: the sum of the entries with each label."""

from __future__ import annotations

import numpy as np

from ..._typing import AnyArray, Array

_SHORT = 512
"""Entries of a row up to which calling NumPy takes longer than adding them: then many rows are added up in one call."""

_TOGETHER = 2**16
"""Entries that are added up in one call."""


def sums_by_label(values: Array, labels: AnyArray, n_labels: int, out: Array | None = None) -> Array:
    """Return the sum of each row of ``values``, (E, C), by the ``labels`` of its entries, (C,): (E, ``n_labels``).

    Entries are added in their order.

    Examples
    --------
    >>> sums_by_label(np.array([[1.0, 2.0, 4.0]]), np.array([1, 0, 1]), 3)
    array([[2., 5., 0.]])
    """
    total = np.empty((len(values), n_labels)) if out is None else out
    n_together = _TOGETHER // len(labels) if 0 < len(labels) <= _SHORT else 1
    if n_together < 2 or len(values) < 2:
        for row, own in zip(total, values, strict=True):
            row[...] = np.bincount(labels, own, minlength=n_labels)
        return total
    own_labels = labels + n_labels * np.arange(min(n_together, len(values)))[:, None]
    for first in range(0, len(values), n_together):
        some = values[first : first + n_together]
        sums = np.bincount(own_labels[: len(some)].ravel(), some.ravel(), len(some) * n_labels)
        total[first : first + n_together] = sums.reshape(len(some), n_labels)
    return total
