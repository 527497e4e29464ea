"""Arrow tables and columns in memory, or in mapped files: numbers are made of a run of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import DataError
from .._typing import AnyArray
from ..files.naming import named
from .arrow_numbers import fill_columns, number_type
from .pieces import PieceRows
from .table_numbers import not_numeric_message

_PIECE_ROWS = 32_768


def arrow_rows(value: Any) -> Any:
    """Return a table, a batch or a column of Arrow as rows; any other object as it is.

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
