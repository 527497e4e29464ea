r"""The masses of what is left of a broken stick, from its end to its beginning, and how exact they are.

The logarithm of each mass :math:`M_k(s)` is known at nodes in :math:`\log s` and interpolated; shares are integrated by
the trapezoidal rule in a variable :math:`\tau` with :math:`\operatorname{logit} v = u_0 + w \sinh\tau`. Each recursion
tells where it is inexact: how much leaving out every other node of a share changes, how large the differences of high
order are where the interpolation has weight, and how much weight is beyond a window. The next one is finer there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, expit, log_expit

from caviar._typing import Array
from caviar.families.tabulated.stick_exponents import Exponents
from caviar.families.tabulated.stick_windows import Interpolant, Places, Window
from caviar.numerics.cached import cached_property

_DEPTH = 40.0
"""Nats below its peak at which an integrand is cut off."""

_SPREAD, _WIDER = 8.0, 1.5
"""Standard deviations of log s on either side within which it is interpolated at first, and times as many then."""

_NODES, _MOST_NODES = 32, 1000
"""Intervals between nodes of a share, at first and at most."""

_UNRESOLVED = 1e-5
"""Part of an integral that every other node misses above which it gets more: with all nodes it is about the square."""

_INEXACT = 1e-9
"""Part of the normaliser that an interpolation misses, or that is beyond a window, above which this is made finer."""

_ROUNDS = 8
"""Recursions at most."""

_FEWEST, _A_UNIT, _MOST = 18, 11.0, 2000
"""Nodes of log s: at least, how many more for each unit of its length, and at most."""

_WIDE = 3.0
"""Length of an interval of log s beyond which what is below it is nearly nothing."""

_NEGLIGIBLE = 1e-12
"""Size of an exponent below which it is nothing."""

_LEAST_VARIANCE = 1e-12
"""Variance added to all log s together, so that windows have a length where next to nothing is taken."""

_SEARCHES, _SEARCHES_A_UNIT = 5, 4.0
"""Values of s whose integrand is searched for its peak: at least, and how many more for each unit of log s."""

_SHARP = 2.0
"""Nats by which a place next to the highest is lower, above which the peak is searched for again, in between."""

_AROUND = (-1, 0, 1)
_COARSE = np.linspace(-1.0, 1.0, 49)
_FINE = np.linspace(0.0, 1.0, 17)


@dataclass(frozen=True)
class Nodes:
    """Nodes of a share for each of n values of what it is taken of, and their probabilities, (n, J).

    The places are those of what is left in the window after it; None of the last share, which leaves the last piece.
    """

    log_s: Array
    log_v: Array
    log_left: Array
    exponent: Array
    places: Places | None

    @cached_property
    def _masses(self) -> tuple[Array, Array]:
        top = self.exponent.max(axis=1, keepdims=True)
        found = np.exp(self.exponent - top)
        total = found.sum(axis=1, keepdims=True)
        found /= total
        return (top + np.log(total))[:, 0], found

    @property
    def log_mass(self) -> Array:
        """Logarithm of the integral for each s, (n,)."""
        return self._masses[0]

    @property
    def probabilities(self) -> Array:
        """Probability of each node given s."""
        return self._masses[1]

    @property
    def missed_by_half(self) -> Array:
        """Part of the integral for each s that every other node misses, (n,)."""
        return np.abs(2.0 * self.probabilities[:, ::2].sum(axis=1) - 1.0)

    @property
    def log_piece(self) -> Array:
        """Logarithm of the piece."""
        return self.log_s[:, None] + self.log_v

    @property
    def log_rest(self) -> Array:
        """Logarithm of what is left."""
        return self.log_s[:, None] + self.log_left


@dataclass(frozen=True)
class _Spans:
    """Where the integrand of a share has weight, for some values log s: in logits, its peak, width and ends."""

    log_s: Array
    center: Array
    width: Array
    first: Array
    last: Array

    def at(self, log_s: Array) -> _Spans:
        """Return the same for other values, with ends at least as far as those of the values nearby."""
        first, last = self.first.copy(), self.last.copy()
        for here, there in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
            first[here] = np.minimum(first[here], self.first[there])
            last[here] = np.maximum(last[here], self.last[there])
        own = (self.center, self.width, first, last)
        return _Spans(log_s, *(np.interp(log_s, self.log_s, values) for values in own))


@dataclass(frozen=True)
class Recursion:
    """One recursion: windows of what is left after each share but the last, and numbers of nodes of the shares.

    Attributes
    ----------
    exponents
        The distribution.
    peak
        Logits of the shares where its density is highest, and the covariance of a Normal there.
    spread
        Standard deviations of log s on either side within which it is interpolated.
    density
        Times as many nodes of what is left after each share but the last as by default.
    intervals
        Between the nodes of each share.
    """

    exponents: Exponents
    peak: tuple[Array, Array]
    spread: float
    density: tuple[float, ...]
    intervals: tuple[int, ...]

    @classmethod
    def of(cls, exponents: Exponents) -> Recursion:
        """Return one that is as fine as its own checks want, or as they allow."""
        peak = exponents.highest()
        shares = len(exponents.a)
        own = cls(exponents, peak, _SPREAD, (1.0,) * (shares - 1), (_NODES,) * shares)
        for _ in range(_ROUNDS - 1):
            finer = own._finer()
            if finer is None:
                break
            own = finer
        return own

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """Where what is left after each share but the last is interpolated."""
        u, covariance = self.peak
        log_s = np.cumsum(log_expit(-u))
        lower = -np.tril(np.ones((len(u), len(u)))) * expit(u)
        half = _half_widths(lower @ covariance @ lower.T, self.spread)
        tail = np.clip(_DEPTH / np.minimum.accumulate(self.exponents.b), half, 4.0 * half)
        least = np.log(_NEGLIGIBLE / self.exponents.steepest())
        high = np.minimum(log_s + half, 0.0)
        # less is left after each share: a window that ended above the one before would cut its lower places off
        low = np.minimum.accumulate(np.minimum(np.maximum(log_s - tail, least), high - 1e-6))
        complete = low <= least + 1e-9
        tailed = complete | ((tail > half) & (high - low > _WIDE))
        sizes = np.clip(_FEWEST + _A_UNIT * (high - low), _FEWEST, _MOST)
        peaks = np.minimum(half, 0.5 * (high - low))
        return tuple(
            Window(
                float(low[k]),
                float(high[k]),
                min(int(sizes[k] * times), _MOST),
                float(peaks[k]),
                bool(tailed[k]),
                bool(complete[k]),
            )
            for k, times in enumerate(self.density)
        )

    @cached_property
    def steps(self) -> tuple[Nodes, ...]:
        """The nodes of each share, of what is left in the window before it."""
        steps: list[Nodes] = []
        for k in range(len(self.intervals) - 1, -1, -1):
            log_s = self.windows[k - 1].log_nodes if k else np.zeros(1)
            after = self._interpolant(k, steps[-1]) if steps else None
            steps.append(self._nodes(k, log_s, after, self.intervals[k]))
        return tuple(steps[::-1])

    def _interpolant(self, k: int, following: Nodes) -> Interpolant:
        """Return the mass of what the k-th share leaves, less that of independent shares."""
        beta = betaln(self.exponents.a[k + 1], self.exponents.b[k + 1])
        return Interpolant(self.windows[k], following.log_mass - beta)

    def nodes_for(self, k: int, log_s: Array, intervals: int) -> Nodes:
        """Return nodes of the k-th share for any values of what it is taken of."""
        after = self._interpolant(k, self.steps[k + 1]) if k < len(self.windows) else None
        return self._nodes(k, log_s, after, intervals)

    @cached_property
    def weights(self) -> tuple[Array, ...]:
        """Weights of the nodes of each share, from the beginning of the stick: of its density, as computed."""
        weights, here = [], np.ones(1)
        for step in self.steps:
            weights.append(here[:, None] * step.probabilities)
            if step.places is not None:
                here = step.places.at_nodes(weights[-1])
        return tuple(weights)

    @cached_property
    def _missed(self) -> list[tuple[float, float, float]]:
        """For each share, what half of its nodes misses, what the interpolation after it, and what is outside."""
        missed = []
        for k, (step, weights) in enumerate(zip(self.steps, self.weights, strict=True)):
            sizes = np.abs(weights)
            half = float(sizes.sum(axis=1) @ step.missed_by_half)
            if step.places is None:
                missed.append((half, 0.0, 0.0))
                continue
            window = self.windows[k]
            off = window.differences(self.steps[k + 1].log_mass)
            missed.append((half, float(step.places.masses(sizes) @ off), step.places.outside(weights)))
        return missed

    @property
    def error(self) -> float:
        """About the part of the normaliser that all of it misses."""
        return sum(half**2 + off + outside for half, off, outside in self._missed)

    def _finer(self) -> Recursion | None:
        """Return one that is finer where this one is inexact; None where it is exact, or cannot be finer."""
        spread, density, intervals = self.spread, list(self.density), list(self.intervals)
        for k, (half, off, outside) in enumerate(self._missed):
            if not half <= _UNRESOLVED:
                intervals[k] = min(2 * intervals[k], _MOST_NODES)
            if not off <= _INEXACT:
                density[k] = 1.5 * density[k]
            if not outside <= _INEXACT:
                # from inside a wider window more that follows is outside of the next: all are wider, or none
                spread = _WIDER * self.spread
        found = Recursion(self.exponents, self.peak, spread, tuple(density), tuple(intervals))
        same = found.windows == self.windows and found.intervals == self.intervals
        return None if same else found

    def _exponent(
        self, k: int, log_s: Array, u: Array, after: Interpolant | None
    ) -> tuple[Array, Array, Array, Places | None]:
        """Return the logarithm of the integrand at logits of a share, (n, J), those of share and rest, and places."""
        own, log_s = self.exponents, log_s[:, None]
        shorter = np.log1p(np.exp(-np.abs(u)))
        log_v, log_left = np.minimum(u, 0.0) - shorter, -np.maximum(u, 0.0) - shorter
        rest, places = log_s + log_left, None
        exponent = own.of_piece(k, log_s + log_v)
        exponent += own.a[k] * log_v
        exponent += own.b[k] * log_left
        if after is None:
            exponent += own.of_piece(len(own.a), rest)
        else:
            places = Places(after.window, rest)
            exponent += after.at(places)
        return exponent, log_v, log_left, places

    def _spans(self, k: int, log_s: Array, after: Interpolant | None) -> _Spans:
        """Return where the integrand has weight for each s, from a search for its peak."""
        own, (u, covariance) = self.exponents, self.peak
        wide = float(np.sqrt(covariance[k, k]))
        reach = 2.0 * max(_DEPTH / own.a[k], _DEPTH / own.b[k], 30.0 * wide)
        coarse = u[k] + 0.3 * wide * np.sinh(_COARSE * np.arcsinh(reach / (0.3 * wide)))
        g = self._exponent(k, log_s, np.broadcast_to(coarse, (len(log_s), len(coarse))), after)[0]
        rows, best = np.arange(len(log_s)), np.clip(g.argmax(axis=1), 1, len(coarse) - 2)
        center, width, drop = _vertex(
            tuple(coarse[best + step] for step in _AROUND), tuple(g[rows, best + step] for step in _AROUND)
        )
        top = g[rows, best]
        if drop.max() > _SHARP:
            low, high = coarse[best - 1], coarse[best + 1]
            fine = low[:, None] + (high - low)[:, None] * _FINE
            near = self._exponent(k, log_s, fine, after)[0]
            closest = np.clip(near.argmax(axis=1), 1, len(_FINE) - 2)
            top = np.maximum(top, near[rows, closest])
            center, width, _ = _vertex(
                tuple(fine[rows, closest + step] for step in _AROUND),
                tuple(near[rows, closest + step] for step in _AROUND),
            )
        reached = g >= (top - _DEPTH)[:, None]
        reached[rows, best] = True
        first = np.maximum(reached.argmax(axis=1) - 1, 0)
        last = np.minimum(reached.shape[1] - reached[:, ::-1].argmax(axis=1), len(coarse) - 1)
        return _Spans(log_s, center, np.clip(width, 0.02 * wide, 100.0 * wide), coarse[first], coarse[last])

    def _nodes(self, k: int, log_s: Array, after: Interpolant | None, intervals: int) -> Nodes:
        """Return nodes of a share for each s, where the integrand has weight."""
        low, high = log_s.min(), log_s.max()
        searches = int(_SEARCHES + _SEARCHES_A_UNIT * (high - low))
        if searches < len(log_s):
            spans = self._spans(k, np.linspace(low, high, searches), after).at(log_s)
        else:
            spans = self._spans(k, log_s, after)
        center, width = spans.center, spans.width
        begin, end = np.arcsinh((spans.first - center) / width), np.arcsinh((spans.last - center) / width)
        spacing = (end - begin) / intervals
        tau = begin[:, None] + spacing[:, None] * np.arange(intervals + 1)
        up = np.exp(tau)
        down = 1.0 / up
        places = center[:, None] + (0.5 * width)[:, None] * (up - down)
        exponent, log_v, log_left, left = self._exponent(k, log_s, places, after)
        exponent += np.log((0.5 * width * spacing)[:, None] * (up + down))
        return Nodes(log_s, log_v, log_left, exponent, left)


def _vertex(u: tuple[Array, ...], g: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    """Return the place and twice the width of the peak through three points, and how much lower the lowest is."""
    left, right = (g[1] - g[0]) / (u[1] - u[0]), (g[2] - g[1]) / (u[2] - u[1])
    curvature = np.maximum(2.0 * (left - right) / (u[2] - u[0]), 1e-300)
    center = 0.5 * (u[0] + u[1]) + left / curvature
    return np.clip(center, u[0], u[2]), 2.0 / np.sqrt(curvature), g[1] - np.minimum(g[0], g[2])


def _half_widths(covariance: Array, spread: float) -> Array:
    """Return half the lengths of windows such that from inside one, what follows is inside the next."""
    variances = covariance.diagonal() + _LEAST_VARIANCE
    crossed = np.abs(covariance.diagonal(1)) + _LEAST_VARIANCE
    half = np.empty(len(variances))
    half[0] = spread * np.sqrt(variances[0])
    for k, (one, other, both) in enumerate(zip(variances[:-1], variances[1:], crossed, strict=True)):
        left = np.sqrt(np.maximum(other - both**2 / one, 0.0))
        half[k + 1] = both / one * half[k] + spread * left
    return half
