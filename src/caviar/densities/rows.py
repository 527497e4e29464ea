"""Rows of data: checked, grouped by which of their entries were observed, and cut into blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._errors import DataError
from .._typing import AnyArray

_BLOCK_ROWS = 4096
_BLOCK_ENTRIES = 2**20


def as_rows(X: Any, n_features: int) -> AnyArray:
    """Return rows as an array of numbers, (N, D); masked entries are NaN, and one column may be a plain list.

    Raises
    ------
    DataError
        If it is not that, or an entry is infinite.

    Examples
    --------
    >>> as_rows([1.0, np.nan], 1)
    array([[ 1.],
           [nan]])
    """
    if np.ma.isMaskedArray(X):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        array = np.asarray(X)
        if array.dtype.kind not in "fiub":
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"expected rows of numbers, shape (N, {n_features}); got {type(X).__name__}"
        ) from None
    if array.ndim == 1 and n_features == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != n_features:
        raise DataError(f"expected rows of shape (N, {n_features}); got shape {array.shape}")
    if array.dtype.kind == "f":
        for start in range(0, len(array), _BLOCK_ROWS):
            if np.isinf(array[start : start + _BLOCK_ROWS]).any():
                raise DataError("expected finite numbers, or NaN for missing entries; got an infinite one")
    return array


def patterns(missing: AnyArray) -> Iterator[tuple[AnyArray, AnyArray, AnyArray]]:
    """Yield each pattern of missing entries once: columns observed, columns missing, and the rows that have it.

    Parameters
    ----------
    missing
        Booleans, shape (N, D).

    Examples
    --------
    >>> for observed, absent, rows in patterns(np.array([[True, False], [False, False], [True, False]])):
    ...     print(observed, absent, rows)
    [0 1] [] [1]
    [1] [0] [0 2]
    """
    n_rows, n_features = missing.shape
    if n_rows == 0:
        return
    if n_features == 0 or not missing.any():
        yield np.flatnonzero(~missing[0]), np.flatnonzero(missing[0]), np.arange(n_rows)
        return
    packed = np.packbits(missing, axis=1)
    # the bytes of a row as one value: sorting those is quicker than sorting rows
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, labels = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    for representative, rows in zip(first, np.split(order, ends[:-1]), strict=True):
        yield np.flatnonzero(~missing[representative]), np.flatnonzero(missing[representative]), rows


def blocks(n_rows: int, entries_per_row: int) -> Iterator[slice]:
    """Yield slices of rows, small enough for arrays with a given number of entries per row.

    Examples
    --------
    >>> len(list(blocks(10_000, 5)))
    3
    """
    step = max(1, min(_BLOCK_ROWS, _BLOCK_ENTRIES // max(1, entries_per_row)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
