r"""Fixed points of linear maps, found in fewer steps than by the map alone.

For many independent fixed points :math:`x = G x + c` at once, each with its own coefficients: the next point is where
the residual :math:`f = G x + c - x` is least over the last moves, which for a linear map it is known for,

.. math:: x' = x + f - \sum_j \gamma_j (\Delta x_j + \Delta f_j), \qquad
    \gamma = \arg\min \|f - \textstyle\sum_j \gamma_j \Delta f_j\| .

Source: Walker and Ni, "Anderson acceleration for fixed-point iterations" (*SIAM J. Numer. Anal.* 49, 2011), who show
that with all moves kept these are the steps of GMRES.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from .._typing import Array

K = TypeVar("K")

_MOST_KEPT = 15
"""Moves that are kept."""

_SAME, _ROUNDING = 1e-12, 1e-15
"""What is new in a change of residuals, relative to its size and to that of the point, below which it is rounding."""

_MUCH_LARGER = 10.0
"""Residual, relative to the least before, from which on nothing but rounding is left, and the moves are forgotten."""


class Extrapolation:
    """The next points of u fixed points of a linear map, (n, u), from the last ones and what the map made of them."""

    def __init__(self) -> None:
        self._last: tuple[Array, Array] | None = None
        self._least: Array | float = np.inf
        self._moves: list[Array] = []
        self._changes: list[Array] = []
        """Changes of residuals, orthonormal for each fixed point, and the moves that they belong to."""

    def next(self, before: Array, after: Array) -> Array:
        """Return where to go on, from a point and its image."""
        residual = after - before
        if self._last is not None:
            rounding = _ROUNDING * np.sqrt((before**2).sum(axis=0))
            self._keep(before - self._last[0], residual - self._last[1], rounding)
        self._last = before, residual
        size = np.sqrt((residual**2).sum(axis=0))
        fails = size > _MUCH_LARGER * self._least
        if fails.any():
            for own in (*self._moves, *self._changes):
                own[:, fails] = 0.0
        self._least = np.where(fails, size, np.minimum(self._least, size))
        found = after.copy()
        for move, change in zip(self._moves, self._changes, strict=True):
            found -= (change * residual).sum(axis=0) * (move + change)
        return found

    def next_of_parts(self, before: Mapping[K, Array], after: Mapping[K, Array]) -> dict[K, Array]:
        """Return where to go on from points that consist of several arrays, whose first axis runs over the points."""
        one, other = (
            np.concatenate([own[key].reshape(len(own[key]), -1) for key in after], axis=1).T
            for own in (before, after)
        )
        whole, start, found = self.next(one, other).T, 0, {}
        for key, own in after.items():
            stop = start + own[0].size
            found[key] = np.ascontiguousarray(whole[:, start:stop]).reshape(own.shape)
            start = stop
        return found

    def _keep(self, move: Array, change: Array, rounding: Array) -> None:
        """Keep a move, made orthogonal to the others in its change of residuals."""
        if len(self._moves) == _MOST_KEPT:
            del self._moves[0], self._changes[0]
        size = np.sqrt((change**2).sum(axis=0))
        for own, kept in zip(self._moves, self._changes, strict=True):
            share = (kept * change).sum(axis=0)
            change = change - share * kept
            move = move - share * own
        left = np.sqrt((change**2).sum(axis=0))
        scale = np.divide(1.0, left, out=np.zeros_like(left), where=left > np.maximum(_SAME * size, rounding))
        self._moves.append(move * scale)
        self._changes.append(change * scale)
