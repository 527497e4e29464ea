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


@dataclass(frozen=True)
class LowRank:
    """A table of low rank.

    Attributes
    ----------
    scores
        With weighted squares of mean 1, (rows, components).
    loadings
        In the units of the table, (columns, components).
    n_clear
        Components that are larger than those of noise alone.
    """

    scores: Array
    loadings: Array
    n_clear: int


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
    roots = np.sqrt(weights / weights.sum())
    variances = _variances(table, seen, roots)
    noise = np.full_like(variances, variances.mean()) if units == "one" else variances.copy()
    is_repeated = seen is not None or units == "noise"
    size = min(size, *table.shape)
    filled, share = table, 1.0
    for _ in range(_ROUNDS if is_repeated else 1):
        by = 1 / np.sqrt(noise)
        left, variance, right = _components(_scaled(filled, roots, by), size, rng)
        if units != "noise":
            share = max(float(len(noise) - variance.sum()), 0.0) / max(len(noise) - size, 1)
        kept = np.maximum(variance - share, 0.0)
        fitted = np.sqrt(kept) * right / by[:, None]
        before = noise
        if units == "noise":
            least = _LEAST_NOISE * variances
            noise = np.maximum(variances - np.square(fitted).sum(axis=1), least)
        if seen is not None:
            shrunk = kept / np.maximum(variance, np.finfo(float).tiny)
            scores = left / np.maximum(roots, np.finfo(float).tiny)[:, None]
            product = (scores * shrunk) @ (np.sqrt(variance) * right / by[:, None]).T
            filled = np.where(seen, table, product)
            variances = _variances(filled, None, roots)
        if seen is None and np.allclose(noise, before, rtol=_SETTLED, atol=0):
            break
    edge = share * (1 + np.sqrt(table.shape[1] / table.shape[0])) ** 2
    scores = left / np.maximum(roots, np.finfo(float).tiny)[:, None]
    loadings = np.sqrt(variance) * right / by[:, None]
    return LowRank(scores, loadings, int((variance > edge).sum()))


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


def _scaled(table: Any, rows: Array, columns: Array) -> Any:
    if isinstance(table, np.ndarray):
        return rows[:, None] * table * columns
    return table.multiply(rows[:, None]).multiply(columns).tocsr()


def _components(table: Any, size: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return left directions, squared singular values and right directions of the largest components."""
    n_rows, n_columns = table.shape
    if min(n_rows, n_columns) > _FEW or not isinstance(table, np.ndarray):
        directions = rng.normal(size=(n_columns, min(size + _MORE, n_rows, n_columns)))
        for _ in range(_POWERS):
            directions = np.linalg.qr(table.T @ np.linalg.qr(table @ directions)[0])[0]
        left, values, inner = np.linalg.svd(table @ directions, full_matrices=False)
        right = directions @ inner.T
    elif n_rows < n_columns:
        squares, left = np.linalg.eigh(table @ table.T)
        values = np.sqrt(np.maximum(squares, 0.0))[::-1]
        left = left[:, ::-1]
        right = table.T @ left / np.maximum(values, np.finfo(float).tiny)
    else:
        squares, right = np.linalg.eigh(table.T @ table)
        values = np.sqrt(np.maximum(squares, 0.0))[::-1]
        right = right[:, ::-1]
        left = table @ right / np.maximum(values, np.finfo(float).tiny)
    return left[:, :size], np.square(values[:size]), right[:, :size]
