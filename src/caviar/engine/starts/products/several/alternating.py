r"""Alternating least squares: cells of a table with several ways as sums of products of a number for each way.

.. math:: y_{ijk} \approx \sum_r u_{ir} \, v_{jr} \, w_{kr}

Given the factors of all ways but one, those are a regression for each place along it. A step shrinks as a prior of the
width that the factors have would: without that, two components may grow without bound and cancel each other. Where it
ends depends on where it begins, so there are several beginnings, and the best residual wins.

Source: Kolda and Bader, "Tensor decompositions and applications", SIAM Review (2009), section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from ....._typing import AnyArray, Array
from ..low_rank import leading

Factors: TypeAlias = list[Array]
"""For each way the factors of its places, (places, beginnings, components)."""

_BEGINNINGS = 10
"""Beginnings at the most: leading singular vectors, and others by chance."""

_NUMBERS = 4_000_000
"""Numbers of a step, cells times squares of components, that all beginnings may have together."""

_FIRST_SWEEPS, _MORE_SWEEPS = 30, 150
"""Sweeps of all beginnings, and of the best one of them after that."""

_MOST_NUMBERS = 2e8
"""Numbers of all sweeps of the best one together, where those are fewer."""

_SETTLED = 1e-5
"""Relative change of the residual in a sweep that ends them."""

_FIRST_NOISE, _LEAST_NOISE = 0.1, 1e-10
"""Shares of the mean square of the cells that are noise at first, and at least."""

_LEAST = 0.01
"""Factor that is not negative, at least, in units of the root of their mean square."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Observed cells of a table with several ways.

    Attributes
    ----------
    which
        Number of each cell in the table.
    places
        For each way the place of each cell along it.
    sizes
        Number of places of each way.
    values, weights
        Of the cells.
    variances
        Of the factors of each way, by which they are shrunk.
    is_positive
        Whether the factors of each way are not negative.
    """

    which: AnyArray
    places: Sequence[AnyArray]
    sizes: Sequence[int]
    values: Array
    weights: Array
    variances: Sequence[float]
    is_positive: Sequence[bool]


def is_too_large(cells: Cells, size: int) -> bool:
    """Whether a sweep over the cells would take too long."""
    return len(cells.values) * size**2 > _NUMBERS


def alternated(cells: Cells, size: int, rng: np.random.Generator) -> list[Array]:
    """Return the factors of each way, (places, components), that leave the least of the cells."""
    number = max(1, min(_BEGINNINGS, _NUMBERS // (len(cells.values) * size**2)))
    sums = [
        csr_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=(n_places, len(own)))
        for own, n_places in zip(cells.places, cells.sizes, strict=True)
    ]
    begun = _beginnings(cells, size, number, rng)
    start = np.full(number, _FIRST_NOISE * _mean_square(cells, cells.values[:, None])[0])
    factors, noise = _swept(cells, sums, begun, start, _FIRST_SWEEPS)
    best = int(np.argmin(noise))
    factors = [own[:, [best]] for own in factors]
    n_more = min(_MORE_SWEEPS, int(_MOST_NUMBERS / (len(cells.values) * size**2)))
    factors, _ = _swept(cells, sums, factors, noise[[best]], n_more)
    return [own[:, 0] for own in factors]


def _beginnings(cells: Cells, size: int, number: int, rng: np.random.Generator) -> Factors:
    """Return factors to begin with: the first ones along which the table has most, the others by chance."""
    found = []
    for way, n_places in enumerate(cells.sizes):
        width = cells.variances[way] ** 0.5
        own = width * rng.normal(size=(n_places, number, size))
        left = _leading_of(cells, way, min(size, n_places), rng)
        own[:, 0, : left.shape[1]] = left * (width * np.sqrt(n_places))
        found.append(np.abs(own) if cells.is_positive[way] else own)
    return found


def _leading_of(cells: Cells, way: int, size: int, rng: np.random.Generator) -> Array:
    """Return leading left singular vectors of the table with a row for each place along a way."""
    others = np.zeros(len(cells.values), dtype=np.int64)
    for place, (own, n_places) in enumerate(zip(cells.places, cells.sizes, strict=True)):
        if place != way:
            others = others * n_places + own
    columns, column = np.unique(others, return_inverse=True)
    shape = cells.sizes[way], len(columns)
    table = csr_array((cells.weights * cells.values, (cells.places[way], column)), shape=shape)
    is_small = shape[0] * shape[1] <= _NUMBERS
    return leading(table.toarray() if is_small else table, min(size, *shape), rng)[0]


def _swept(
    cells: Cells, sums: Sequence[csr_array], factors: Factors, noise: Array, n_sweeps: int
) -> tuple[Factors, Array]:
    """Return factors after some sweeps over the ways, and the mean squares that they leave of the cells."""
    least = _LEAST_NOISE * _mean_square(cells, cells.values[:, None])[0]
    for _ in range(n_sweeps):
        before = noise
        for way in range(len(factors)):
            factors[way] = _regressed(cells, sums[way], factors, way, noise)
        factors = _in_balance(cells, factors)
        noise = np.maximum(_mean_square(cells, cells.values[:, None] - _explained(cells, factors)), least)
        if np.abs(noise - before).max() <= _SETTLED * noise.min():
            break
    return factors, noise


def _regressed(cells: Cells, sums: csr_array, factors: Factors, way: int, noise: Array) -> Array:
    """Return the factors of a way, given those of the others."""
    others = _multiplied(cells, factors, way)
    weighted = cells.weights[:, None, None] * others
    n_cells, number, size = others.shape
    squares = sums @ (weighted[..., :, None] * others[..., None, :]).reshape(n_cells, -1)
    linear = sums @ (weighted * cells.values[:, None, None]).reshape(n_cells, -1)
    ridge = np.maximum(noise / cells.variances[way], np.finfo(float).tiny)
    squares = squares.reshape(-1, number, size, size) + ridge[:, None, None] * np.eye(size)
    found = np.linalg.solve(squares, linear.reshape(-1, number, size, 1))[..., 0]
    if not cells.is_positive[way]:
        return found
    least = _LEAST * np.sqrt(np.square(found).mean(axis=0))
    return np.maximum(found, least)


def _in_balance(cells: Cells, factors: Factors) -> Factors:
    """Return the same products of factors that are as wide for each way, in their units."""
    units = np.sqrt(cells.variances)
    widths = [np.sqrt(np.square(own).mean(axis=0)) / unit for own, unit in zip(factors, units, strict=True)]
    common = np.prod(widths, axis=0) ** (1 / len(widths))
    return [
        own * np.divide(common, width, out=np.ones_like(width), where=width > 0)
        for own, width in zip(factors, widths, strict=True)
    ]


def _explained(cells: Cells, factors: Factors) -> Array:
    """Return the sum of the products of factors, (cells, beginnings)."""
    return _multiplied(cells, factors, None).sum(axis=-1)


def _multiplied(cells: Cells, factors: Factors, but: int | None) -> Array:
    """Return the products of the factors of all ways, or of all but one, (cells, beginnings, components)."""
    chosen = [own[place] for own, place in zip(factors, cells.places, strict=True)]
    return np.prod([own for way, own in enumerate(chosen) if way != but], axis=0)


def _mean_square(cells: Cells, values: Array) -> Array:
    return cells.weights @ np.square(values) / cells.weights.sum()
