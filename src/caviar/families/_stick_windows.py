"""Interpolation of the mass of what is left of a stick, in the logarithm of its size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from caviar._typing import Array
from caviar.numerics.cached import cached_property

_PLACES = 4000
"""Places of a table for draws."""

_EDGE, FARTHEST = np.array([1.0, 0.8, 0.6]), 1.6
"""Places along an interval from -1 to 1, as wide as a peak, whose parabola goes on beyond it, and how far."""

_STEEP = 1e9
"""Nats by which a mass falls for each unit of log s where nothing is: enough to be nothing, with a way back."""


@dataclass(frozen=True)
class Window:
    """Interpolation of a function of s: a multiple of s, and the rest, a polynomial in log s.

    Beyond the ends the rest is a parabola through places inside, as far as the reach, and then falls steeply: a value
    that is too high there would be taken for another peak. Below a window with a tail it is what it is at the end.

    Attributes
    ----------
    low, high
        Its ends, logarithms of s.
    size
        Number of nodes.
    reach
        How far beyond an end the parabola is used: a part of the width of the peak, of which the window may have a
        long tail.
    has_tail
        Whether what is below it is nearly nothing.
    """

    low: float
    high: float
    size: int
    reach: float
    has_tail: bool

    def finer(self, most: int) -> Window:
        """Return the one with half as many nodes more, up to the most."""
        return replace(self, size=min(self.size + self.size // 2, most))

    @cached_property
    def nodes(self) -> Array:
        """Places s, (n,)."""
        return np.exp(0.5 * (self.low + self.high) + 0.5 * (self.high - self.low) * _angles(self.size)[0])

    def basis(self, log_s: Array) -> Array:
        """Return what multiplies the coefficients of the rest, (n, ...), at places log s."""
        z = (2.0 * log_s - self.low - self.high) / (self.high - self.low)
        polynomials = _polynomials(self.size, np.clip(z, -1.0, 1.0))
        for side in self.sides:
            beyond = side * z > 1.0
            if beyond.any():
                at = _polynomials(self.size, side * self.edge)
                polynomials[:, beyond] = at @ _through(
                    self.edge, np.minimum(side * z[beyond], 1.0 + 2.0 * self.reach / (self.high - self.low))
                )
        return polynomials

    @property
    def edge(self) -> Array:
        """Places from -1 to 1, near the end by the width of the peak, whose parabola goes on beyond it."""
        return 1.0 - (1.0 - _EDGE) * self.reach / (0.5 * FARTHEST - 0.5) / (self.high - self.low)

    @property
    def sides(self) -> tuple[float, ...]:
        """Ends beyond which there is a parabola."""
        return (1.0,) if self.has_tail else (-1.0, 1.0)

    def coefficients(self, rest: Array) -> Array:
        """Return the coefficients of the polynomials for values of the rest at the nodes."""
        return _angles(self.size)[1] @ rest

    def beyond(self, log_s: Array) -> Array:
        """Return a large number, growing with the distance, at places so far beyond an end that nothing is there."""
        distance = np.maximum(log_s - self.high - self.reach, 0.0)
        if not self.has_tail:
            distance += np.maximum(self.low - self.reach - log_s, 0.0)
        return _STEEP * distance

    def at_nodes(self, weights: Array) -> Array:
        """Return the derivatives by the values at the nodes for those by the coefficients."""
        return weights @ _angles(self.size)[1]


def _polynomials(size: int, z: Array) -> Array:
    """Return the Chebyshev polynomials of degrees below ``size``, (size, ...)."""
    found = np.empty((size, *z.shape))
    found[0], found[1] = 1.0, z
    for degree in range(2, size):
        np.multiply(z, found[degree - 1], out=found[degree])
        found[degree] *= 2.0
        found[degree] -= found[degree - 2]
    return found


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
def _angles(size: int) -> tuple[Array, Array]:
    """Return Chebyshev nodes, and the matrix from values there to coefficients of the polynomials."""
    angles = (np.arange(size) + 0.5) * np.pi / size
    matrix = 2.0 / size * np.cos(np.outer(np.arange(size), angles))
    matrix[0] *= 0.5
    return np.cos(angles), matrix


@dataclass(frozen=True)
class Interpolant:
    """The logarithm of a mass M(s), as slope * s and the coefficients of polynomials."""

    window: Window
    coefficients: Array
    slope: float

    @classmethod
    def through(cls, window: Window, log_mass: Array) -> Interpolant:
        """Return the one with these values at the nodes of a window: the multiple of s leaves nearly a line."""
        columns = np.stack((window.nodes, np.log(window.nodes), np.ones(window.size)), axis=1)
        slope = float(np.linalg.lstsq(columns, log_mass)[0][0])
        return cls(window, window.coefficients(log_mass - slope * window.nodes), slope)

    @property
    def missed(self) -> float:
        """About how much polynomials of higher degrees would add: the last coefficients."""
        return float(np.abs(self.coefficients[-3:]).max())

    def value(self, log_s: Array) -> tuple[Array, Array]:
        """Return it at places log s, minus infinity far beyond the window, and the basis there."""
        basis = self.window.basis(log_s)
        found = self.slope * np.exp(log_s) + np.tensordot(self.coefficients, basis, 1)
        found -= self.window.beyond(log_s)
        return found, basis

    def alone(self, log_s: Array) -> Array:
        """Return it at places log s without the basis, in less time."""
        low, high = self.window.low, self.window.high
        z = (2.0 * log_s - low - high) / (high - low)
        found: Array = np.polynomial.chebyshev.chebval(np.clip(z, -1.0, 1.0), self.coefficients)  # type: ignore[assignment]
        w = self.window
        for side in w.sides:
            beyond = side * z > 1.0
            if beyond.any():
                at = np.polynomial.chebyshev.chebval(side * w.edge, self.coefficients)
                found[beyond] = at @ _through(
                    w.edge, np.minimum(side * z[beyond], 1.0 + 2.0 * w.reach / (high - low))
                )
        found += self.slope * np.exp(log_s)
        found -= self.window.beyond(log_s)
        return found


@dataclass(frozen=True)
class Table:
    """The logarithm of a mass at many places log s: fast, for draws."""

    places: Array
    values: Array
    below: float

    @classmethod
    def of(cls, whole: Interpolant) -> Table:
        """Return the values of what interpolates with all digits."""
        places = np.linspace(whole.window.low, whole.window.high, _PLACES)
        values = whole.value(places)[0]
        return cls(places, values, float(values[0]) if whole.window.has_tail else -np.inf)

    def alone(self, log_s: Array) -> Array:
        """Return it at places log s: below a wide window that at its end, elsewhere nothing beyond the ends."""
        return np.interp(log_s, self.places, self.values, left=self.below, right=-np.inf)

    def value(self, log_s: Array) -> tuple[Array, None]:
        """Return the same, without a basis."""
        return self.alone(log_s), None
