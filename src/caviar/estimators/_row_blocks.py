"""Rows predicted a block at a time: memory beyond the result does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .._typing import AnyArray
from ..lazy.rows import BLOCK_ROWS

_ENTRIES = 2**21
"""Largest number of entries of an array with a block's rows, where that leaves enough rows to be worth a call."""


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
