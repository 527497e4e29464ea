"""Values of a variable as users give them: arrays, or rows that are read in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import DataError
from .._typing import AnyArray
from ..files.naming import named
from ..lazy.rows import LazyRows, StoredRows
from .columns.table_numbers import not_numeric_message
from .dask_rows import dask_rows
from .files.arrow_numbers import fill_columns, number_type
from .lazy_table import LazyTable
from .pieces import PieceRows


def as_rows(value: Any, name: str = "") -> Any:
    """Return lazy rows for tables and arrays that are read in blocks, and all other data unchanged.

    Lazy tables (:func:`caviar.scan`), Dask arrays and DataFrames, Arrow tables and columns, and memory maps become lazy
    rows; arrays and tables of pandas and Polars are in memory anyway. An xarray.DataArray is replaced by its values,
    and arrays of other libraries are converted to NumPy.

    Parameters
    ----------
    value
        Data.
    name
        What they are the data of, for messages.

    Raises
    ------
    DataError
        If a column does not contain numbers, or the object is not a table yet.
    """
    if type(value) is np.ndarray or isinstance(value, LazyRows):
        return value
    refuse_unmade(value)
    if _module_of(value) == "xarray":
        return as_rows(value.data, name)
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
    if _module_of(value) == "pyarrow":
        return arrow_rows(value, name)
    return on_host(value)


def on_host(value: Any) -> Any:
    """Return an array of another library, on a device or not, as one of NumPy; anything else as it is."""
    if type(value) is np.ndarray:
        return value
    if _module_of(value) == "torch" and hasattr(value, "cpu"):
        return value.cpu().numpy()
    if _module_of(value) == "cupy" and hasattr(value, "get"):
        return value.get()
    if hasattr(value, "__array_namespace__") and not isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    return value


def refuse_unmade(value: Any) -> None:
    """Refuse what a table or an array still has to be made of.

    Raises
    ------
    DataError
        If it is the plan of a table, or a set of arrays.
    """
    module, kind = _module_of(value), type(value).__name__
    if kind == "LazyFrame":
        raise DataError(
            f"the data are a LazyFrame of {module}, the plan of a table: pass frame.collect(); or cv.scan(path), which "
            f"reads files in blocks if they do not fit in memory"
        )
    if module == "xarray" and kind != "DataArray":
        raise DataError(
            f"the data are an xarray.{kind}, which holds arrays by name: pass one of them, dataset[name], or "
            f"dataset.to_dataframe() with a column for each"
        )


def _module_of(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def column_names(value: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a table that is read in blocks, or None if it has none."""
    if isinstance(value, LazyTable):
        return value.columns
    names = getattr(value, "column_names", None)
    if names is None and hasattr(value, "__dask_graph__"):
        names = getattr(value, "columns", None)
    return None if names is None else tuple(names)


_PIECE_ROWS = 32_768


def arrow_rows(value: Any, of: str = "") -> Any:
    """Return a table, a batch or a column of Arrow as rows, the data ``of`` something; any other object as it is.

    Raises
    ------
    DataError
        If a column does not hold numbers.
    """
    if hasattr(value, "column_names"):
        names, columns = list(value.column_names), list(value.columns)
        shape: tuple[int, ...] = (len(names),)
    elif hasattr(value, "null_count"):
        names, columns, shape = ["values"], [value], ()
    else:
        return value
    found = {name: number_type(column.type) for name, column in zip(names, columns, strict=True)}
    for name, kind in found.items():
        if kind is None:
            column = columns[names.index(name)]
            first = next((str(entry.as_py()) for entry in column if entry.is_valid), "")
            why = f"its type is {column.type}, and its first value {named(first)}"
            if of and not shape:
                raise DataError(
                    f"the data of '{of}' must be numbers; got the type {column.type}, first {named(first)}. Only "
                    f"labels of a Categorical, and Data that choose from a plate, may be texts; code a binary outcome "
                    f"as 0 or 1"
                )
            good = [other for other, own in found.items() if own is not None]
            raise DataError(not_numeric_message("the Arrow table", name, why, good))
    if not columns or not len(columns[0]):
        raise DataError("the Arrow table has no rows or no columns")
    return _ArrowRows(_ArrowPieces(tuple(columns), np.result_type(*found.values()), shape))


class _ArrowRows(PieceRows):
    """Rows of Arrow columns, which are in memory as they are, or mapped into it."""

    is_held = True


@dataclass(frozen=True, eq=False)
class _ArrowPieces:
    """Runs of the rows of Arrow columns."""

    columns: tuple[Any, ...]
    dtype: np.dtype[Any]
    event_shape: tuple[int, ...]
    label: str = "the Arrow table"

    @property
    def lengths(self) -> tuple[int, ...]:
        n_rows = len(self.columns[0])
        return tuple(min(_PIECE_ROWS, n_rows - start) for start in range(0, n_rows, _PIECE_ROWS))

    def decode(self, number: int) -> AnyArray:
        parts = [column.slice(number * _PIECE_ROWS, _PIECE_ROWS) for column in self.columns]
        values = np.empty((len(parts), self.lengths[number]), self.dtype)
        fill_columns(parts, values)
        return np.ascontiguousarray(values.T) if self.event_shape else values[0]

    def part(self, first: int, last: int) -> _ArrowPieces:
        start, count = first * _PIECE_ROWS, (last - first) * _PIECE_ROWS
        columns = tuple(column.slice(start, count) for column in self.columns)
        return _ArrowPieces(columns, self.dtype, self.event_shape)
