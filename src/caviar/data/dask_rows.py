"""Rows of Dask arrays and DataFrames: of a chunk, nothing but what it needs is computed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import DataError
from .._typing import AnyArray
from .pieces import PieceRows

__all__ = ["dask_rows"]


def dask_rows(value: Any) -> PieceRows:
    """Return a Dask array, DataFrame or Series as rows.

    Chunks whose numbers of rows are unknown, as those of DataFrames, are computed once to find out.

    Raises
    ------
    DataError
        If it is no such collection, or does not hold numbers.
    """
    if hasattr(value, "chunks") and hasattr(value, "blocks"):
        return _array_rows(value)
    if hasattr(value, "partitions") and hasattr(value, "map_partitions"):
        return _frame_rows(value)
    raise DataError(
        f"expected a Dask array, DataFrame or Series; got {type(value).__name__}, so compute it first"
    )


def _array_rows(value: Any) -> PieceRows:
    if value.ndim == 0 or value.dtype.kind not in "biuf":
        raise DataError(
            f"a Dask array of data must hold numbers, rows first; got {value.ndim} axes of {value.dtype}"
        )
    if any(np.isnan(size) for sizes in value.chunks for size in sizes):
        value = value.compute_chunk_sizes()
    return PieceRows(
        _DaskPieces(value, tuple(map(int, value.chunks[0])), value.shape[1:], value.dtype, is_array=True)
    )


def _frame_rows(value: Any) -> PieceRows:
    is_table = value.ndim == 2
    kinds = dict(value.dtypes.items()) if is_table else {str(value.name): value.dtype}
    for name, kind in kinds.items():
        # pandas's own types of numbers, which know missing values, have the kind too
        if getattr(kind, "kind", "O") not in "biuf":
            raise DataError(
                f"the column {name!r} of the Dask DataFrame does not hold numbers: its type is {kind}. Choose columns "
                f"of numbers, ddf[[...]]"
            )
    lengths = tuple(int(length) for length in value.map_partitions(len).compute(**_scheduler()))
    single = all(getattr(kind, "itemsize", 8) == 4 and kind.kind == "f" for kind in kinds.values())
    dtype = np.dtype(np.float32 if single else np.float64)
    return PieceRows(_DaskPieces(value, lengths, (len(kinds),) if is_table else (), dtype, is_array=False))


def _scheduler() -> dict[str, str]:
    """Return where a chunk is computed: in the thread that wants it, unless a cluster holds what it needs."""
    base = sys.modules.get("dask.base")
    chosen = None if base is None else base.get_scheduler()
    return {} if chosen is not None else {"scheduler": "synchronous"}


@dataclass(frozen=True, eq=False)
class _DaskPieces:
    """The chunks of a collection along its rows."""

    collection: Any
    lengths: tuple[int, ...]
    event_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_array: bool
    label: str = "the Dask collection"

    def decode(self, number: int) -> AnyArray:
        own = self.collection
        found = (own.blocks[number] if self.is_array else own.partitions[number]).compute(**_scheduler())
        # a copy: the graph may hold the very array
        values = np.array(found if self.is_array else _numbers(found), dtype=self.dtype)
        expected = (self.lengths[number], *self.event_shape)
        if values.shape != expected:
            raise DataError(
                f"chunk {number} of the Dask collection has shape {values.shape}, where its plan says {expected}; what "
                f"is read must not change meanwhile"
            )
        return values

    def part(self, first: int, last: int) -> _DaskPieces:
        own = self.collection
        chosen = own.blocks[first:last] if self.is_array else own.partitions[first:last]
        return _DaskPieces(chosen, self.lengths[first:last], self.event_shape, self.dtype, self.is_array)


def _numbers(frame: Any) -> Any:
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)
