"""Tables as users give them: refused, in words that say what to do, before scikit-learn looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._errors import DataError
from .._typing import AnyArray
from ..data import Table
from ..data.rows import refuse_unmade
from ..files.naming import listed, named


def require_table(X: Any, hint: str = "") -> None:
    """Refuse what has another number of axes than two, and a table in which two columns have one name.

    Parameters
    ----------
    X
        What the user gave.
    hint
        What else could help with an array of three axes.

    Raises
    ------
    DataError
        If X is not a table, or does not distinguish its columns.
    """
    if type(X) is np.ndarray and X.ndim == 2:
        return
    refuse_unmade(X)
    _require_two_axes(X, hint)
    # a table of Arrow has the names apart from its columns
    names = list(map(str, getattr(X, "column_names", getattr(X, "columns", ()))))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(
            f"X has several columns with the name {twice!r}, which does not distinguish them; rename them"
        )


def _require_two_axes(X: Any, hint: str) -> None:
    """Refuse arrays, columns of tables and lists of another number of axes."""
    if isinstance(X, list | tuple):
        shape: Any = (len(X),) if X and np.isscalar(X[0]) else None
    else:
        shape = () if np.isscalar(X) else getattr(X, "shape", None)
    if shape is None or len(shape) == 2:
        return
    expected = f"X must be a table of rows x columns, shape (N, D); got shape {tuple(shape)}"
    if len(shape) == 1:
        if hasattr(X, "to_frame"):
            raise DataError(f"{expected}. Use X.to_frame(), a table of one column")
        array = "X" if hasattr(X, "ndim") else "np.array(X)"
        raise DataError(
            f"{expected}. Reshape your data: {array}[:, None] if it is one column, {array}[None, :] if it is one row"
        )
    raise DataError(f"{expected}. {hint}" if hint and len(shape) == 3 else expected)


def quiet(X: AnyArray) -> AnyArray:
    """Return rows with plain NaN where they are missing.

    The missing values of R, among others, are signalling NaN, with which every operation is a warning.
    """
    if X.dtype.kind != "f":
        return X
    missing = np.isnan(X)
    if not missing.any() or _are_quiet(X[missing]):
        return X
    return np.where(missing, np.array(np.nan, dtype=X.dtype), X)


def _are_quiet(nans: AnyArray) -> bool:
    """Whether none of several NaN is a signalling one, whose first bit after the exponent is 0."""
    first = {4: 1 << 22, 8: 1 << 51}.get(nans.itemsize) if nans.dtype.isnative else None
    return first is not None and bool(
        np.all(nans.view(f"u{nans.itemsize}") & np.array(first, f"u{nans.itemsize}"))
    )


@contextmanager
def words_told(X: Any) -> Iterator[None]:
    """Turn the refusal of a table with words into one that names the column, those of numbers, and what takes words.

    Raises
    ------
    DataError
        If it was refused, and a column has an entry that is not a number.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(X, Table):
            raise DataError(
                "X is a caviar.data.Table; give its values, or a DataFrame for columns with names"
            ) from error
        firsts = {name: _first_word(column) for name, column in _columns_of(X)}
        words = {name: found for name, found in firsts.items() if found is not None}
        if not words:
            raise
        name, (row, word) = next(iter(words.items()))
        good = [str(other) for other in firsts if other not in words]
        numbers = f"choose the columns of numbers, {listed(good)}, or use" if good else "use"
        which = named(name) if isinstance(name, str) else name
        raise DataError(
            f"column {which} of X does not contain numbers: it has {named(word)} in row {row}; {numbers} "
            f"MixedMixture, which takes columns of texts as categories"
        ) from error


def _columns_of(X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the columns of a table by name, and those of an array of texts by number."""
    if hasattr(X, "columns"):
        yield from ((name, X[name]) for name in X.columns)
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OU":
        yield from enumerate(X.T)


def _first_word(column: Any) -> tuple[int, str] | None:
    """Return the first entry of a column that is a text and no number, and its row; None if there is none."""
    for row, entry in enumerate(np.asarray(column, dtype=object).tolist()):
        if isinstance(entry, str):
            try:
                float(entry)
            except ValueError:
                return row, entry
    return None
