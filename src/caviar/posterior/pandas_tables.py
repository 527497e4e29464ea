"""Results as tables and columns of pandas, with names and the index of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from .._typing import AnyArray


class Step(NamedTuple):
    """A step after the end of a sequence: which sequence, and which step after its last row, from 1."""

    sequence: Any
    step: int

    def __str__(self) -> str:
        """Return both as text."""
        return f"{self.sequence}, step {self.step}"


def data_frame(columns: Mapping[str, Any], index: Any = None) -> Any:
    """Return columns as a DataFrame of pandas.

    Parameters
    ----------
    columns
        Name -> values, one a row.
    index
        Of the rows; None to number them. A list of :class:`Step` gives an index of two levels.

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    pandas = _pandas()
    if isinstance(index, list) and index and isinstance(index[0], Step):
        index = pandas.MultiIndex.from_tuples(index, names=Step._fields)
    return pandas.DataFrame(dict(columns), index=index)


def columns_of_figures(
    figures: Mapping[str, AnyArray], names: Sequence[str] | None, before: str = ""
) -> dict[str, AnyArray]:
    """Return figures of rows, (N, ...), as columns by name: where rows have several entries, one for each of these."""
    if all(values.ndim == 1 for values in figures.values()):
        return {f"{before}{figure}": values for figure, values in figures.items()}
    flat = {figure: values.reshape(len(values), -1) for figure, values in figures.items()}
    width = next(iter(flat.values())).shape[1]
    return {
        f"{before}{entry}_{figure}": values[:, place]
        for place, entry in enumerate(fitting(names, width) or range(width))
        for figure, values in flat.items()
    }


def fitting(labels: Any, size: int) -> Any:
    """Return labels if there is one for each of so many entries or rows; None otherwise."""
    return labels if labels is not None and len(labels) == size else None


def densities_along_rows(values: Any, data: Any, index: Any) -> Any:
    """Return the log density of each row as a Series where the data are a whole table with an index.

    A mapping of arrays gives an array, even if they have indices.
    """
    if index is None or isinstance(data, Mapping):
        return values
    return _pandas().Series(values, index=index, name="log_density")


def _pandas() -> Any:
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError("a DataFrame needs pandas; install it by python -m pip install pandas") from error
