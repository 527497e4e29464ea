"""Few numbers, spread over a shape or added up: a small model spends more time on asking NumPy than on these."""

from __future__ import annotations

import math

import numpy as np

from .._typing import Array

_FEW = 64
"""Numbers that take less time to copy than to describe."""

_VERY_FEW = 16
"""Numbers that take less time one by one than as an array."""


def spread(values: Array, shape: tuple[int, ...]) -> Array:
    """Return an array broadcast to a shape, not to be written to.

    Examples
    --------
    >>> spread(np.array([[1.0], [2.0]]), (2, 3))
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    if values.shape == shape:
        return values
    if math.prod(shape) > _FEW:
        return np.broadcast_to(values, shape)
    found = np.empty(shape, values.dtype)
    found[...] = values
    return found


def sum_of_sizes(array: Array) -> float:
    """Return the sum of the sizes of numbers.

    Examples
    --------
    >>> sum_of_sizes(np.array([[1.0, -2.0], [0.5, 0.0]]))
    3.5
    """
    return sum(map(abs, array.ravel().tolist())) if array.size <= _VERY_FEW else float(np.abs(array).sum())
