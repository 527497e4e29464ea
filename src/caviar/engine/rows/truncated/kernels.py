"""Compiled loops over cells of 16 rows, each with a few components; they need numba, the extra ``caviar[compiled]``.

The rows of a cell are the lanes of all loops that go over components, and features those of the loop that sums: what is
innermost lies side by side in memory. No loop divides its work among threads, so the bits are those of one.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from .lanes import TOGETHER, backward, exponentials, forward, multiply, turn

numba: Any = import_module("numba")

CELL = 16
"""Rows of a cell: four registers of four numbers."""

LINE = 8
"""Numbers of a line of the cache, to a multiple of which features are padded by zeros."""

_MOST = {"reassoc", "contract", "nsz"}
"""Sums may be taken in any order, as BLAS does."""

_NOTHING = 1e-100
"""Share below which a row has none of a component: products with less may be too small for fast arithmetic."""

_FAR_DOWN = 1e-15
"""Number from which to its inverse 16 may be multiplied: 1e-240 is a normal number."""


@numba.njit(nogil=True, cache=True)
def aligned(n: int) -> Array:
    """Return so many zeros in whole lines of the cache: a vector across two of them takes twice as long and more."""
    whole = np.zeros(n + LINE)
    start = (8 * LINE - whole.ctypes.data % (8 * LINE)) // 8 % LINE
    return whole[start : start + n]


@numba.njit(nogil=True, cache=True)
def of_members(most: int) -> Array:
    """Return room for numbers of so many members and the rows of a cell, and for members that there are none of."""
    return aligned((most + TOGETHER) * CELL)


@numba.njit(nogil=True, cache=True, inline="always")
def gather(given: Array, n: int, at: int, pairs: AnyArray, features: Array) -> None:
    """Write the features of a cell: those given, and products of pairs of them.

    Arrays are flat here and below: each view of an array is counted, and a count takes as long as a vector of products.

    Parameters
    ----------
    given, n, at
        The features that are given, (C * n * CELL,), and from where on those of the cell are.
    pairs
        Two of the given features for each of the others, (F - n, 2).
    features
        (F padded * CELL,).
    """
    for f in range(CELL * n):
        features[f] = given[at + f]
    for p in range(len(pairs)):
        one, other = CELL * pairs[p, 0], CELL * pairs[p, 1]
        multiply(features, CELL * (n + p), features, one, features, other)


@numba.njit(nogil=True, cache=True, inline="always")
def _turn(features: Array, n: int, by_row: Array) -> None:
    """Write the n features of a cell row by row, (CELL * n,)."""
    for f in range(0, n, 8):
        for v in range(0, CELL, 8):
            turn(by_row, v * n + f, n, features, CELL * f + v, CELL)


@numba.njit(nogil=True, cache=True, inline="always")
def naturals(
    features: Array, n: int, members: AnyArray, start: int, size: int, matrix: Array, natural: Array
) -> None:
    """Write the natural parameters of a cell's rows for ``size`` members from ``start`` on, (size * CELL,).

    Some more are written, for no members. The matrix is flat, with ``n`` numbers of each component.
    """
    last = start + size - 1
    for m in range(0, size, TOGETHER):
        own = start + m
        a, b = n * members[own], n * members[min(own + 1, last)]
        c, d = n * members[min(own + 2, last)], n * members[min(own + 3, last)]
        forward(features, n, matrix, a, b, c, d, natural, CELL * m)


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def log_sum(values: Array, counted: Array, at: int) -> float:
    """Return the sum of the logarithms of a cell's 16 positive numbers, times the weights of rows from ``at`` on.

    Of rows that weigh one it is the logarithm of their product, where that is far from the ends of what numbers reach.
    """
    least, most, is_plain = values[0], values[0], True
    product = 1.0
    for v in range(CELL):
        least, most = min(least, values[v]), max(most, values[v])
        product *= values[v]
        is_plain &= counted[at + v] == 1.0
    if is_plain and least > _FAR_DOWN and most < 1 / _FAR_DOWN:
        return math.log(product)
    found = 0.0
    for v in range(CELL):
        if counted[at + v] > 0:
            found += counted[at + v] * math.log(values[v])
    return found


@numba.njit(nogil=True, cache=True, inline="always")
def _add(
    by_row: Array,
    n: int,
    members: AnyArray,
    start: int,
    size: int,
    weights: Array,
    scale: Array,
    sums: Array,
    nobody: int,
) -> None:
    """Add the features of a cell's rows, weighted, to the sums of its members; sums from ``nobody`` on are no one's."""
    for m in range(size):
        for v in range(CELL):
            share = weights[CELL * m + v] * scale[v]
            weights[CELL * m + v] = share if share > _NOTHING else 0.0
    for m in range(0, size, TOGETHER):
        own = start + m
        a, b = n * members[own], n * members[own + 1] if m + 1 < size else nobody
        c = n * members[own + 2] if m + 2 < size else nobody
        d = n * members[own + 3] if m + 3 < size else nobody
        backward(by_row, n, weights, CELL * m, sums, a, b, c, d)


@numba.njit(nogil=True, cache=True)
def add_cells(
    given: Array,
    pairs: AnyArray,
    starts: AnyArray,
    sizes: AnyArray,
    members: AnyArray,
    counted: Array,
    matrix: Array,
    sums: Array,
    log_partitions: Array,
) -> None:
    """Add what a run of cells has to sums, and write the log-partition of each.

    Parameters
    ----------
    given, pairs
        Features of the cells' rows, (C, G, CELL), and pairs of them that are multiplied, (F - G, 2).
    starts, sizes, members
        The components of each cell.
    counted
        Weights of the rows.
    matrix, sums
        W, (K, F padded), and the sums, with one row more for nobody; nothing is added where there are no sums.
    """
    n_given, n = given.shape[1], matrix.shape[1]
    features, by_row = aligned(n * CELL), aligned(CELL * n)
    natural, top, total = of_members(sizes.max()), np.empty(CELL), np.empty(CELL)
    flat, rows, added = matrix.reshape(-1), given.reshape(-1), sums.reshape(-1)
    nobody = len(added) - n
    for cell in range(len(sizes)):
        start, size, at = starts[cell], sizes[cell], CELL * cell
        gather(rows, n_given, n_given * at, pairs, features)
        naturals(features, n, members, start, size, flat, natural)
        exponentials(natural, size, top, total)
        found = log_sum(total, counted, at)
        for v in range(CELL):
            found += counted[at + v] * top[v]
            total[v] = counted[at + v] / total[v]
        log_partitions[cell] = found
        if len(added):
            _turn(features, n, by_row)
            _add(by_row, n, members, start, size, natural, total, added, nobody)
