"""Rows that are read on demand: only their shape, type and one block at a time are in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from .._errors import DataError
from .._typing import AnyArray, Array

BLOCK_ROWS = 8_192
"""Rows of a block in a pass that looks at rows outside the engine's own passes."""


class LazyRows(ABC):
    """An array of rows that need not be in memory.

    A slice of rows, ``rows[start:stop]``, is an array. Other NumPy operations need all rows at once and are refused.
    Several threads may read at the same time.

    Attributes
    ----------
    shape
        (N, ...).
    dtype
        Type of the arrays that are read.
    label
        Name of the rows in messages.
    together
        Number of rows that are read together.
    is_held
        Whether the rows are in memory or memory-mapped; an array of all rows can then be made if needed.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    label: str
    together: int = 1
    is_held: bool = False

    @abstractmethod
    def read(self, start: int, stop: int) -> AnyArray:
        """Return the rows from ``start`` to ``stop``, 0 <= start <= stop <= N, not to be written to."""

    @abstractmethod
    def between(self, start: int, stop: int) -> LazyRows:
        """Return the rows from ``start`` to ``stop`` as a separate object, which can be pickled."""

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        rows, others = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            self._refuse("choosing rows one by one")
        start, stop, _ = rows.indices(len(self))
        if others and (start, stop) == (0, len(self)):
            return Computed(
                _Chosen(others), (self,), self.read(0, 0)[(slice(None), *others)].shape[1:], self.dtype
            )
        block = self.read(start, max(start, stop))
        return block[(slice(None), *others)] if others else block

    def to_numpy(self) -> AnyArray:
        """Return all rows, in memory."""
        rows = np.empty(self.shape, self.dtype)
        for start, block in blocks_of(self):
            rows[start : start + len(block)] = block
        return rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        self._refuse("what is asked for")

    def __iter__(self) -> Iterator[Any]:
        self._refuse("going through rows one by one")

    def _refuse(self, what: str) -> NoReturn:
        raise DataError(
            f"{self.label}: {what} needs all {len(self):,} rows in memory, and they are read in blocks; pass "
            f".to_numpy() of them, an array, if they fit"
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Chosen:
    """The choice of some entries of every row."""

    others: tuple[Any, ...]

    def __call__(self, block: AnyArray) -> AnyArray:
        return block[(slice(None), *self.others)]


class StoredRows(LazyRows):
    """Rows of an array that takes slices itself and is not to be looked at as a whole, such as a memory map."""

    is_held = True

    def __init__(self, array: Any, label: str) -> None:
        self.array, self.label = array, label
        self.shape, self.dtype = array.shape, array.dtype

    def read(self, start: int, stop: int) -> AnyArray:
        # of the class of a plain array, which has less to do for each operation
        return np.ascontiguousarray(self.array[start:stop])

    def to_numpy(self) -> AnyArray:
        """Return the array itself."""
        return np.asarray(self.array)

    def between(self, start: int, stop: int) -> StoredRows:
        return StoredRows(self.array[start:stop], self.label)


class Computed(LazyRows):
    """Rows that are computed from blocks of others.

    Parameters
    ----------
    function
        From blocks of ``arrays`` to a block, row by row; to be pickled, a function of a module or such an object.
    arrays
        Arrays or lazy rows with as many rows each.
    event_shape
        Shape of a computed row.
    dtype
        Its type.
    """

    def __init__(
        self,
        function: Callable[..., AnyArray],
        arrays: Sequence[Any],
        event_shape: tuple[int, ...],
        dtype: Any,
    ) -> None:
        self.function, self.arrays = function, tuple(arrays)
        self.shape, self.dtype = (len(arrays[0]), *event_shape), np.dtype(dtype)
        self.together = max((array.together for array in arrays if isinstance(array, LazyRows)), default=1)
        self.label = next((array.label for array in arrays if isinstance(array, LazyRows)), "the rows")

    def read(self, start: int, stop: int) -> AnyArray:
        return self.function(*(array[start:stop] for array in self.arrays))

    def between(self, start: int, stop: int) -> Computed:
        parts = [a.between(start, stop) if isinstance(a, LazyRows) else a[start:stop] for a in self.arrays]
        return Computed(self.function, parts, self.shape[1:], self.dtype)


def blocks_of(rows: Any, size: int = BLOCK_ROWS) -> Iterator[tuple[int, AnyArray]]:
    """Yield (first row, block) of an array or of lazy rows."""
    for start in range(0, len(rows), size):
        yield start, rows[start : start + size]


def in_memory(rows: Any) -> Any:
    """Return lazy rows as an array, anything else unchanged."""
    return rows.to_numpy() if isinstance(rows, LazyRows) else rows


def as_floats(values: Any) -> Array:
    """Return an array of numbers, NaN where they are masked."""
    return np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
