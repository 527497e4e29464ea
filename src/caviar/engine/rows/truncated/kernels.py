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
from ....families.compiled_exponentials import exponentials
from .lanes import TOGETHER, backward, forward, multiply, turn

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
    return aligned((most + TOGETHER) * CELL).reshape(most + TOGETHER, CELL)


@numba.njit(nogil=True, cache=True)
def gather(given: Array, cell: int, pairs: AnyArray, by_feature: Array) -> None:
    """Write the features of a cell: those given, and products of pairs of them.

    Parameters
    ----------
    given
        Shape (C, G, CELL).
    pairs
        Two of the given features for each of the others, (F - G, 2).
    by_feature
        The features, (F padded, CELL).
    """
    n = given.shape[1]
    at, features, own = CELL * n * cell, by_feature.reshape(-1), given.reshape(-1)
    for f in range(CELL * n):
        features[f] = own[at + f]
    for p in range(len(pairs)):
        one, other = at + CELL * pairs[p, 0], at + CELL * pairs[p, 1]
        multiply(features, CELL * (n + p), own, one, own, other)


@numba.njit(nogil=True, cache=True)
def _turn(by_feature: Array, by_row: Array) -> None:
    """Write the features of a cell row by row, (CELL, F padded)."""
    n, features, rows = by_row.shape[1], by_feature.reshape(-1), by_row.reshape(-1)
    for f in range(0, n, 8):
        for v in range(0, CELL, 8):
            turn(rows, v * n + f, n, features, CELL * f + v, CELL)


@numba.njit(nogil=True, cache=True)
def naturals(by_feature: Array, members: AnyArray, matrix: Array, natural: Array) -> None:
    """Write the natural parameters of a cell's rows for its members: (M, CELL), and some more rows for no members."""
    n, last = matrix.shape[1], len(members) - 1
    for m in range(0, len(members), TOGETHER):
        a, b = n * members[m], n * members[min(m + 1, last)]
        c, d = n * members[min(m + 2, last)], n * members[min(m + 3, last)]
        features, numbers, out = by_feature.reshape(-1), matrix.reshape(-1), natural.reshape(-1)
        forward(features, n, numbers, a, b, c, d, out, CELL * m)


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def weights(natural: Array, n: int, top: Array) -> None:
    """Overwrite natural parameters of the first ``n`` members by exponentials of those from the largest, ``top``."""
    for v in range(CELL):
        top[v] = natural[0, v]
    for m in range(1, n):
        own = natural[m]
        for v in range(CELL):
            top[v] = max(top[v], own[v])
    for m in range(n):
        own = natural[m]
        for v in range(CELL):
            own[v] -= top[v]
    exponentials(natural.reshape(-1)[: n * CELL])


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def totals(weights: Array, n: int, out: Array) -> None:
    """Write the sums over the first ``n`` members, (CELL,)."""
    for v in range(CELL):
        out[v] = 0.0
    for m in range(n):
        own = weights[m]
        for v in range(CELL):
            out[v] += own[v]


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


@numba.njit(nogil=True, cache=True)
def _add(by_row: Array, members: AnyArray, weights: Array, scale: Array, sums: Array) -> None:
    """Add the features of a cell's rows, weighted, to the sums of its members; the last of the sums are no member's."""
    n, size, nobody = sums.shape[1], len(members), sums.shape[1] * (len(sums) - 1)
    for m in range(size):
        own = weights[m]
        for v in range(CELL):
            share = own[v] * scale[v]
            own[v] = share if share > _NOTHING else 0.0
    for m in range(0, size, TOGETHER):
        a, b = n * members[m], n * members[m + 1] if m + 1 < size else nobody
        c, d = n * members[m + 2] if m + 2 < size else nobody, n * members[m + 3] if m + 3 < size else nobody
        rows, numbers, total = by_row.reshape(-1), weights.reshape(-1), sums.reshape(-1)
        backward(rows, n, numbers, CELL * m, total, a, b, c, d)


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
    n_padded, most = matrix.shape[1], sizes.max()
    by_feature = aligned(n_padded * CELL).reshape(n_padded, CELL)
    by_row = aligned(CELL * n_padded).reshape(CELL, n_padded)
    natural = of_members(most)
    top, total = np.empty(CELL), np.empty(CELL)
    for cell in range(len(sizes)):
        size, at = sizes[cell], CELL * cell
        own = members[starts[cell] : starts[cell] + size]
        gather(given, cell, pairs, by_feature)
        naturals(by_feature, own, matrix, natural)
        weights(natural, size, top)
        totals(natural, size, total)
        found = log_sum(total, counted, at)
        for v in range(CELL):
            found += counted[at + v] * top[v]
            total[v] = counted[at + v] / total[v]
        log_partitions[cell] = found
        if len(sums):
            _turn(by_feature, by_row)
            _add(by_row, own, natural, total, sums)
