r"""Tables: integrals of exponentials of sums of functions, by the trapezoidal rule at nodes made for each.

The integrand :math:`e^{g(u)}`, :math:`g = \sum_s \eta_s f_s`, is evaluated where it is above :math:`e^{-40}` of its
peak. Nodes are evenly spaced in :math:`\tau`, with :math:`u = u_0 + w \sinh\tau`: close together at the peak, and
farther and farther apart along a tail, which may be a million times as long as the peak is wide. The trapezoidal rule
then converges faster than any power, so nodes are doubled until the normaliser has settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.families.tabulated.scalar_functions import Functions, Support

_DEPTH = 40.0
"""Nats below its peak at which an integrand is cut off."""

_FIRST, _MOST = 64, 16384
"""Smallest and largest number of intervals between nodes."""

_SETTLED = 1e-12
"""Relative change of a normaliser below which nodes are not doubled again."""

_ROUNDING = 16.0 * np.finfo(float).eps
_ZOOM = 16
_MOST_ZOOMS = 40
_CHUNK = 2_000_000
"""Largest number of values of functions computed together."""


@dataclass(frozen=True)
class Frames:
    """Where integrands have weight: u = center + width * sinh(tau) for tau from first to last, for each."""

    center: Array
    width: Array
    first: Array
    last: Array

    def __getitem__(self, index: AnyArray) -> Frames:
        return Frames(self.center[index], self.width[index], self.first[index], self.last[index])

    def places(self, tau: Array) -> Array:
        """Return the places of nodes, (R, n)."""
        return self.center[:, None] + self.width[:, None] * np.sinh(tau)

    def nodes(self, n: int) -> tuple[Array, Array]:
        """Return places of n + 1 nodes and the logarithms of their weights, (R, n + 1) each."""
        step = (self.last - self.first) / n
        tau = self.first[:, None] + step[:, None] * np.arange(n + 1)
        log_weights = np.log(self.width * step)[:, None] + np.log(np.cosh(tau))
        log_weights[:, [0, -1]] -= np.log(2.0)
        return self.places(tau), log_weights


@dataclass(frozen=True)
class Integrals:
    """Normalisers and moments of R integrands of S functions."""

    log_partition: Array
    means: Array
    covariances: Array
    of_number: Array
    """Mean and variance of the number itself, (R, 2)."""
    covariances_of_number: Array
    """With each function, (R, S)."""


def exponents(support: type[Support], functions: Functions, natural: Array, u: Array) -> Array:
    """Return the sums g at places (R, n), for natural parameters (R, S); minus infinity where they overflow."""
    at = support.points(u)
    total = np.zeros(u.shape)
    for number, function in enumerate(functions):
        coefficient = natural[:, number, None]
        if coefficient.any():
            total = total + np.where(coefficient != 0, coefficient * function.value(at), 0.0)
    return np.where(np.isnan(total), -np.inf, total)


def slopes(support: type[Support], functions: Functions, natural: Array, u: Array) -> Array:
    """Return the derivatives of the sums g by the places."""
    at = support.points(u)
    total = np.zeros(u.shape)
    for number, function in enumerate(functions):
        coefficient = natural[:, number, None]
        if coefficient.any():
            total = total + np.where(coefficient != 0, coefficient * function.slope(at), 0.0)
    return total


@cache
def _coarse(support: type[Support]) -> Array:
    """Return places over the whole line: half a unit apart near 0, farther and farther apart beyond."""
    near = np.arange(-60.0, 60.25, 0.5)
    far = 60.0 * 1.4 ** np.arange(1, 60)
    below = -far[-far > support.lowest]
    above = far[far < support.highest]
    return np.concatenate(([support.lowest], below[::-1], near, above, [support.highest]))


@cache
def _coarse_values(support: type[Support], functions: Functions) -> Array:
    at = support.points(_coarse(support))
    return np.stack([function.value(at) for function in functions])


@np.errstate(all="ignore")
def peaks(
    support: type[Support], functions: Functions, natural: Array
) -> tuple[AnyArray, Array, Array, Array]:
    """Return which integrands are proper; for each, g on the coarse line (R, G) and the ends of its peak's interval.

    An integrand is proper if it is negligible at both ends of the line.
    """
    g = natural @ _coarse_values(support, functions)
    if not np.isfinite(g).all():
        g = exponents(support, functions, natural, np.broadcast_to(_coarse(support), g.shape))
    highest = g.argmax(axis=1)
    most = g.max(axis=1)
    proper = np.isfinite(most) & (np.maximum(g[:, 0], g[:, -1]) < most - _DEPTH)
    inside = np.clip(highest, 1, g.shape[1] - 2)
    u = _coarse(support)
    return proper, g, u[inside - 1], u[inside + 1]


@np.errstate(all="ignore")
def frames_of(
    support: type[Support], functions: Functions, natural: Array, g: Array, low: Array, high: Array
) -> Frames:
    """Return where proper integrands have weight, from what :func:`peaks` returns."""
    rows = np.arange(len(natural))
    parts = np.linspace(0.0, 1.0, _ZOOM + 1)
    center = top = drop = np.empty(0)
    for _ in range(_MOST_ZOOMS):
        u = low[:, None] + (high - low)[:, None] * parts
        own = exponents(support, functions, natural, u)
        best = np.clip(own.argmax(axis=1), 1, _ZOOM - 1)
        top = own[rows, best]
        drop = top - np.minimum(own[rows, best - 1], own[rows, best + 1])
        center, low, high = u[rows, best], u[rows, best - 1], u[rows, best + 1]
        if not np.any((drop > 0.5) & (high - low > 1e-14 * np.abs(center))):
            break
    top = np.maximum(top, g.max(axis=1))
    width = np.clip(0.5 * (high - low) / np.sqrt(2.0 * np.maximum(drop, 1e-12)), 1e-300, 1.0)
    ends = [_end(support, functions, natural, g, center, top - _DEPTH, side) for side in (-1, 1)]
    first, last = (np.arcsinh((end - center) / width) for end in ends)
    return Frames(center, width, first, last)


def _end(
    support: type[Support],
    functions: Functions,
    natural: Array,
    g: Array,
    center: Array,
    least: Array,
    side: int,
) -> Array:
    """Return a place just beyond the outermost one on a side at which g reaches ``least``."""
    u, rows = _coarse(support), np.arange(len(natural))
    reached = g >= least[:, None]
    outermost = reached.argmax(axis=1) if side < 0 else reached.shape[1] - 1 - reached[:, ::-1].argmax(axis=1)
    inner = np.where(reached.any(axis=1), u[outermost], center)
    inner = np.minimum(inner, center) if side < 0 else np.maximum(inner, center)
    beyond = (
        np.searchsorted(u, inner, side="left") - 1 if side < 0 else np.searchsorted(u, inner, side="right")
    )
    outer = u[np.clip(beyond, 0, len(u) - 1)]
    parts = np.linspace(0.0, 1.0, _ZOOM + 1)
    for _ in range(_MOST_ZOOMS):
        if np.all(np.abs(outer - inner) <= 0.1 * np.abs(outer - center)):
            break
        places = inner[:, None] + (outer - inner)[:, None] * parts
        below = exponents(support, functions, natural, places) < least[:, None]
        # from the outside: the last one that is not below
        last = _ZOOM - 1 - (~below[:, :-1])[:, ::-1].argmax(axis=1)
        last = np.where((~below[:, :-1]).any(axis=1), last, 0)
        inner, outer = places[rows, last], places[rows, last + 1]
    return outer


def integrals(support: type[Support], functions: Functions, natural: Array, frames: Frames) -> Integrals:
    """Return normalisers and moments of proper integrands with natural parameters (R, S).

    Nodes are doubled for each by itself, so none depends on those beside it.
    """
    n_rows, n_functions = natural.shape
    found = Integrals(
        np.empty(n_rows),
        np.empty((n_rows, n_functions)),
        np.empty((n_rows, n_functions, n_functions)),
        np.empty((n_rows, 2)),
        np.empty((n_rows, n_functions)),
    )
    size = max(1, _CHUNK // (2 * _FIRST * (n_functions + 1)))
    for start in range(0, n_rows, size):
        rows = np.arange(start, min(start + size, n_rows))
        before, n = np.full(len(rows), np.inf), _FIRST
        while len(rows):
            settled, log_partition = _look(support, functions, natural, frames, rows, n, before, found)
            rows, before = rows[~settled], log_partition[~settled]
            n *= 2
    return found


@np.errstate(all="ignore")
def _look(
    support: type[Support],
    functions: Functions,
    natural: Array,
    frames: Frames,
    rows: AnyArray,
    n: int,
    before: Array,
    found: Integrals,
) -> tuple[AnyArray, Array]:
    """Integrate some integrands with n intervals; note those that have settled. Return which, and their normalisers."""
    u, log_weights = frames[rows].nodes(n)
    at = support.points(u)
    values = np.stack([function.value(at) for function in functions], axis=1)
    own = natural[rows]
    products = np.where(own[:, :, None] != 0, own[:, :, None] * values, 0.0)
    g = products.sum(axis=1) + log_weights
    g = np.where(np.isnan(g), -np.inf, g)
    top = g.max(axis=1)
    weights = np.exp(g - top[:, None])
    total = weights.sum(axis=1)
    log_partition = top + np.log(total)
    size = np.abs(products[np.arange(len(rows)), :, g.argmax(axis=1)]).max(axis=1, initial=0.0)
    settled = np.abs(log_partition - before) <= _SETTLED + _ROUNDING * size
    if n >= _MOST:
        settled[:] = True
    if settled.any():
        done = rows[settled]
        weights, values = weights[settled] / total[settled, None], values[settled]
        # where there is no weight a function may be infinite
        values = np.where(weights[:, None, :] > 0, values, 0.0)
        means = (values @ weights[:, :, None])[:, :, 0]
        centred = values - means[:, :, None]
        x = np.where(weights > 0, at.x[settled], 0.0)
        mean = (weights * x).sum(axis=1)
        found.log_partition[done], found.means[done] = log_partition[settled], means
        weighted = weights[:, None, :] * centred
        found.covariances[done] = weighted @ centred.swapaxes(1, 2)
        found.of_number[done, 0] = mean
        x = x - mean[:, None]
        found.of_number[done, 1] = (weights * np.square(x)).sum(axis=1)
        found.covariances_of_number[done] = (weighted @ x[:, :, None])[:, :, 0]
    return settled, log_partition


def highest_places(
    support: type[Support], functions: Functions, natural: Array, low: Array, high: Array
) -> Array:
    """Return where g is highest between places around its peak, by the zero of its derivative."""
    rows = np.arange(len(natural))
    parts = np.linspace(0.0, 1.0, _ZOOM + 1)
    for _ in range(3):
        u = low[:, None] + (high - low)[:, None] * parts
        best = np.clip(exponents(support, functions, natural, u).argmax(axis=1), 1, _ZOOM - 1)
        low, high = u[rows, best - 1], u[rows, best + 1]
    for _ in range(_MOST_ZOOMS):
        u = low[:, None] + (high - low)[:, None] * parts
        rising = slopes(support, functions, natural, u) > 0
        last = np.clip(rising.cumprod(axis=1).sum(axis=1) - 1, 0, _ZOOM - 1)
        low, high = u[rows, last], u[rows, last + 1]
        if np.all(high - low <= 4e-16 * np.maximum(np.abs(low), 1.0)):
            break
    return 0.5 * (low + high)
