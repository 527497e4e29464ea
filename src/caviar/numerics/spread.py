"""Arrays spread over a shape: as they are where they have it, which costs a small model much less than asking NumPy."""

from __future__ import annotations

import numpy as np

from .._typing import Array


def spread(values: Array, shape: tuple[int, ...]) -> Array:
    """Return an array broadcast to a shape, not to be written to.

    Examples
    --------
    >>> spread(np.array([[1.0], [2.0]]), (2, 3))
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    return values if values.shape == shape else np.broadcast_to(values, shape)
