"""Location and scale of a table: what default priors are made of.

They depend on the weighted empirical distribution only, so that neither the order of the rows matters nor
whether a row has weight 2 or comes twice; and they follow a change of units, column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import DataError
from ..._typing import AnyArray, Array
from ...lazy.block_map import map_blocks
from ...numerics.blas import one_blas_thread

_BLOCK_ROWS = 65_536
_ROUNDING = 4 * np.finfo(np.float64).eps
"""Half the range of a column, relative to its largest value, that is nothing but rounding."""
_TOGETHER = 2**17
"""Numbers of the tables whose means and units are computed together: they stay in the cache."""
_SMALLEST, _LARGEST = 1e-151, 1e153
"""Between these lie the standard deviations whose squares, summed over rows, are ordinary floating-point numbers."""


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
        definite for any data. None where columns are taken for uncorrelated, of which there may be many.
    n_rows
        Total weight W of the rows.
    """

    mean: Array
    unit: Array
    correlation: Array | None
    n_rows: float

    @property
    def covariance(self) -> Array:
        """Covariance matrix of the columns, shape (D, D), with the shrunk correlation."""
        return self._correlation * np.outer(self.unit, self.unit)

    @property
    def precision(self) -> Array:
        """Inverse of the covariance matrix, shape (D, D)."""
        inverse = np.linalg.inv(self._correlation)
        return 0.5 * (inverse + inverse.T) / np.outer(self.unit, self.unit)

    @property
    def _correlation(self) -> Array:
        assert self.correlation is not None
        return self.correlation


@one_blas_thread()
@np.errstate(invalid="ignore")
def scale_of(
    X: Any, weights: Any = None, *, correlated: bool = True, names: Sequence[Any] | None = None
) -> DataScale:
    """Return location and scale of the columns of a table of finite numbers, of which some may be missing (NaN).

    Three passes over blocks of rows: range, mean, scatter. Values are measured from the middle of the range in
    units of half of it: digits are not lost to a common offset, and nothing overflows.

    Parameters
    ----------
    X
        Shape (N, D), an array or rows that are read in blocks. Each column counts the rows that have it; correlations
        are shrunk where one is missing.
    weights
        Weight of each row, shape (N,), not all zero.
    correlated
        Whether correlations are wanted, which are D x D numbers.
    names
        Of the columns, for messages; None if they have none.

    Raises
    ------
    DataError
        If there is no row, or the variance of a column cannot be represented, or it has no value.

    Examples
    --------
    >>> scale = scale_of(np.array([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]]))
    >>> scale.mean, scale.unit.round(3)
    (array([3., 5.]), array([1.633, 1.633]))
    """
    mapped = _over_blocks(X, weights)
    total, observed = 0.0, np.zeros(X.shape[1])
    lowest, highest = np.full(X.shape[1], np.nan), np.full(X.shape[1], np.nan)
    for own, seen, least, most in mapped(_range):
        total += own
        observed += seen
        np.fmin(lowest, least, out=lowest)
        np.fmax(highest, most, out=highest)
    _refuse_empty_columns(lowest, X.shape[0], names)
    middle, half = lowest / 2 + highest / 2, highest / 2 - lowest / 2
    varies = half > _ROUNDING * np.maximum(np.abs(lowest), np.abs(highest))
    half = np.where(varies, half, np.inf)
    mean = sum(mapped(_Deviation(middle, half))) / observed
    scatter = sum(mapped((_Scatter if correlated else _Squares)(middle, half, mean)))
    spread = np.sqrt((np.diagonal(scatter) if correlated else scatter) / observed)
    correlation = None
    if correlated:
        relative = np.where(varies, spread, np.inf) * np.sqrt(observed)
        correlation = scatter / np.outer(relative, relative) * (total / (total + X.shape[1]))
        np.fill_diagonal(correlation, 1.0)
    size = np.where(varies, half, 0.0)
    return DataScale(middle + mean * size, _units(spread * size, varies, total, names), correlation, total)


def _known(deviation: Array) -> Array:
    """Return deviations from the mean, 0 where there is no value: so scatter stays positive semi-definite."""
    np.copyto(deviation, 0.0, where=np.isnan(deviation))
    return deviation


def _refuse_empty_columns(lowest: Array, n_rows: int, names: Sequence[Any] | None) -> None:
    empty = np.flatnonzero(np.isnan(lowest))
    if empty.size and not n_rows:
        raise DataError(
            "X has no rows, so nothing can be learned from it. If it was filtered, look at the filter"
        )
    if empty.size:
        raise DataError(
            f"column {_called(empty[0], names)} is NaN in every row with weight, so nothing can be learned from it. "
            f"Leave it out"
        )


def _called(number: int, names: Sequence[Any] | None) -> str:
    """Return what a message calls a column: its name, or else its number."""
    return str(number) if names is None else repr(str(names[number]))


def _over_blocks(X: Any, weights: Any) -> Callable[[Callable[[Array, Array], Any]], Iterable[Any]]:
    """Return what maps a function over blocks: of the rows of each that have a weight and a value, and their weights.

    Which rows of a single block these are is asked once.
    """
    is_here = type(X) is np.ndarray and (weights is None or type(weights) is np.ndarray)
    if is_here and 0 < len(X) <= _BLOCK_ROWS:
        only = _OfThoseThatCount(_both)(X, weights)
        return lambda function: [] if only is None else [function(*only)]
    return lambda function: (
        found
        for _, found in map_blocks(_OfThoseThatCount(function), X, weights, size=_BLOCK_ROWS)
        if found is not None
    )


def _both(block: Array, share: Array) -> tuple[Array, Array]:
    return block, share


@dataclass(frozen=True, eq=False)
class _OfThoseThatCount:
    function: Callable[[Array, Array], Any]

    # signalling NaNs are missing values, too
    @np.errstate(invalid="ignore")
    def __call__(self, rows: AnyArray, weights: Array | None) -> Any:
        block = np.ascontiguousarray(rows, dtype=np.float64)
        share = np.ones(len(block)) if weights is None else weights
        missing = np.isnan(block)
        if weights is None and not missing.any():
            return self.function(block, share)
        counts = (share > 0) & ~missing.all(axis=1)
        if counts.all():
            return self.function(block, share)
        return self.function(block[counts], share[counts]) if counts.any() else None


def _range(block: Array, share: Array) -> tuple[float, Array, Array, Array]:
    """Return the weight of a block, the weight of the values of each column, and their least and greatest."""
    # along the rows NumPy's loops are long
    columns = np.ascontiguousarray(block.T)
    seen = share @ ~np.isnan(block)
    return float(share.sum()), seen, np.fmin.reduce(columns, axis=1), np.fmax.reduce(columns, axis=1)


@dataclass(frozen=True, eq=False)
class _Deviation:
    """Sum of the deviations of a block from the middle."""

    middle: Array
    half: Array

    def __call__(self, block: Array, share: Array) -> Array:
        return share @ _known((block - self.middle) / self.half)


@dataclass(frozen=True, eq=False)
class _Scatter:
    """Sum of the products of the deviations of a block from the mean."""

    middle: Array
    half: Array
    mean: Array

    def __call__(self, block: Array, share: Array) -> Array:
        deviation = _known((block - self.middle) / self.half - self.mean)
        return (deviation * share[:, None]).T @ deviation


@dataclass(frozen=True, eq=False)
class _Squares:
    """Sum of the squares of the deviations of a block from the mean."""

    middle: Array
    half: Array
    mean: Array

    def __call__(self, block: Array, share: Array) -> Array:
        return share @ np.square(_known((block - self.middle) / self.half - self.mean))


def _units(spread: Array, varies: AnyArray, total: float, names: Sequence[Any] | None) -> Array:
    own = spread[varies]
    beyond = (own < _SMALLEST) | (own > _LARGEST / np.sqrt(max(total, 1.0)))
    if beyond.any():
        raise DataError(
            f"column {_called(np.flatnonzero(varies)[beyond][0], names)} has the standard deviation "
            f"{own[beyond][0]:.3g}, whose square is beyond double precision; give the column in other units"
        )
    if own.size == spread.size:
        return spread
    return np.where(varies, spread, np.sqrt(_mean_square(own)) if own.size else 1.0)


def _mean_square(values: Array) -> float:
    """Return the mean square of positive numbers without overflow on the way."""
    largest = float(values.max())
    return float(np.mean(np.square(values / largest))) * largest**2


def means_and_units(X: Array, counts: AnyArray) -> tuple[Array, Array, AnyArray]:
    """Return the mean and unit of each column of many tables, (G, D) each, and which tables have all of them, (G,).

    What :func:`scale_of` returns, to rounding; tables with a constant column, or of extreme sizes, have none here.

    Parameters
    ----------
    X
        Shape (G, N, D), complete; rows of a table beyond its own count nothing.
    counts
        Rows of each table, (G,).
    """
    n_tables = max(1, _TOGETHER // max(1, X[0].size))
    found = [
        _mean_and_unit(X[first : first + n_tables], counts[first : first + n_tables, None])
        for first in range(0, len(X), n_tables)
    ]
    mean, unit = np.concatenate([own for own, _ in found]), np.concatenate([own for _, own in found])
    n_rows = counts[:, None]
    size = np.abs(mean) + unit
    is_ordinary = (unit > 1e-12 * size) & (unit > _SMALLEST) & (unit < _LARGEST / np.sqrt(n_rows))
    return mean, unit, np.asarray(np.logical_and.reduce(is_ordinary, axis=1))


def _mean_and_unit(X: Array, counts: AnyArray) -> tuple[Array, Array]:
    """Return the mean and standard deviation of each column of some tables, (G, D); ``counts`` has shape (G, 1)."""
    # along the rows NumPy's loops are long
    rows = np.array(X.swapaxes(1, 2), dtype=np.float64, order="C")
    own = (np.arange(X.shape[1]) < counts).astype(np.float64)[..., None]
    mean = (rows @ own)[..., 0] / counts
    rows -= mean[..., None]
    more = (rows @ own)[..., 0] / counts
    rows -= more[..., None]
    return mean + more, np.sqrt((np.square(rows, out=rows) @ own)[..., 0] / counts)
