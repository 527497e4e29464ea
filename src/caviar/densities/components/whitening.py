"""Whitening matrices: triangular W with W' W a precision matrix, which turn Mahalanobis distances into plain ones."""

from __future__ import annotations

import numpy as np

from ..._errors import ImproperError
from ..._typing import Array
from ...numerics.linalg import cholesky


def whitening_of_shapes(shapes: Array) -> Array:
    """Return triangular W with (W' W)^-1 equal to each covariance or shape matrix, (..., D, D).

    Examples
    --------
    >>> whitening_of_shapes(np.array([[4.0]]))
    array([[0.5]])
    """
    return inverse_of_triangular(_root(shapes))


def whitening_of_precisions(precisions: Array) -> Array:
    """Return triangular W with W' W equal to each precision matrix, (..., D, D).

    Examples
    --------
    >>> whitening_of_precisions(np.array([[4.0]]))
    array([[2.]])
    """
    return _root(precisions).swapaxes(-1, -2)


def inverse_of_triangular(matrices: Array) -> Array:
    """Return the inverse of each triangular matrix, lower or upper, (..., D, D).

    By substitution, which is accurate for all scales of rows and columns.

    Examples
    --------
    >>> inverse_of_triangular(np.array([[2.0, 0.0], [1.0, 1e-150]]))
    array([[ 5.e-001,  0.e+000],
           [-5.e+149,  1.e+150]])
    """
    if np.triu(matrices, 1).any():
        if np.tril(matrices, -1).any():
            raise ImproperError("a root of a covariance is not triangular: its parameters are not finite")
        return inverse_of_triangular(matrices.swapaxes(-1, -2)).swapaxes(-1, -2)
    result = np.zeros(matrices.shape)
    for i in range(matrices.shape[-1]):
        # the whole stack a row at a time: a call of LAPACK for each small matrix costs a hundred times as much
        above = (matrices[..., i, None, :i] @ result[..., :i, :])[..., 0, :]
        result[..., i, :] = (0.0 - above) / matrices[..., i, i, None]
        result[..., i, i] = 1.0 / matrices[..., i, i]
    return result


def _root(matrices: Array) -> Array:
    """Return lower triangular L with L L' equal to each matrix; rounding that took it off the cone is mended."""
    try:
        return cholesky(matrices)
    except np.linalg.LinAlgError:
        # the directions that rounding decides get the least positive value
        values, vectors = np.linalg.eigh(matrices)
        least = np.finfo(np.float64).eps * np.abs(values).max(axis=-1, keepdims=True)
        upper = np.sqrt(np.maximum(values, least))[..., None] * vectors.swapaxes(-1, -2)
        triangular = np.linalg.qr(upper)[1]
        signs = np.where(np.diagonal(triangular, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
        return (signs[..., None] * triangular).swapaxes(-1, -2)
