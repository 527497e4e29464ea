"""Halves: points cut in two across directions in which two Gaussians explain them much better than one."""

from __future__ import annotations

import numpy as np

from ....._typing import AnyArray, Array

_FEWEST = 8
"""Points that are cut."""

_MOST_COLUMNS = 64
"""Columns that are looked at."""

_FLOOR = 1e-4
"""Smallest variance of a half, of that of the whole: equal values have none."""

_LEAST = 4
"""Points of a half."""

_FLAT = 1e-9
"""Variance of values, in their mean square, up to which they are equal: answers are all as far from their mean."""


def halves(points: Array, weights: Array, most: int) -> list[AnyArray]:
    """Return which points are in the first half of the best cuts, shape (n,) each, the best first.

    Cuts are made across columns, principal axes, and the distance from the mean. Each is where two Gaussians of the
    values along it have the highest likelihood; of two that put nearly the same points together the better one is told.

    Parameters
    ----------
    points
        Shape (n, d).
    weights
        Shape (n,), above 0.
    most
        Cuts at the most.

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [0.2], [0.3], [9.0], [9.1], [9.2], [9.3]])
    >>> halves(points, np.ones(8), 1)[0].astype(int)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """
    n_points = len(points)
    if n_points < _FEWEST:
        return []
    values = _along(points, weights)
    if not values.size:
        return []
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    own = weights[order]
    count, total = np.cumsum(own, axis=0), np.cumsum(own * ordered, axis=0)
    square = np.cumsum(own * ordered**2, axis=0)
    n, s, q = count[-1], total[-1], square[-1]
    whole = q / n - (s / n) ** 2
    is_flat = whole <= _FLAT * q / n
    whole = np.where(is_flat, 1.0, whole)
    floor = _FLOOR * whole
    one = np.maximum(square / count - (total / count) ** 2, floor)[:-1]
    rest = np.maximum(n - count[:-1], np.finfo(float).tiny)
    other = np.maximum((q - square[:-1]) / rest - ((s - total[:-1]) / rest) ** 2, floor)
    left = count[:-1]
    gains = n * np.log(whole) - left * np.log(one) - rest * np.log(other)
    gains += 2 * (left * np.log(left / n) + rest * np.log(rest / n))
    gains[~(np.diff(ordered, axis=0) > 0)] = -np.inf
    gains[: _LEAST - 1] = gains[n_points - _LEAST :] = gains[:, is_flat] = -np.inf
    edges = gains.argmax(axis=0)
    columns = np.arange(values.shape[1])
    found: list[AnyArray] = []
    for column in np.argsort(-gains[edges, columns], kind="stable"):
        if not np.isfinite(gains[edges[column], column]) or len(found) >= most:
            break
        half = values[:, column] > ordered[edges[column], column]
        if not any(_alike(half, before) for before in found):
            found.append(half)
    return found


def _along(points: Array, weights: Array) -> Array:
    """Return the values of points along columns, principal axes, and away from their mean, (n, v)."""
    centred = points - np.average(points, axis=0, weights=weights)
    spread = np.sqrt(np.average(centred**2, axis=0, weights=weights))
    widest = np.argsort(-spread, kind="stable")[:_MOST_COLUMNS]
    kept = widest[spread[widest] > 1e-9 * max(spread.max(), np.finfo(float).tiny)]
    if not kept.size:
        return np.empty((len(points), 0))
    units = centred[:, np.sort(kept)] / spread[np.sort(kept)]
    variances, axes = np.linalg.eigh((units * weights[:, None]).T @ units / weights.sum())
    is_axis = variances > 1e-9 * variances[-1]
    scores = (units @ axes[:, is_axis]) / np.sqrt(variances[is_axis])
    distance = np.sqrt(np.square(scores).sum(axis=1))
    if units.shape[1] == 1:
        return np.column_stack([units, distance])
    return np.column_stack([units, scores, distance])


def _alike(one: AnyArray, other: AnyArray) -> bool:
    """Whether two cuts put nine of ten points together alike."""
    same = np.mean(one == other)
    return bool(same > 0.9 or same < 0.1)
