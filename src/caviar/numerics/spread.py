"""Arrays spread over a shape: as they are where they have it, which costs a small model much less than asking NumPy."""

from __future__ import annotations

import math

import numpy as np

from .._typing import Array

_FEW = 64
"""Numbers that take less time to copy than to describe."""


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
