r"""Low rank: a table as the product of scores of its rows and loadings of its columns.

.. math:: Y_{lr} \approx \sum_k u_{lk} \, b_{rk}

Columns are measured in units of their noise, which what the product leaves of them tells (principal axis
factoring), of their spread, or in one unit. Entries that are missing are filled with the product, shrunk as its
posterior mean is (Tipping and Bishop, "Probabilistic principal component analysis", JRSS B 1999), and both are repeated
until they settle. A table too large to be filled is taken as it is, with its missing entries at 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ...._typing import AnyArray, Array

Units: TypeAlias = Literal["noise", "spread", "one"]
"""What columns are measured in."""

_ROUNDS, _SETTLED = 25, 0.02
"""Times that missing entries and noise are found anew at most, and the relative change of the noise that ends them."""

_LEAST_NOISE = 0.01
"""Share of a column's variance that is noise, at least: a factor would become the column."""

_FEW = 300
"""Rows or columns up to which all components are found, and not only the first."""

_MORE, _POWERS = 10, 4
"""Directions beside those that are asked for, and products with a table, by which random directions turn to them."""

_NOTHING = 1e-12
"""Share of the largest variance that is rounding."""

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class LowRank:
    """A table of low rank.

    Attributes
    ----------
    scores
        With weighted squares of mean 1, (rows, components).
    loadings
        In the units of the table, (columns, components).
    """

    scores: Array
    loadings: Array


def low_rank(
    table: Any, seen: AnyArray | None, weights: Array, size: int, units: Units, rng: np.random.Generator
) -> LowRank:
    """Return the leading components of a table, fewer than ``size`` where it has no more.

    Parameters
    ----------
    table
        Numbers about 0, (rows, columns): an array, or a sparse matrix that is taken as it is.
    seen
        Which of them were seen, of the same shape; None if all were.
    weights
        Of the rows.
    size
        Number of components.
    """
    unit = float(abs(table).max()) or 1.0
    table, roots = table / unit, np.sqrt(weights / weights.sum())
    variances = _variances(table, seen, roots)
    noise = np.full_like(variances, variances.mean()) if units == "one" else variances
    found = _components(table, roots, noise, size, rng)
    for _ in range(_ROUNDS):
        before = noise
        share = 1.0 if units == "noise" else found.left_over
        if units == "noise":
            noise = np.maximum(variances - found.explained(share), _LEAST_NOISE * variances)
        if seen is not None:
            table = np.where(seen, table, found.shrunk(roots, share))
            variances = _variances(table, None, roots)
        elif np.allclose(noise, before, rtol=_SETTLED, atol=0):
            break
        found = _components(table, roots, noise, size, rng)
    return LowRank(found.scores(roots), found.loadings * unit)


@dataclass(frozen=True, eq=False)
class _Components:
    """The leading components of a table in units of the noise of its columns.

    Attributes
    ----------
    left
        Directions of the rows times the roots of their weights, (rows, components).
    variances
        In these units, (components,).
    right
        Directions of the columns, (columns, components).
    noise
        Variance of each column's noise, (columns,).
    """

    left: Array
    variances: Array
    right: Array
    noise: Array

    @property
    def loadings(self) -> Array:
        """What a score of 1 adds to each column, (columns, components)."""
        return np.sqrt(self.variances) * self.right * np.sqrt(self.noise)[:, None]

    @property
    def left_over(self) -> float:
        """Variance of a column, in its unit, that is in no component, by the directions that are left."""
        n_columns = len(self.noise)
        return max(n_columns - float(self.variances.sum()), 0.0) / max(n_columns - len(self.variances), 1)

    def scores(self, roots: Array) -> Array:
        """Return the scores of the rows, (rows, components)."""
        return self.left / np.maximum(roots, _TINY)[:, None]

    def explained(self, share: float) -> Array:
        """Return the variance of each column that components explain beside noise of this share, (columns,)."""
        return np.square(self.right) @ np.maximum(self.variances - share, 0.0) * self.noise

    def shrunk(self, roots: Array, share: float) -> Array:
        """Return the table of posterior means, given noise of this share, (rows, columns)."""
        factors = np.maximum(self.variances - share, 0.0) / np.maximum(self.variances, _TINY)
        return (self.scores(roots) * factors) @ self.loadings.T


def _variances(table: Any, seen: AnyArray | None, roots: Array) -> Array:
    """Return the mean squares of the columns, those without any at the mean of the others."""
    if isinstance(table, np.ndarray):
        squares = np.square(roots) @ np.square(table)
        counts = np.ones(len(squares)) if seen is None else np.square(roots) @ seen
    else:
        squares = np.asarray(table.multiply(table).T @ np.square(roots)).ravel()
        counts = np.ones(len(squares))
    found = np.divide(squares, counts, out=np.zeros_like(squares), where=counts > 0)
    positive = found[found > 0]
    return np.where(found > 0, found, positive.mean() if len(positive) else 1.0)


def _components(table: Any, roots: Array, noise: Array, size: int, rng: np.random.Generator) -> _Components:
    """Return the leading components of a table, whose rows count as the squares of these roots."""
    by = 1 / np.sqrt(noise)
    if isinstance(table, np.ndarray):
        scaled = roots[:, None] * table * by
    else:
        scaled = table.multiply(roots[:, None]).multiply(by).tocsr()
    left, variances, right = leading(scaled, min(size, *table.shape), rng)
    return _Components(left, variances, right, noise)


def leading(table: Any, size: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return left directions, squared singular values and right directions of the largest components."""
    n_rows, n_columns = table.shape
    if min(n_rows, n_columns) > _FEW or not isinstance(table, np.ndarray):
        directions = rng.normal(size=(n_columns, min(size + _MORE, n_rows, n_columns)))
        for _ in range(_POWERS):
            directions = np.linalg.qr(table.T @ np.linalg.qr(table @ directions)[0])[0]
        left, values, inner = np.linalg.svd(table @ directions, full_matrices=False)
        return left[:, :size], np.square(values[:size]), (directions @ inner.T)[:, :size]
    if n_rows < n_columns:
        right, squares, left = leading(table.T, size, rng)
        return left, squares, right
    squares, right = np.linalg.eigh(table.T @ table)
    squares, right = np.maximum(squares[::-1][:size], 0.0), right[:, ::-1][:, :size]
    # directions that the table has nothing in have no scores
    roots = np.sqrt(np.where(squares > _NOTHING * squares.max(initial=0.0), squares, np.inf))
    return table @ right / roots, squares, right
