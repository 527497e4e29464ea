"""Interpolation of the mass of what is left of a stick, in the logarithm of its size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.numerics.cached import cached_property

_POINTS = 10
"""Nodes of a polynomial, those around a place."""

_EDGE, _FARTHEST = np.array([0.0, 0.2, 0.4]), 0.6
"""Places inward of an end, as parts of half a peak's width, whose parabola goes on beyond it, and how far."""

_STEEP = 1e9
"""Nats by which a mass falls for each unit of log s where nothing is: enough to be nothing, with a way back."""

_OF_DIFFERENCES = 872.0 / 3628800.0
"""Largest error in the middle of ten nodes for each unit of the tenth difference: (0.5 * 1.5 * ... * 4.5)^2 / 10!"""


@dataclass(frozen=True)
class Window:
    """Interpolation of a function of s: a multiple of s, and the rest, by polynomials in log s through ten nodes.

    Beyond the ends the rest is a parabola through places inside, as far as the reach, and then falls steeply: a value
    that is too high there would be taken for another peak. Below a window with a tail it is what it is at the end.

    Attributes
    ----------
    low, high
        Its ends, logarithms of s.
    size
        Number of nodes, at least ten.
    peak
        Half the width of the peak, of which the window may have a long tail.
    has_tail
        Whether what is below it is nearly nothing.
    is_complete
        Whether what is below it is nothing at all.
    """

    low: float
    high: float
    size: int
    peak: float
    has_tail: bool
    is_complete: bool

    @cached_property
    def log_nodes(self) -> Array:
        """Logarithms of the nodes, (n,)."""
        return np.linspace(self.low, self.high, self.size)

    @property
    def reach(self) -> float:
        """How far beyond an end the parabola is used."""
        return _FARTHEST * self.peak

    @cached_property
    def edges(self) -> dict[int, Array]:
        """For the lower and upper end, -1 and 1, what multiplies the values at the nodes in those at three places."""
        found = {}
        for side, end in ((-1, self.low), (1, self.high)):
            first, t = _located(self, end - side * self.inward)
            polynomials = np.vander(t, _POINTS, increasing=True) @ _coefficients()
            found[side] = np.zeros((len(t), self.size))
            for row, start, own in zip(found[side], first, polynomials, strict=True):
                row[start : start + _POINTS] = own
        return found

    @property
    def inward(self) -> Array:
        """How far inward of an end the three places are whose parabola goes on beyond it."""
        return _EDGE * min(self.peak, self.high - self.low)

    def differences(self, rest: Array) -> Array:
        """Return about how far each polynomial is off, from the tenth differences of the values at its nodes."""
        found = np.abs(np.diff(rest, _POINTS)) * _OF_DIFFERENCES
        return np.concatenate((found, found[-1:])) if len(found) else np.zeros(1)


class Interpolant:
    """The logarithm of a mass M(s), or a change of it, by its values at the nodes of a window, (n,)."""

    def __init__(self, window: Window, values: Array) -> None:
        self.window, self.values = window, values
        # neither is a sliding view: those take ten times as long to make
        self._coefficients = _coefficients() @ values[_neighbours(window.size)]

    def at(self, places: Places) -> Array:
        """Return it at places, minus infinity far beyond the window."""
        found = self.change(places)
        for own in places.beyond:
            found[own.where] -= own.fall
        return found

    def change(self, places: Places) -> Array:
        """Return it at places as a linear function of the values at the nodes."""
        found = self._coefficients[-1].take(places.first)
        for own in self._coefficients[-2::-1]:
            found *= places.t
            found += own.take(places.first)
        for own in places.beyond:
            found[own.where] = (self.window.edges[own.side] @ self.values) @ own.through
        return found


class Places:
    """Places log s of any shape, where functions are interpolated from their values at the nodes of a window."""

    def __init__(self, window: Window, log_s: Array) -> None:
        self.window = window
        self.first, self.t = _located(window, log_s)
        sides = {1: log_s > window.high}
        if not window.is_complete:
            sides[-1] = log_s < window.low
        self.beyond = [_Beyond.of(window, log_s, where, side) for side, where in sides.items() if where.any()]

    def at_nodes(self, weights: Array) -> Array:
        """Return the derivatives of the weighted sum of the values by the values at the nodes."""
        if self.beyond:
            inner = weights.copy()
            for own in self.beyond:
                inner[own.where] = 0.0
        else:
            inner = weights
        powers, first, t = inner.ravel(), self.first.ravel(), self.t.ravel()
        count = self.window.size - _POINTS + 1
        sums = np.empty((_POINTS, count))
        for degree in range(_POINTS):
            sums[degree] = np.bincount(first, powers, count)
            powers = powers * t
        found = np.zeros(self.window.size)
        for number, own in enumerate(_coefficients().T @ sums):
            found[number : number + count] += own
        for own in self.beyond:
            found += (own.through @ weights[own.where]) @ self.window.edges[own.side]
        return found

    def masses(self, weights: Array) -> Array:
        """Return what the weights of the places of each polynomial add up to."""
        return np.bincount(self.first.ravel(), weights.ravel(), self.window.size - _POINTS + 1).astype(
            np.float64, copy=False
        )

    def outside(self, weights: Array) -> float:
        """Return what the weights of the places below the window, and of those above it, add up to, without signs."""
        return sum(abs(float(weights[own.where].sum())) for own in self.beyond)


@dataclass(frozen=True)
class _Beyond:
    """Places beyond an end: which they are, what multiplies the values at three places inside, and the fall."""

    side: int
    where: AnyArray
    through: Array
    fall: Array

    @classmethod
    def of(cls, window: Window, log_s: Array, where: AnyArray, side: int) -> _Beyond:
        """Return those beyond one end, -1 or 1."""
        distance = np.abs(log_s[where] - (window.high if side > 0 else window.low))
        if side < 0 and window.has_tail:
            distance = np.zeros_like(distance)
        through = _through(window.inward, -np.minimum(distance, window.reach))
        return cls(side, where, through, _STEEP * np.maximum(distance - window.reach, 0.0))


def _located(window: Window, log_s: Array) -> tuple[AnyArray, Array]:
    """Return the first of the ten nodes around each place, and the place from -1 to 1 between first and last."""
    at = (log_s - window.low) * ((window.size - 1) / (window.high - window.low))
    np.minimum(np.maximum(at, 0.0, out=at), window.size - 1.0, out=at)
    first = np.minimum(np.maximum(at - (0.5 * _POINTS - 1.0), 0.0), float(window.size - _POINTS)).astype(
        np.intp
    )
    at -= first
    at *= 2.0 / (_POINTS - 1)
    at -= 1.0
    return first, at


def _through(edge: Array, z: Array) -> Array:
    """Return what multiplies values at three places in the value at z of the parabola through them, (3, ...)."""
    first, second, third = edge
    return np.stack(
        (
            (z - second) * (z - third) / ((first - second) * (first - third)),
            (z - first) * (z - third) / ((second - first) * (second - third)),
            (z - first) * (z - second) / ((third - first) * (third - second)),
        )
    )


@cache
def _coefficients() -> Array:
    """Return the matrix from values at ten nodes, from -1 to 1, to the coefficients of their polynomial."""
    found: Array = np.linalg.inv(np.vander(np.linspace(-1.0, 1.0, _POINTS), increasing=True))  # type: ignore[assignment]
    return found


@cache
def _neighbours(size: int) -> AnyArray:
    """Return the numbers of the ten nodes of each polynomial, (10, n - 9)."""
    return np.arange(_POINTS)[:, None] + np.arange(size - _POINTS + 1)
