r"""Linear recursions over many rows, :math:`u_t = M_t u_{t-1} + v_t`, without a Python step for each row.

The rows are cut into about :math:`\sqrt N` pieces. First all pieces are computed together, step by step, from a start
of zero, with the product of the matrices of each; then the value at the end of each piece; and last the contribution of
that value to each row of the next piece.
"""

from __future__ import annotations

import math

import numpy as np

from caviar._typing import Array


def linear_recursion(matrices: Array, inputs: Array) -> Array:
    """Return u with u_t = M_t u_(t-1) + v_t and u_0 = v_0, D columns together, (N, K, D).

    Parameters
    ----------
    matrices
        M, (N, K, K); that of the first row is not used. Where M_t is zero, the recursion begins again.
    inputs
        v, (N, K, D).

    Examples
    --------
    >>> linear_recursion(np.full((4, 1, 1), 0.5), np.ones((4, 1, 1))).ravel()
    array([1.   , 1.5  , 1.75 , 1.875])
    """
    n_rows, size, n_columns = inputs.shape
    length = max(1, math.isqrt(n_rows))
    n_pieces = -(-n_rows // length)
    padded = n_pieces * length
    steps = np.zeros((padded, size, size))
    found = np.zeros((padded, size, n_columns))
    steps[1:n_rows], found[:n_rows] = matrices[1:], inputs
    steps = steps.reshape(n_pieces, length, size, size)
    found = found.reshape(n_pieces, length, size, n_columns)
    reach = steps.copy()
    for step in range(1, length):
        found[:, step] += steps[:, step] @ found[:, step - 1]
        reach[:, step] = steps[:, step] @ reach[:, step - 1]
    for piece in range(1, n_pieces):
        found[piece] += reach[piece] @ found[piece - 1, -1]
    return found.reshape(padded, size, n_columns)[:n_rows]


def directions(matrices: Array) -> Array:
    r"""Return the directions u with :math:`u_t \propto M_t u_{t-1}`, largest entry 1, for M that are not negative.

    The first is :math:`M_0 1`; zeros where nothing is left.

    Parameters
    ----------
    matrices
        M, (N, K, K).

    Examples
    --------
    >>> directions(np.array([[[1.0, 0.0], [0.0, 0.5]]] * 3)).round(3)
    array([[1.   , 0.5  ],
           [1.   , 0.25 ],
           [1.   , 0.125]])
    """
    n_rows, size, _ = matrices.shape
    length = max(1, math.isqrt(n_rows))
    n_pieces = -(-n_rows // length)
    reach = np.ones((n_pieces * length, size, size))
    reach[:n_rows] = matrices
    reach = reach.reshape(n_pieces, length, size, size)
    for step in range(length):
        own = reach[:, step] @ reach[:, step - 1] if step else reach[:, step]
        largest = own.max(axis=(1, 2), keepdims=True)
        np.divide(own, largest, out=reach[:, step], where=largest > 0)
    begin = np.ones((n_pieces, size))
    for piece in range(1, n_pieces):
        begin[piece] = _scaled(reach[piece - 1, -1] @ begin[piece - 1])
    found = (reach @ begin[:, None, :, None])[..., 0]
    return _scaled(found).reshape(n_pieces * length, size)[:n_rows]


def _scaled(vectors: Array) -> Array:
    largest = vectors.max(axis=-1, keepdims=True)
    return np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
