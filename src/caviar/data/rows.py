"""What may be given for the values of a variable, as arrays or as rows that are read in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._lazy import LazyRows, StoredRows
from .arrow_rows import arrow_rows
from .dask_rows import dask_rows
from .scan import LazyTable

__all__ = ["as_rows", "column_names"]


def as_rows(value: Any) -> Any:
    """Return tables and arrays that are to be read in blocks as lazy rows, anything else as it is.

    Lazy tables (:func:`caviar.scan`), Dask arrays and DataFrames, Arrow tables and columns, and memory maps become
    lazy; arrays and tables of pandas and Polars are in memory anyway.

    Raises
    ------
    DataError
        If a column does not hold numbers.
    """
    if isinstance(value, LazyRows):
        return value
    if isinstance(value, LazyTable):
        return value.rows()
    if (
        isinstance(value, np.memmap)
        and value.ndim
        and value.dtype.kind in "biuf"
        and value.dtype.itemsize <= 8
    ):
        return StoredRows(value, f"the memory map of shape {value.shape}")
    if hasattr(value, "__dask_graph__"):
        return dask_rows(value)
    if type(value).__module__.split(".")[0] == "pyarrow":
        return arrow_rows(value)
    return value


def column_names(value: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of what becomes lazy; None if it has none."""
    if isinstance(value, LazyTable):
        return value.columns
    names = getattr(value, "column_names", None)
    if names is None and hasattr(value, "__dask_graph__"):
        names = getattr(value, "columns", None)
    return None if names is None else tuple(names)
