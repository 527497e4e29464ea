"""Numbers where a model needs vectors or matrices of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["as_column", "as_matrix", "as_vector"]


def as_vector(value: ArrayLike, size: int) -> ArrayLike:
    """Return a number as a vector of ``size`` of them, anything else as it is.

    Examples
    --------
    >>> as_vector(2.0, 3)
    array([2., 2., 2.])
    """
    return np.full(size, value) if np.ndim(value) == 0 else value


def as_column(value: ArrayLike) -> ArrayLike:
    """Return numbers, one for each component, as a column (K, 1): the same for all features; a number as it is.

    Examples
    --------
    >>> as_column([1.0, 2.0]).shape
    (2, 1)
    """
    return np.asarray(value)[:, np.newaxis] if np.ndim(value) == 1 else value


def as_matrix(value: ArrayLike, size: int) -> ArrayLike:
    """Return a number as that multiple of the identity, anything else as it is.

    Examples
    --------
    >>> as_matrix(2.0, 2)
    array([[2., 0.],
           [0., 2.]])
    """
    return np.multiply(value, np.eye(size)) if np.ndim(value) == 0 else value
