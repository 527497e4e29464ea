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

numba: Any = import_module("numba")

CELL = 16
"""Rows of a cell: four registers of four numbers."""

PADDED = 8
"""Features are padded to a multiple of this by zeros, so that loops over them have no rest."""

_MOST = {"reassoc", "contract", "nsz"}
"""Sums may be taken in any order, as BLAS does."""

_NEARLY_ONE = 1.0 - 1e-12
_SLIGHT = 1e-5
"""Share below which -log(1 - share) is share + share^2 / 2 to the last digit that ranks need."""


@numba.njit(nogil=True, cache=True)
def _gather(given: Array, at: int, pairs: AnyArray, by_feature: Array, by_row: Array) -> None:
    """Write the features of a cell, columns ``at`` to ``at + CELL`` of those given and products of pairs of them.

    Parameters
    ----------
    given
        Shape (G, B).
    pairs
        Two of the given features for each of the others, (F - G, 2).
    by_feature, by_row
        The features in both orders, (F padded, CELL) and (CELL, F padded).
    """
    n, flat = given.shape[0], by_feature.reshape(-1)
    for f in range(n):
        own, into = given[f, at : at + CELL], by_feature[f]
        for v in range(CELL):
            into[v] = own[v]
    for p in range(len(pairs)):
        one, other, into = by_feature[pairs[p, 0]], by_feature[pairs[p, 1]], by_feature[n + p]
        for v in range(CELL):
            into[v] = one[v] * other[v]
    # eight features at a time: row by row, with strides of a cell, took two fifths of the time of a cell
    for eighth in range(by_row.shape[1] // 8):
        some = flat[8 * CELL * eighth : 8 * CELL * (eighth + 1)]
        for v in range(CELL):
            into = by_row[v, 8 * eighth : 8 * (eighth + 1)]
            for f in range(8):
                into[f] = some[CELL * f + v]


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def _naturals(by_feature: Array, members: AnyArray, matrix: Array, natural: Array) -> None:
    """Write the natural parameters of a cell's rows for its members: (M, CELL)."""
    flat = by_feature.reshape(-1)
    for m in range(len(members)):
        own = matrix[members[m]]
        out = natural[m]
        for v in range(CELL):
            out[v] = 0.0
        for eighth in range(len(own) // 8):
            f = 8 * eighth
            a, b, c, d = own[f], own[f + 1], own[f + 2], own[f + 3]
            e, g, h, i = own[f + 4], own[f + 5], own[f + 6], own[f + 7]
            some = flat[CELL * f : CELL * (f + 8)]
            for v in range(CELL):
                out[v] += (
                    a * some[v]
                    + b * some[v + 16]
                    + c * some[v + 32]
                    + d * some[v + 48]
                    + e * some[v + 64]
                    + g * some[v + 80]
                    + h * some[v + 96]
                    + i * some[v + 112]
                )


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def _weights(natural: Array, n: int, top: Array, wholes: Array) -> None:
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
    values, others = natural.reshape(-1)[: n * CELL], wholes.reshape(-1)[: n * CELL]
    exponentials(values, values.view(np.int64), others, others.view(np.int64))


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def _totals(weights: Array, n: int, out: Array) -> None:
    """Write the sums over the first ``n`` members, (CELL,)."""
    for v in range(CELL):
        out[v] = 0.0
    for m in range(n):
        own = weights[m]
        for v in range(CELL):
            out[v] += own[v]


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def _add(by_row: Array, members: AnyArray, weights: Array, scale: Array, sums: Array) -> None:
    """Add the features of a cell's rows, weighted, to the sums of its members, two at a time."""
    for m in range(0, len(members) - 1, 2):
        out, other, own, others = sums[members[m]], sums[members[m + 1]], weights[m], weights[m + 1]
        for quarter in range(CELL // 4):
            h = 4 * quarter
            a, b = own[h] * scale[h], own[h + 1] * scale[h + 1]
            c, d = own[h + 2] * scale[h + 2], own[h + 3] * scale[h + 3]
            e, g = others[h] * scale[h], others[h + 1] * scale[h + 1]
            i, j = others[h + 2] * scale[h + 2], others[h + 3] * scale[h + 3]
            p, q, r, s = by_row[h], by_row[h + 1], by_row[h + 2], by_row[h + 3]
            for f in range(len(p)):
                out[f] += a * p[f] + b * q[f] + c * r[f] + d * s[f]
                other[f] += e * p[f] + g * q[f] + i * r[f] + j * s[f]
    if len(members) % 2:
        out, own = sums[members[-1]], weights[len(members) - 1]
        for h in range(CELL):
            a, p = own[h] * scale[h], by_row[h]
            for f in range(len(p)):
                out[f] += a * p[f]


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
        Features of the cells' rows, (G, C * CELL), and pairs of them that are multiplied, (F - G, 2).
    starts, sizes, members
        The components of each cell.
    counted
        Weights of the rows.
    matrix, sums
        W and the sums, (K, F padded); nothing is added where there are no rows for sums.
    """
    n_padded, most = matrix.shape[1], sizes.max()
    by_feature, by_row = np.zeros((n_padded, CELL)), np.zeros((CELL, n_padded))
    natural, wholes = np.empty((most, CELL)), np.empty((most, CELL))
    top, total = np.empty(CELL), np.empty(CELL)
    for cell in range(len(sizes)):
        size, at = sizes[cell], CELL * cell
        own = members[starts[cell] : starts[cell] + size]
        _gather(given, at, pairs, by_feature, by_row)
        _naturals(by_feature, own, matrix, natural)
        _weights(natural, size, top, wholes)
        _totals(natural, size, total)
        found = 0.0
        for v in range(CELL):
            found += counted[at + v] * (math.log(total[v]) + top[v])
            total[v] = counted[at + v] / total[v]
        log_partitions[cell] = found
        if len(sums):
            _add(by_row, own, natural, total, sums)


@numba.njit(nogil=True, cache=True)
def rank(
    given: Array,
    pairs: AnyArray,
    pools: AnyArray,
    counted: Array,
    matrix: Array,
    sizes: AnyArray,
    ranked: AnyArray,
    losses: Array,
) -> None:
    """Write the components of the pool of each cell by responsibility, (C, P), and what smaller sets lose, (C, S).

    The parameters are those of :func:`add_cells` and of :meth:`Block.ranked`.
    """
    n_padded, size = matrix.shape[1], pools.shape[1]
    by_feature, by_row = np.zeros((n_padded, CELL)), np.zeros((CELL, n_padded))
    natural, wholes = np.empty((size, CELL)), np.empty((size, CELL))
    top, total, left, scores = np.empty(CELL), np.empty(CELL), np.empty(CELL), np.empty(size)
    for cell in range(len(pools)):
        at, own = CELL * cell, pools[cell]
        _gather(given, at, pairs, by_feature, by_row)
        _naturals(by_feature, own, matrix, natural)
        _weights(natural, size, top, wholes)
        _totals(natural, size, total)
        for v in range(CELL):
            left[v] = 0.0
            total[v] = 1.0 / total[v]
        for m in range(size):
            scores[m] = 0.0
            for v in range(CELL):
                natural[m, v] *= total[v]
                scores[m] -= counted[at + v] * natural[m, v]
        order, s = np.argsort(scores, kind="mergesort"), 0
        for m in range(size):
            ranked[cell, m] = own[order[m]]
            for v in range(CELL):
                left[v] += natural[order[m], v]
            if m + 1 == sizes[s]:
                losses[cell, s] = 0.0
                for v in range(CELL):
                    losses[cell, s] -= counted[at + v] * math.log(left[v])
                s += 1


@numba.njit(nogil=True, cache=True)
def _lost(weights: Array, total: Array, counted: Array, at: int) -> float:
    """Return what the log-partition of a cell from row ``at`` on loses without one of its members."""
    lost = 0.0
    for v in range(CELL):
        share = min(weights[v] / total[v], _NEARLY_ONE)
        own = share * (1.0 + 0.5 * share) if share < _SLIGHT else -math.log1p(-share)
        lost += counted[at + v] * own
    return lost


@numba.njit(nogil=True, cache=True)
def _gain(before: Array, after: Array, counted: Array, at: int) -> float:
    """Return by how much the log-partition of a cell from row ``at`` on rises from one total of weights to another."""
    gain = 0.0
    for v in range(CELL):
        if counted[at + v] > 0:
            gain += counted[at + v] * math.log(after[v] / before[v])
    return gain


@numba.njit(nogil=True, cache=True)
def exchange(
    given: Array,
    pairs: AnyArray,
    places: AnyArray,
    found: AnyArray,
    is_new: AnyArray,
    members: AnyArray,
    counted: Array,
    matrix: Array,
) -> None:
    """Exchange members of cells of one size for candidates where that raises the log-partition of the cell.

    Parameters
    ----------
    given, pairs
        Features of the cells' rows, (G, C * CELL), and pairs of them that are multiplied, (F - G, 2).
    places
        Where the members of each cell are, (C, M).
    found, is_new
        Candidates of each cell, and which of them count, (C, X).
    members
        To be overwritten.
    counted
        Weights of the rows.
    matrix
        W, (K, F padded).
    """
    n_padded, (n_cells, size) = matrix.shape[1], places.shape
    most = size + found.shape[1]
    by_feature, by_row = np.zeros((n_padded, CELL)), np.zeros((CELL, n_padded))
    natural, wholes = np.empty((most, CELL)), np.empty((most, CELL))
    top, total, before = np.empty(CELL), np.empty(CELL), np.empty(CELL)
    every, scores = np.empty(most, dtype=np.int64), np.empty(most)
    for cell in range(n_cells):
        at, n = CELL * cell, size
        for m in range(size):
            every[m] = members[places[cell, m]]
        for m in range(found.shape[1]):
            if is_new[cell, m]:
                every[n] = found[cell, m]
                n += 1
        if n == size:
            continue
        _gather(given, at, pairs, by_feature, by_row)
        _naturals(by_feature, every[:n], matrix, natural)
        _weights(natural, n, top, wholes)
        _totals(natural, size, before)
        _totals(natural, n, total)
        for m in range(n):
            scores[m] = -_lost(natural[m], total, counted, at)
        kept = np.argsort(scores[:n], kind="mergesort")[:size]
        for v in range(CELL):
            total[v] = 0.0
        for m in kept:
            for v in range(CELL):
                total[v] += natural[m, v]
        if _gain(before, total, counted, at) >= 0:
            for m in range(size):
                members[places[cell, m]] = every[kept[m]]
