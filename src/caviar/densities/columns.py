"""Columns by number or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._errors import DataError, ParameterError
from .._typing import AnyArray, Array

Column: TypeAlias = int | str
"""A column by its number, negative from the end, or by its name."""

Columns: TypeAlias = Column | Sequence[Column] | AnyArray
"""A column, or several."""


def column_numbers(columns: Columns, n_features: int, names: tuple[str, ...] | None) -> AnyArray:
    """Return the numbers of columns, in the order given, shape (C,).

    Raises
    ------
    ParameterError
        If there are none, one is given twice or does not exist.

    Examples
    --------
    >>> column_numbers(["height", -1], 3, ("height", "width", "weight"))
    array([0, 2])
    """
    given: Any = columns
    listed: list[Any] = [given] if isinstance(given, str | Integral) else list(given)
    numbers = [_number(column, n_features, names) for column in listed]
    if not numbers:
        raise ParameterError("expected at least one column; got none")
    if len(set(numbers)) < len(numbers):
        raise ParameterError(f"each column may be given once; got {listed}")
    return np.array(numbers, dtype=np.intp)


def _number(column: Any, n_features: int, names: tuple[str, ...] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise ParameterError(
                f"the columns of this mixture have no names, so there is no {column!r}; give numbers, or make it with "
                f"feature_names=[...]"
            )
        if column not in names:
            raise ParameterError(f"there is no column {column!r}; the columns are {', '.join(names)}")
        return names.index(column)
    if not isinstance(column, Integral) or isinstance(column, bool | np.bool_):
        raise ParameterError(f"a column is a whole number or a name; got {column!r}")
    if not -n_features <= int(column) < n_features:
        raise ParameterError(f"there is no column {column}; the mixture has {n_features}, numbered from 0")
    return int(column) % n_features


def others(columns: AnyArray, n_features: int) -> AnyArray:
    """Return the numbers of the columns that are not given, in order.

    Examples
    --------
    >>> others(np.array([1]), 3)
    array([0, 2])
    """
    return np.setdiff1d(np.arange(n_features), columns)


def given_values(
    given: Mapping[Any, float] | Columns,
    values: ArrayLike | None,
    n_features: int,
    names: tuple[str, ...] | None,
) -> tuple[AnyArray, Array]:
    """Return the numbers of known columns, (O,), and their values, (O,); from a mapping, or columns and values.

    Raises
    ------
    ParameterError
        If the columns are impossible, or ``values`` is there with a mapping or missing without.
    DataError
        If the values are not one finite number a column.

    Examples
    --------
    >>> given_values({"width": 2.5}, None, 2, ("height", "width"))
    (array([1]), array([2.5]))
    """
    if isinstance(given, Mapping):
        if values is not None:
            raise ParameterError("expected a mapping of columns to values, or columns and values; got both")
        columns, values = list(given), list(given.values())
    elif values is None:
        raise ParameterError(
            "expected a mapping such as {0: 1.5}, or columns and values; got columns without values"
        )
    else:
        columns = given
    numbers = column_numbers(columns, n_features, names)
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if array.shape != numbers.shape:
        raise DataError(f"expected one value for each of {len(numbers)} columns; got shape {array.shape}")
    if not np.isfinite(array).all():
        raise DataError(f"the values given must be finite; got {array}; leave out columns that are not known")
    return numbers, array
