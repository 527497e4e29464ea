r"""Multiplied: labels of points whose clusters are products of two numbers, one of each of two labels.

.. math:: y_{nd} \approx a_{z_n d} \, b_{v_n d}

Each round puts a point where its residual is least, over all pairs of labels at once, and then solves for the numbers
of one label given those of the other, in turn. It begins with numbers that a few points tell: one for the first
pair of categories, and one for each other category of either label beside the first of the other. That is done many
times for the means of small clusters, and the best begins go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...._typing import AnyArray, Array
from .partitions import partition

_PIECES = 4
"""Small clusters for each pair of labels, in the place of the points at first."""

_DRAWS, _BEGUN = 3_000, 60
"""Times that numbers are drawn, and how many of the best begins go on."""

_MOST_NUMBERS = 30_000_000
"""Residuals of all draws together; of larger problems there are fewer draws."""

_ROUNDS, _TURNS = 20, 2
"""Times that points are put anew at most, and solutions of each side between."""

_FURTHER = 3
"""Ends of small clusters from which all points go on, for each pair of labels that is wanted."""

_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Numbers of the categories of two labels, several times: (m, K, d or 1) and (m, C, d or 1)."""

    first: Array
    second: Array

    @property
    def centres(self) -> Array:
        """Their products, (m, K C, d)."""
        found = self.first[:, :, None] * self.second[:, None]
        return found.reshape(len(found), -1, found.shape[-1])

    def only(self, kept: AnyArray) -> _Numbers:
        """Return some of them."""
        return _Numbers(self.first[kept], self.second[kept])


def multiplied(
    points: Array,
    weights: Array,
    sizes: tuple[int, int],
    varies: tuple[bool, bool],
    rng: np.random.Generator,
    most: int,
) -> list[tuple[AnyArray, AnyArray]]:
    """Return pairs of labels of points, (n,) each, best first.

    Parameters
    ----------
    points, weights
        Shapes (n, d) and (n,).
    sizes
        Categories of each label.
    varies
        Whether the numbers of each label differ from column to column.
    most
        Pairs of labels at the most.
    """
    if varies == (False, True):
        turned = multiplied(points, weights, (sizes[1], sizes[0]), (True, False), rng, most)
        return [(first, second) for second, first in turned]
    if varies == (False, False):
        points = points.mean(axis=1, keepdims=True)
    n_pairs = sizes[0] * sizes[1]
    few, few_weights = _means(points, weights, _PIECES * n_pairs, rng)
    n_draws = int(np.clip(_MOST_NUMBERS / (few.size * n_pairs), _BEGUN, _DRAWS))
    drawn = _drawn(few, sizes, n_draws, rng, is_number=not varies[1])
    costs, _ = _nearest(few, few_weights, drawn)
    best = np.argsort(costs, kind="stable")[:_BEGUN]
    costs, begun, _ = _descended(few, few_weights, drawn.only(best))
    costs, _, pairs = _descended(points, weights, begun.only(np.array(_distinct(costs)[: _FURTHER * most])))
    return [(pairs[place] // sizes[1], pairs[place] % sizes[1]) for place in _distinct(costs)[:most]]


def _means(points: Array, weights: Array, n_clusters: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the means of small clusters and their weights; the points themselves if they are few."""
    if len(points) <= n_clusters:
        return points, weights
    labels = partition(points, weights, n_clusters, rng)
    counts: Array = np.bincount(labels, weights).astype(np.float64)
    sums = np.stack([np.bincount(labels, weights * column) for column in points.T], axis=1)
    kept = counts > 0
    return sums[kept] / counts[kept, None], counts[kept]


def _drawn(
    points: Array, sizes: tuple[int, int], n_draws: int, rng: np.random.Generator, *, is_number: bool
) -> _Numbers:
    """Return numbers estimated from a few points; for the second label one for all columns, or one each."""
    drawn = points[rng.integers(len(points), size=(n_draws, sizes[0] + sizes[1] - 1))]
    first, others = drawn[:, : sizes[0]], drawn[:, sizes[0] :]
    base = first[:, :1]
    if is_number:
        ratios = (others * base).sum(axis=2, keepdims=True) / (np.square(base).sum(axis=2, keepdims=True))
    else:
        ratios = others / base
    ones = np.ones((n_draws, 1, ratios.shape[2]))
    return _Numbers(first, np.nan_to_num(np.concatenate([ones, ratios], axis=1), posinf=0.0, neginf=0.0))


def _nearest(points: Array, weights: Array, numbers: _Numbers) -> tuple[Array, AnyArray]:
    """Return the squares that are left, (m,), and the pair of labels of each point, (m, n)."""
    centres = numbers.centres
    residuals = np.zeros((len(centres), len(points), centres.shape[1]))
    for column, own in zip(points.T, np.moveaxis(centres, 2, 0), strict=True):
        residuals += np.square(column[:, None] - own[:, None])
    pairs = residuals.argmin(axis=2)
    return np.take_along_axis(residuals, pairs[..., None], axis=2)[..., 0] @ weights, pairs


def _descended(points: Array, weights: Array, numbers: _Numbers) -> tuple[Array, _Numbers, AnyArray]:
    """Return where points put to their least residual, and numbers of these points, in turn lead."""
    costs, pairs = _nearest(points, weights, numbers)
    for _ in range(_ROUNDS):
        before = costs
        numbers = _solved(points, weights, numbers, pairs)
        costs, pairs = _nearest(points, weights, numbers)
        if np.allclose(costs, before, rtol=_SAME, atol=0):
            break
    return costs, numbers, pairs


def _solved(points: Array, weights: Array, numbers: _Numbers, pairs: AnyArray) -> _Numbers:
    """Return the numbers of least squares of points in these pairs, of each label given the other, in turn."""
    m, (n_first, n_second) = len(pairs), (numbers.first.shape[1], numbers.second.shape[1])
    place = (np.arange(m)[:, None] * (n_first * n_second) + pairs).ravel()
    every = np.broadcast_to(weights, pairs.shape).ravel()
    size, shape = m * n_first * n_second, (m, n_first, n_second)

    def summed(values: Array) -> Array:
        return np.bincount(place, values, size).reshape(shape).astype(np.float64)

    counts = summed(every)[..., None]
    sums = np.stack([summed(every * np.tile(column, m)) for column in points.T], axis=3)
    first, second = numbers.first, numbers.second
    for _ in range(_TURNS):
        first = _divided(sums * second[:, None], counts * np.square(second[:, None]), 2, first)
        second = _divided(sums * first[:, :, None], counts * np.square(first[:, :, None]), 1, second)
    return _Numbers(first, second)


def _divided(products: Array, squares: Array, axis: int, before: Array) -> Array:
    """Return ratios of sums along an axis, and over columns where these share a number; as before where empty."""
    squares = np.broadcast_to(squares, products.shape)
    above, below = products.sum(axis=axis), squares.sum(axis=axis)
    if before.shape[2] < above.shape[2]:
        above, below = above.sum(axis=2, keepdims=True), below.sum(axis=2, keepdims=True)
    return np.divide(above, below, out=before.copy(), where=below > 0)


def _distinct(costs: Array) -> list[int]:
    """Return the places of different costs, the least first."""
    found: list[int] = []
    for place in np.argsort(costs, kind="stable").tolist():
        if not found or not np.isclose(costs[place], costs[found[-1]], rtol=_SAME, atol=0):
            found.append(place)
    return found
