"""Numbers of Arrow columns as NumPy arrays: missing ones are NaN."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..._typing import AnyArray


def number_type(kind: Any) -> np.dtype[Any] | None:
    """Return the type that numbers of an Arrow type are read in: float32 or float64; None if they are not numbers."""
    types = import_module("pyarrow.types")
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_float32(kind) or types.is_float16(kind):
        return np.dtype(np.float32)
    is_number = types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    if is_number or types.is_boolean(kind) or types.is_null(kind):
        return np.dtype(np.float64)
    return None


def fill_columns(columns: Any, out: AnyArray) -> None:
    """Write Arrow columns, arrays in pieces, to the rows of an array (columns, N); nulls become NaN."""
    for row, column in zip(out, columns, strict=True):
        begin = 0
        for chunk in getattr(column, "chunks", [column]):
            row[begin : begin + len(chunk)] = _numbers(chunk)
            begin += len(chunk)


def _numbers(chunk: Any) -> AnyArray:
    types = import_module("pyarrow.types")
    if types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    if types.is_decimal(chunk.type) or types.is_boolean(chunk.type) or types.is_null(chunk.type):
        # a decimal is rounded to the nearest double, a truth value becomes 0 or 1
        chunk = chunk.cast("float64") if not types.is_boolean(chunk.type) else chunk.cast("uint8")
    if chunk.null_count and not types.is_floating(chunk.type):
        chunk = chunk.cast("float64", safe=False)
    return chunk.to_numpy(zero_copy_only=False)
