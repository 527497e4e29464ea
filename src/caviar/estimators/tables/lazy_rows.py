"""Rows that are read in blocks, under scikit-learn's contract: names and number of columns, finite numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from ..._errors import DataError
from ..._typing import AnyArray, Array
from ...data import as_rows, column_names
from ...engine.binding.values import as_weights
from ...lazy.block_map import map_blocks
from ...lazy.rows import BLOCK_ROWS, Computed, LazyRows, in_memory
from ...lazy.sparse_rows import SparseRows

_BLOCK_ROWS = 65_536
_ENTRIES = 2**21
"""Largest number of entries of an array with a block's rows, where that leaves enough rows to be worth a call."""


def lazy_rows(X: Any) -> LazyRows | None:
    """Return rows that are read in blocks, from a table or a column of numbers; None for arrays and the like."""
    rows = as_rows(X)
    if isinstance(rows, SparseRows):
        raise DataError(
            f"{rows.label}: documents that are read in blocks are data of LatentDirichletAllocation; a table on "
            f"disk is cv.scan(...)"
        )
    return rows if isinstance(rows, LazyRows) and rows.ndim in (1, 2) else None


def checked_rows(estimator: Any, X: Any, rows: LazyRows, *, reset: bool) -> LazyRows:
    """Return rows (N, D) of finite numbers, or NaN, whose columns are those of the fit, or are remembered (``reset``).

    Raises
    ------
    DataError
        If they are not a table, or a number is infinite.
    ValueError
        If the columns are others, or have other names.
    """
    if rows.ndim != 2:
        raise DataError(
            f"X must be a table, shape (N, D); got a column of shape {rows.shape}: table[['a']] instead of table['a']"
        )
    validate_data(estimator, X=_header(X, rows.shape[1]), reset=reset, skip_check_array=True)
    for start, infinite in map_blocks(_first_infinite, rows, size=_BLOCK_ROWS):
        if infinite is not None:
            raise DataError(
                f"X has an infinity in row {start + infinite}; drop or impute such rows before the fit"
            )
    return rows


def checked_documents(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return counts that are read in blocks, whose columns are those of the fit, or are remembered (``reset``)."""
    validate_data(estimator, X=_header(X, X.shape[1]), reset=reset, skip_check_array=True)
    return X


def _first_infinite(block: AnyArray) -> int | None:
    """Return the first row of a block with an infinity; None if there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        # a sum is finite only if its terms are
        if np.isfinite(block.sum(dtype=np.float64)):
            return None
    infinite = np.isinf(block).any(axis=1)
    return int(np.argmax(infinite)) if infinite.any() else None


def _header(X: Any, n_columns: int) -> Any:
    """Return what has the columns of a table and no rows."""
    names = column_names(X)
    if names is None:
        return np.empty((0, n_columns))
    if hasattr(X, "_meta"):
        # of a Dask DataFrame, whose names need not be text
        return X._meta
    return import_module("pyarrow").table({name: np.empty(0) for name in names})


def as_column(rows: LazyRows) -> LazyRows:
    """Return rows (N,) as rows (N, 1)."""
    return Computed(_one_column, (rows,), (1,), rows.dtype) if rows.ndim == 1 else rows


def _one_column(block: AnyArray) -> AnyArray:
    return block[:, None]


def checked_weights(sample_weight: Any, X: Any) -> Any:
    """Return weights of rows, not negative; lazy where they and the rows are."""
    weights = as_rows(sample_weight)
    if isinstance(weights, LazyRows):
        if isinstance(X, LazyRows):
            return as_weights(weights, len(X))
        weights = weights.to_numpy()
    # rows that need no memory in place of those of X
    rows = np.broadcast_to(0.0, (len(X), 1)) if isinstance(X, LazyRows) else X
    return _check_sample_weight(weights, rows, dtype=np.float64, ensure_non_negative=True)


def mean_of_rows(densities: Array, weights: Array | None) -> float:
    """Return the mean log density of rows; one without weight counts nothing, however improbable it is."""
    if weights is None:
        return float(densities.mean())
    counts = weights > 0
    return float(np.average(densities[counts], weights=weights[counts]))


def is_all_missing(X: Any) -> bool:
    """Whether rows hold nothing but NaN."""
    return X.dtype.kind == "f" and all(found for _, found in map_blocks(_is_missing, X))


def _is_missing(block: AnyArray) -> bool:
    return bool(np.isnan(block).all())


def whole(X: Any, what: str) -> Any:
    """Return rows for what needs them all: a memory map or an Arrow table as an array; refuse those of other tables.

    Raises
    ------
    DataError
        If they are read in blocks.
    """
    if isinstance(X, LazyRows) and not X.is_held:
        raise DataError(
            f"{what} needs all {len(X):,} rows in memory, and they are read in blocks; pass an array, "
            f"table.to_numpy(), if they fit"
        )
    return in_memory(X)


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows for arrays of some width; they depend on the two alone.

    Examples
    --------
    >>> [block.stop for block in row_blocks(100_000, 100)]
    [20971, 41942, 62913, 83884, 100000]
    """
    size = max(BLOCK_ROWS, _ENTRIES // max(1, width))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def filled(array: AnyArray, pieces: Iterable[tuple[slice, Any]]) -> AnyArray:
    """Return an array with pieces of it written where they belong.

    Examples
    --------
    >>> import numpy as np
    >>> filled(np.zeros(3), [(slice(0, 2), [1, 2]), (slice(2, 3), [3])])
    array([1., 2., 3.])
    """
    for where, values in pieces:
        array[where] = values
    return array
