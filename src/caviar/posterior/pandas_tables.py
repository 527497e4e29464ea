"""Results as tables and columns of pandas, with names and the index of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def data_frame(columns: Mapping[str, Any], index: Any = None) -> Any:
    """Return columns as a DataFrame of pandas.

    Parameters
    ----------
    columns
        Name -> values, one a row.
    index
        Of the rows; None to number them.

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    return _pandas().DataFrame(dict(columns), index=index)


def along_rows(values: Any, data: Any, index: Any, name: str) -> Any:
    """Return numbers of the rows as a Series where the data are a whole table with an index.

    A mapping of arrays gives an array, whatever indices these have.
    """
    return (
        values
        if index is None or isinstance(data, Mapping)
        else _pandas().Series(values, index=index, name=name)
    )


def _pandas() -> Any:
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError("a DataFrame needs pandas; install it by python -m pip install pandas") from error
