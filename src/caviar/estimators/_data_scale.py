"""Location and scale of a table: what default priors are made of.

They depend on the weighted empirical distribution only, so that neither the order of the rows matters nor
whether a row of weight 2 stands there once or twice; and they follow a change of units, column by column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._errors import DataError
from .._typing import AnyArray, Array

__all__ = ["DataScale", "scale_of"]

_BLOCK_ROWS = 65_536
_CONSTANT = 1e-15
"""Standard deviation, relative to the largest value of a column, that is nothing but rounding."""
_SMALLEST, _LARGEST = 1e-153, 1e153
"""Standard deviations whose squares are ordinary floating-point numbers."""


@dataclass(frozen=True)
class DataScale:
    """Location and scale of the columns of a table.

    Attributes
    ----------
    mean
        Mean of each column, shape (D,).
    unit
        Standard deviation of each column, shape (D,), in the units of the column. A constant column has none;
        it is given the root mean variance of the others, or 1 if all are constant.
    correlation
        Correlation matrix, shape (D, D), shrunk to the identity as if D uncorrelated rows had been seen besides
        the rows of total weight W: entries off the diagonal are multiplied by W / (W + D). So it is positive
        definite for any data.
    """

    mean: Array
    unit: Array
    correlation: Array

    @property
    def covariance(self) -> Array:
        """Covariance matrix of the columns, shape (D, D), with the shrunk correlation."""
        return self.correlation * np.outer(self.unit, self.unit)

    @property
    def precision(self) -> Array:
        """Inverse of the covariance matrix, shape (D, D)."""
        inverse = np.linalg.inv(self.correlation)
        return 0.5 * (inverse + inverse.T) / np.outer(self.unit, self.unit)

    @property
    def mean_variance(self) -> float:
        """Mean variance of the columns."""
        return _mean_square(self.unit)


def scale_of(X: AnyArray, weights: Array | None = None) -> DataScale:
    """Return location and scale of the columns of a table of finite numbers.

    Two passes over blocks of rows, each column first scaled by a power of two near its largest value: exact,
    and safe at any scale whose square can be represented.

    Parameters
    ----------
    X
        Shape (N, D).
    weights
        Weight of each row, shape (N,), not all zero.

    Raises
    ------
    DataError
        If the variance of a column cannot be represented.

    Examples
    --------
    >>> scale = scale_of(np.array([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]]))
    >>> scale.mean, scale.unit.round(3)
    (array([3., 5.]), array([1.633, 1.633]))
    """
    total = float(len(X)) if weights is None else float(weights.sum())
    largest = np.max([np.abs(block).max(axis=0) for block, _ in _blocks(X, None)], axis=0)
    power = np.exp2(np.frexp(largest)[1].astype(np.float64) - 1)
    mean = sum(share @ (block / power) for block, share in _blocks(X, weights)) / total
    scatter = np.zeros((X.shape[1],) * 2)
    for block, share in _blocks(X, weights):
        deviation = block / power - mean
        scatter += (deviation * share[:, None]).T @ deviation
    spread = np.sqrt(np.diagonal(scatter) / total)
    varies = spread > _CONSTANT
    relative = np.where(varies, spread, np.inf)
    correlation = scatter / total / np.outer(relative, relative) * (total / (total + X.shape[1]))
    np.fill_diagonal(correlation, 1.0)
    return DataScale(mean * power, _units(spread * power, varies), correlation)


def _blocks(X: AnyArray, weights: Array | None) -> Iterator[tuple[Array, Array]]:
    for start in range(0, len(X), _BLOCK_ROWS):
        block = np.asarray(X[start : start + _BLOCK_ROWS], dtype=np.float64)
        yield block, np.ones(len(block)) if weights is None else weights[start : start + _BLOCK_ROWS]


def _units(spread: Array, varies: AnyArray) -> Array:
    own = spread[varies]
    beyond = (own < _SMALLEST) | (own > _LARGEST)
    if beyond.any():
        raise DataError(
            f"a column has standard deviation {own[beyond][0]:.3g}, whose square float64 cannot hold with all its "
            f"digits; give the data in other units"
        )
    return np.where(varies, spread, np.sqrt(_mean_square(own)) if own.size else 1.0)


def _mean_square(values: Array) -> float:
    """Return the mean square of positive numbers without overflow on the way."""
    largest = float(values.max())
    return float(np.mean(np.square(values / largest))) * largest**2
