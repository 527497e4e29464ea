"""Compiled loops that search for components of cells of 16 rows; they need numba, the extra ``caviar[compiled]``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from .kernels import CELL, aligned, gather, log_sum, naturals, of_members
from .lanes import closest, exponentials, tops

numba: Any = import_module("numba")

_MOST = {"reassoc", "contract", "nsz", "nnan"}
"""Sums and maxima may be taken in any order."""

ASKED = 4
"""Of so many rows of a cell one is asked which components of a list suit it: of four cells as many as a cell has."""


@numba.njit(nogil=True, cache=True)
def _asked(given: Array, first: int, shift: int, packed: Array) -> None:
    """Write what every fourth row of four cells has, the rows of a cell four places apart, (G * CELL,)."""
    last = len(given) - 1
    for c in range(ASKED):
        cell = min(first + c, last)
        for g in range(given.shape[1]):
            for r in range(CELL // ASKED):
                packed[CELL * g + ASKED * r + c] = given[cell, g, ASKED * r + shift]


@numba.njit(nogil=True, cache=True)
def _best(scores: Array, candidates: AnyArray, best: Array, own: AnyArray) -> None:
    """Write the candidates with the highest scores, these first, as many as there is room for."""
    n, room = 0, len(best)
    for m in range(len(scores) if room else 0):
        score = scores[m]
        if n == room and score <= best[n - 1]:
            continue
        n = min(n + 1, room)
        place = n - 1
        while place and best[place - 1] < score:
            best[place], own[place] = best[place - 1], own[place - 1]
            place -= 1
        best[place], own[place] = score, candidates[m]


@numba.njit(nogil=True, cache=True)
def _chosen(scores: Array, own: AnyArray) -> None:
    """Write the numbers of the components with the highest scores, in their order; of equal ones the first."""
    room = len(own)
    least = np.partition(scores, len(scores) - room)[len(scores) - room]
    n = 0
    for m in range(len(scores)):
        n += scores[m] > least
    equal, n = room - n, 0
    for m in range(len(scores)):
        is_above = scores[m] > least
        # what is no number counts as equal, so that there are as many as there is room for
        if is_above or (equal > 0 and not scores[m] < least):
            equal -= not is_above
            own[n] = m
            n += 1


@numba.njit(nogil=True, cache=True)
def shortlist(given: Array, pairs: AnyArray, together: int, row: int, matrix: Array, found: AnyArray) -> None:
    """Write the components that come closest to the best one of a row, asked 16 rows of some cells, (G, S).

    Parameters are those of :func:`pool`; ``row`` is the first row of these cells that is asked.
    """
    n_given, n_padded, n = given.shape[1], matrix.shape[1], len(matrix)
    features, flat = aligned(n_padded * CELL), matrix.reshape(-1)
    natural, every, top, scores = of_members(n), np.arange(n), np.empty(CELL), np.empty(n)
    packed = np.empty(n_given * CELL)
    for number in range(len(found)):
        for v in range(CELL):
            place = row + together * v
            cell = min(together * number + place // CELL, len(given) - 1)
            for g in range(n_given):
                packed[CELL * g + v] = given[cell, g, place % CELL]
        gather(packed, n_given, 0, pairs, features)
        naturals(features, n_padded, every, 0, n, flat, natural)
        tops(natural, n, top)
        closest(natural, n, top, scores)
        _chosen(scores, found[number])


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def _scores(natural: Array, n: int, top: Array, beside: float, scores: Array) -> None:
    """Write how close components come to the best one of a row asked, at the row where they come closest, (4, n).

    At rows of the other three cells they are ``beside`` nats further away.
    """
    tops(natural, n, top)
    for m in range(n):
        for c in range(ASKED):
            best = natural[CELL * m + c] - top[c]
            for v in range(ASKED, CELL, ASKED):
                best = max(best, natural[CELL * m + v + c] - top[v + c])
            scores[c, m] = best
        best = scores[0, m]
        for c in range(1, ASKED):
            best = max(best, scores[c, m])
        for c in range(ASKED):
            scores[c, m] = max(scores[c, m], best - beside)


@numba.njit(nogil=True, cache=True)
def _pool(
    scores: Array,
    candidates: AnyArray,
    is_known: AnyArray,
    grid: AnyArray,
    far: float,
    own: AnyArray,
    best: Array,
) -> int:
    """Write the components of a pool behind those that the cell has, the best first, and return their number."""
    n_known = wanted = len(own) - len(best)
    for m in range(len(candidates)):
        if is_known[candidates[m]]:
            scores[m] = -np.inf
        wanted += scores[m] > -far
    size = grid[min(np.searchsorted(grid, wanted), len(grid) - 1)]
    _best(scores, candidates, best[: size - n_known], own[n_known:])
    return size


@numba.njit(nogil=True, cache=True)
def pool(
    given: Array,
    pairs: AnyArray,
    shortlists: AnyArray,
    together: int,
    shift: int,
    starts: AnyArray,
    sizes: AnyArray,
    members: AnyArray,
    matrix: Array,
    grid: AnyArray,
    far: float,
    beside: float,
    pools: AnyArray,
    counts: AnyArray,
) -> None:
    """Write the components among which the set of each cell is chosen, (C, P), and their number.

    Parameters
    ----------
    shortlists, together
        Components of which one may suit the cells, ``together`` of which have one list, (C / together, S).
    shift
        The first row of each cell that is asked.
    grid, far
        Numbers that there may be: enough for those that come closer than this.
    beside
        See :data:`~caviar.engine.rows.truncated.block.BESIDE`.

    Others are those of :func:`add_cells`.
    """
    n_given, n_padded, n_listed = given.shape[1], matrix.shape[1], shortlists.shape[1]
    features, flat = aligned(n_padded * CELL), matrix.reshape(-1)
    natural, scores = of_members(n_listed), np.empty((ASKED, n_listed))
    packed, top, best = np.empty(n_given * CELL), np.empty(CELL), np.empty(pools.shape[1])
    is_known = np.zeros(len(matrix), dtype=np.bool_)
    for first in range(0, len(given), ASKED):
        candidates = shortlists[first // together]
        _asked(given, first, shift, packed)
        gather(packed, n_given, 0, pairs, features)
        naturals(features, n_padded, candidates, 0, n_listed, flat, natural)
        _scores(natural, n_listed, top, beside, scores)
        for c in range(min(ASKED, len(given) - first)):
            cell, own = first + c, pools[first + c]
            known = members[starts[cell] : starts[cell] + sizes[cell]]
            for m in range(len(known)):
                is_known[known[m]], own[m] = True, known[m]
            counts[cell] = _pool(
                scores[c], candidates, is_known, grid, far, own, best[: len(own) - len(known)]
            )
            for m in range(len(known)):
                is_known[known[m]] = False


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def _totals(weights: Array, n: int, out: Array) -> None:
    """Write the sums over the first ``n`` members, (CELL,)."""
    for v in range(CELL):
        out[v] = 0.0
    for m in range(n):
        for v in range(CELL):
            out[v] += weights[CELL * m + v]


@numba.njit(nogil=True, cache=True, fastmath=_MOST)
def _ordered(natural: Array, scale: Array, counted: Array, at: int, scores: Array, order: AnyArray) -> None:
    """Make weights shares, and write which members have the most of them, in that order."""
    for m in range(len(scores)):
        found = 0.0
        for v in range(CELL):
            natural[CELL * m + v] *= scale[v]
            found += counted[at + v] * natural[CELL * m + v]
        place = m
        while place and scores[place - 1] < found:
            scores[place], order[place] = scores[place - 1], order[place - 1]
            place -= 1
        scores[place], order[place] = found, m


@numba.njit(nogil=True, cache=True)
def rank(
    given: Array,
    pairs: AnyArray,
    pools: AnyArray,
    counts: AnyArray,
    n_known: AnyArray,
    counted: Array,
    matrix: Array,
    sizes: AnyArray,
    losses: Array,
    before: Array,
) -> None:
    """Put the components of the pool of each cell in order, (C, P), and write what smaller sets lose, (C, S).

    Beside these is written what the set of the components that a cell has loses, (C,).
    The parameters are those of :func:`add_cells` and of :meth:`Block.ranked`.
    """
    n_given, n_padded, most = given.shape[1], matrix.shape[1], pools.shape[1]
    features, flat, rows = aligned(n_padded * CELL), matrix.reshape(-1), given.reshape(-1)
    natural = of_members(most)
    top, total, left, scores = np.empty(CELL), np.empty(CELL), np.empty(CELL), np.empty(most)
    order = np.empty(most, dtype=np.int64)
    for cell in range(len(pools)):
        at, size = CELL * cell, counts[cell]
        own = pools[cell, :size].copy()
        gather(rows, n_given, n_given * at, pairs, features)
        naturals(features, n_padded, own, 0, size, flat, natural)
        exponentials(natural, size, top, total)
        for v in range(CELL):
            total[v] = 1.0 / total[v]
        _ordered(natural, total, counted, at, scores[:size], order)
        if n_known[cell]:
            _totals(natural, n_known[cell], left)
            before[cell] = -log_sum(left, counted, at)
        left[:] = 0.0
        s = 0
        for m in range(size):
            pools[cell, m] = own[order[m]]
            place = CELL * order[m]
            for v in range(CELL):
                left[v] += natural[place + v]
            if s < len(sizes) and m + 1 == sizes[s]:
                losses[cell, s] = -log_sum(left, counted, at)
                s += 1
