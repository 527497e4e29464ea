"""Tables as users give them: refused, in words that say what to do, before scikit-learn looks at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from ..._errors import DataError
from ..._typing import AnyArray
from ...data.frames import has_dates
from ...data.rows import refuse_unmade
from ...files.naming import listed, named


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
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind not in "mM":
        return
    refuse_unmade(X)
    # SciPy's dictionary of keys is a mapping, too
    if isinstance(X, Mapping) and not issparse(X):
        raise DataError(
            f"X must be a table of rows x columns; got a mapping ({type(X).__name__}) of {listed(list(map(str, X)))}. "
            f"Make a table of its columns: pandas.DataFrame(X)"
        )
    _require_two_axes(X, hint)
    # a table of Arrow has the names apart from its columns
    names = list(map(str, getattr(X, "column_names", getattr(X, "columns", ()))))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(
            f"X has several columns with the name {twice!r}, which does not distinguish them; rename them"
        )
    _refuse_dates(X)


def _refuse_dates(X: Any) -> None:
    """Refuse dates and times, which would be taken as numbers in the unit that the table happens to keep them in."""
    columns = (
        ((name, X[name]) for name in X.columns) if hasattr(X, "iloc") or hasattr(X, "get_column") else ()
    )
    if hasattr(X, "column_names") and hasattr(X, "columns"):
        columns = zip(X.column_names, X.columns, strict=True)
    wrong = (
        "X"
        if has_dates(X)
        else next((f"column {named(str(name))} of X" for name, own in columns if has_dates(own)), None)
    )
    if wrong is not None:
        raise DataError(
            f"{wrong} has dates or times, which are numbers only in a unit: count them in the one you mean, such as "
            "days since the first one, or leave them out"
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


def as_objects(X: Any) -> Any:
    """Return lists, and tables with other columns than numbers, with entries that are what they were in their column.

    NumPy and scikit-learn take True for 1 if all other columns have numbers, and texts of a categorical type for
    numbers if another column has numbers of which some may be missing.
    """
    if isinstance(X, list | tuple):
        return np.asarray(X, dtype=object)
    names = names_beside(X)
    if names is None:
        is_frame = hasattr(X, "iloc") and hasattr(X, "dtypes") and not hasattr(X, "__dask_graph__")
        of_numbers = not is_frame or all(getattr(kind, "kind", "O") in "iuf" for kind in X.dtypes)
        return X if of_numbers else X.astype(object)
    if all(_are_numbers(kind) for kind in getattr(X, "dtypes", None) or X.schema.types):
        return X
    columns = [X[name].to_list() if hasattr(X, "get_column") else X[name].to_pylist() for name in names]
    values = np.empty((len(columns[0]) if columns else 0, len(columns)), dtype=object)
    for j, entries in enumerate(columns):
        values[:, j] = entries
    return values


def checked_objects(estimator: Any, X: Any, values: Any, *, reset: bool) -> Any:
    """Return the values of a table, after names and number of its columns were checked, or are remembered."""
    names = names_beside(X)
    if names is not None and isinstance(values, np.ndarray):
        keep_names(estimator, names, reset=reset)
        return values
    with np.errstate(invalid="ignore"):
        return quiet(validate_data(estimator, values, reset=reset, dtype=None, ensure_all_finite="allow-nan"))


def names_beside(X: Any) -> list[str] | None:
    """Return the names of the columns of a table of Polars or Arrow; None of any other."""
    module = type(X).__module__.split(".")[0]
    if module == "pyarrow" and hasattr(X, "column_names"):
        return list(X.column_names)
    return list(X.columns) if module == "polars" and hasattr(X, "get_column") else None


def _are_numbers(kind: Any) -> bool:
    """Whether a type of Polars or Arrow is one of numbers."""
    if hasattr(kind, "is_numeric"):
        return kind.is_numeric()
    kinds = import_module("pyarrow.types")
    return kinds.is_integer(kind) or kinds.is_floating(kind)


def columns_of_categories(X: Any, names: Sequence[str]) -> list[str]:
    """Return the names of the columns whose type says that they have categories, even if these are numbers."""
    # of the tables that are not pandas', only Arrow has categories that are numbers
    types = X.schema.types if type(X).__module__.startswith("pyarrow") and hasattr(X, "schema") else []
    said = [hasattr(kind, "index_type") for kind in types]
    if hasattr(X, "iloc") and hasattr(X, "dtypes"):
        said = [getattr(kind, "name", "") == "category" for kind in X.dtypes]
    return [name for name, own in zip(names, said, strict=False) if own]


def is_coded(X: Any) -> bool:
    """Whether X is a table of this library, which tells the categories of its columns of words."""
    # a table of pandas may have a column with this name
    return isinstance(getattr(X, "categories", None), Mapping) and hasattr(X, "columns")


def validated(estimator: Any, X: Any, *, reset: bool, **how: Any) -> Any:
    """Return what scikit-learn's ``validate_data`` does; it does not see the names in a table of this library.

    Parameters
    ----------
    estimator
        Remembers number and names of the columns (``reset``), or has those of the fit.
    X
        What the user gave.
    reset
        Whether this is a fit.
    how
        Further arguments of ``validate_data``.

    Raises
    ------
    ValueError
        If X is no such table, or its columns are not those of the fit.
    """
    if not is_coded(X):
        return validate_data(estimator, X, reset=reset, **how)
    if X.categories and how.get("dtype") is not None:
        raise TypeError(f"the columns {listed(list(X.categories))} have words")
    values = _with_words(X) if X.categories else X.values
    values = check_array(values, input_name="X", estimator=estimator, **how)
    keep_names(estimator, X.columns, reset=reset)
    return values


def _with_words(X: Any) -> AnyArray:
    """Return a table of this library as objects, (N, D): numbers and words, None where a word is missing."""
    values = X.values.astype(object)
    for j, name in enumerate(X.columns):
        if name in X.categories:
            words = X.categories[name]
            values[:, j] = [None if np.isnan(own) else words[int(own)] for own in X.values[:, j]]
    return values


def names_of(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a table; None where they are no texts, or there are none."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    names = getattr(X, "column_names", getattr(X, "columns", None))
    found = () if names is None or callable(names) else tuple(names)
    return found if found and all(isinstance(name, str) for name in found) else None


def keep_names(estimator: Any, names: Sequence[str], *, reset: bool) -> None:
    """Remember the names of the columns, or check that they are those of the fit.

    Raises
    ------
    DataError
        If they are others, or another number of a fit without names.
    """
    if reset:
        estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator.n_features_in_ = len(names)
        return
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and list(names) != list(map(str, known)):
        raise DataError(f"the columns must be those of the fit, {listed(list(known))}; got {listed(names)}")
    if len(names) != estimator.n_features_in_:
        raise DataError(f"the fit had {estimator.n_features_in_} columns; got {len(names)}, {listed(names)}")


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


MIXED = "use MixedMixture, which takes columns of texts as categories"


@contextmanager
def words_told(X: Any, instead: str = MIXED) -> Iterator[None]:
    """Turn the refusal of a table with words into one that names the column, those of numbers, and what takes words.

    ``instead`` says what takes them.

    Raises
    ------
    DataError
        If it was refused, and a column has an entry that is not a number.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        firsts = {name: _first_word(column) for name, column in _columns_of(X)}
        words = {name: found for name, found in firsts.items() if found is not None}
        if not words:
            raise
        name, (row, word) = next(iter(words.items()))
        good = [str(other) for other in firsts if other not in words]
        numbers = f"choose the columns of numbers, {listed(good)}, or {instead}" if good else instead
        which = named(name) if isinstance(name, str) else name
        raise DataError(
            f"column {which} of X does not contain numbers: it has {named(word)} in row {row}; {numbers}"
        ) from error


def _columns_of(X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the columns of a table by name, and those of an array of texts by number."""
    if is_coded(X):
        yield from zip(X.columns, _with_words(X).T, strict=True)
    elif hasattr(X, "columns"):
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
