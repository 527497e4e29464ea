"""The rows of ``caviar fit``: in memory, or read in blocks where the files are large."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import caviar as cv
from caviar._typing import Array
from caviar.data.columns.missing_codes import missing_code, remark_of_code
from caviar.data.columns.row_numbers import RowNumbers, numbers_rows, remark
from caviar.data.files.table_files import find_files, identifier

from ..speaking.outputs import complain

LARGE = 2**28
"""Bytes of files from which on they are read in blocks."""
_BLOCK_ROWS = 65_536
_SHOWN_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class RowsOfTable:
    """The rows to fit, with what is told of them.

    Attributes
    ----------
    values
        Shape (N, D): an array, or rows that are read in blocks.
    columns
        Names of the columns.
    missing
        Number of missing entries.
    summary
        Name -> mean, standard deviation, smallest and largest of the values that are there, and ``numbers_rows`` where
        these seem to number the rows.
    scanned
        The table that is read in blocks; None for an array.
    """

    values: Any
    columns: tuple[str, ...]
    missing: int
    summary: dict[str, dict[str, float]]
    scanned: cv.LazyTable | None = None

    def named(self, categories: Mapping[str, Sequence[str]]) -> Any:
        """Return the rows with the names of their columns, and the words of those that have places."""
        if self.scanned is not None:
            return self.scanned
        return cv.data.Table(self.values, self.columns, categories)

    def shown(self) -> Any:
        """Return the rows for a plot: all, or of a large table runs of rows all over it."""
        if isinstance(self.values, np.ndarray):
            return self.values
        n_runs, n_rows = 100, len(self.values)
        length = min(_SHOWN_ROWS // n_runs, n_rows // n_runs)
        starts = [run * (n_rows // n_runs) for run in range(n_runs)]
        return np.concatenate([self.values[start : start + length] for start in starts])


def rows_of_table(
    data: str | None,
    sql: str | None,
    columns: list[str] | None,
    *,
    needs_all: bool,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> RowsOfTable:
    """Return the rows of a table; read in blocks if it is large, nothing is missing and no more is needed.

    Of columns of categories, whose places are read, the number of values is told.
    """
    if data is not None and not needs_all and is_large(data):
        rows = cv.scan(data, columns=columns, sql=sql)
        found = _in_blocks(rows)
        if not found.missing:
            return found
    table = cv.data.read_table(data, columns=columns, sql=sql, missing_ok=True)
    found = categories or {}
    values = table.values
    summary = {
        name: {"values": float(len(found[name]))} if name in found else _figures_of(column)
        for name, column in zip(table.columns, values.T, strict=True)
    }
    return RowsOfTable(values, table.columns, int(np.isnan(values).sum()), summary)


def _figures_of(column: Array) -> dict[str, float]:
    # the fit says what to do about numbers whose squares are beyond a double
    with np.errstate(over="ignore"):
        mean, sd = float(np.nanmean(column)), float(np.nanstd(column))
    return {
        "mean": mean,
        "standard_deviation": sd,
        "min": float(np.nanmin(column)),
        "max": float(np.nanmax(column)),
        **_numbering(numbers_rows(column)),
        **_coding(missing_code(column)),
    }


def is_large(data: str) -> bool:
    """Whether files are so large that they are read in blocks."""
    return sum(Path(path).stat().st_size for path in find_files(data).paths) >= LARGE


def _numbering(is_found: bool) -> dict[str, bool]:
    """Return what is told of a column that seems to number the rows; of others nothing."""
    return {"numbers_rows": True} if is_found else {}


def _coding(code: tuple[float, int] | None) -> dict[str, float]:
    """Return what is told of a column with a number that seems to mean missing values; of others nothing."""
    return {} if code is None else {"missing_code": code[0], "n_missing_codes": code[1]}


def complain_of_columns(summary: Mapping[str, Mapping[str, float]]) -> None:
    """Warn of columns that tell nothing of the rows.

    Parameters
    ----------
    summary
        Name -> smallest and largest value, and ``numbers_rows`` where these seem to number the rows, or
        ``missing_code`` where this value seems to mean missing ones; or the number of values of categories.
    """
    for name, figures in summary.items():
        if figures.get("values") == 1 or ("min" in figures and figures["min"] == figures["max"]):
            complain(
                "warning",
                f"column {name} is constant, so it does not distinguish rows; leave it out by --columns",
            )
        elif figures.get("numbers_rows"):
            complain("warning", remark(name, " by --columns"))
        elif "missing_code" in figures:
            code, n_rows = figures["missing_code"], int(figures["n_missing_codes"])
            query = (
                f"SELECT * REPLACE (nullif({identifier(name)}, {code:.0f}) AS {identifier(name)}) FROM data"
            )
            complain("warning", remark_of_code(name, code, n_rows, f"empty: --sql {shlex.quote(query)}"))


def _in_blocks(table: cv.LazyTable) -> RowsOfTable:
    """Return rows that are read in blocks, after two passes over them."""
    rows, names = table.rows(), table.columns
    total, missing = np.zeros(len(names)), 0
    lowest, highest = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    numbers = [RowNumbers() for _ in names]
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = rows[start : start + _BLOCK_ROWS]
        gone = np.isnan(block)
        missing += int(gone.sum())
        total += np.where(gone, 0.0, block).sum(axis=0, dtype=np.float64)
        lowest, highest = np.fmin(lowest, block.min(axis=0)), np.fmax(highest, block.max(axis=0))
        for own, column in zip(numbers, block.T, strict=True):
            own.add(column)
    mean, squares = total / len(rows), np.zeros(len(names))
    for start in range(0, len(rows) if not missing else 0, _BLOCK_ROWS):
        squares += np.square(rows[start : start + _BLOCK_ROWS] - mean).sum(axis=0)
    figures = zip(names, mean, np.sqrt(squares / len(rows)), lowest, highest, strict=True)
    keys: list[str] = ["mean", "standard_deviation", "min", "max"]
    summary = {
        name: {**dict(zip(keys, map(float, own), strict=True)), **_numbering(looked.are_found)}
        for (name, *own), looked in zip(figures, numbers, strict=True)
    }
    return RowsOfTable(rows, names, missing, summary, table)
