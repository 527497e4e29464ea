"""The arrays of a stated model, and counts of words, from the columns of a table or from a NumPy file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import load_npz

import caviar as cv
from caviar.files.naming import listed
from caviar.names import Placed

from ..speaking.outputs import complain, counted
from .files_and_streams import read_for

_NPZ = ".npz"
_NUMBERS = ("int", "uint", "double", "float", "decimal")
"""How Arrow's types of numbers begin."""


def wanted_arrays(posterior: cv.Posterior) -> dict[str, bool]:
    """Return the names of the arrays that a model takes: whether each is observed, rather than known."""
    observed = {leaf.name: True for leaf in posterior.model.leaves}
    known = {
        node.name: False
        for node in posterior.model.nodes
        # not those that only say where each repetition of a nested plate belongs
        if isinstance(node, cv.Data)
        and node.name not in [plate.within.name for plate in node.plates if plate.within is not None]
    }
    return {**observed, **known}


def columns_of(posterior: cv.Posterior) -> dict[str, list[str]]:
    """Return the columns of a table that hold each array: those of the fit, where they had names, or name, name_0, ...

    Examples
    --------
    >>> model = cv.models.linear_regression(2)
    >>> columns_of(model.fit({"X": [[1, 0], [1, 1], [1, 2]], "y": [1.0, 3.1, 4.9]}))
    {'y': ['y'], 'X': ['X_0', 'X_1']}
    """
    kept = (posterior.data_summary or {}).get("arrays", {})
    found = {}
    for name in wanted_arrays(posterior):
        shape = kept.get(name, {}).get("shape", [1])
        told = kept.get(name, {}).get("columns")
        if told is not None:
            found[name] = [str(column) for column in told]
        elif len(shape) == 2:
            found[name] = [f"{name}_{number}" for number in range(shape[1])]
        elif len(shape) == 1:
            found[name] = [name]
    return found


def categories_of(posterior: cv.Posterior) -> dict[str, list[str]]:
    """Return the names of the categories of each array of labels, if the fit kept names."""
    kept = (posterior.data_summary or {}).get("arrays", {})
    found = {name: own["categories"] for name, own in kept.items() if "categories" in own}
    named = {name: posterior.names.entries(name) for name in posterior.model.axes.labels}
    return {**{name: list(own) for name, own in named.items() if own is not None}, **found}


def arrays_for(
    posterior: cv.Posterior,
    data: str | None,
    sql: str | None,
    *,
    needs_observed: bool = False,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return the arrays of a model by name, as far as the data have them.

    Parameters
    ----------
    posterior
        Of the model.
    data
        A table, whose columns are those of :func:`columns_of`; or a NumPy file ``.npz`` with an array for each name.
    sql
        Query, for a table.
    needs_observed
        Whether what was observed must be there too, besides what is known.
    categories
        Name of a column of a table -> its values, whose places are read; by default those that the fit kept.

    Raises
    ------
    DataError
        If an array that must be there is not, or only some columns of one are.
    """
    is_file = is_numpy_file(data)
    if is_file:
        found: Mapping[str, Any] = _of_file(Path(str(data)), posterior)
    else:
        known = _names_in_the_table(posterior, data, sql) if categories is None else categories
        found = _of_table(posterior, data, sql, known)
    for name, is_observed in wanted_arrays(posterior).items():
        if name not in found and (needs_observed or not is_observed):
            columns = "" if is_file else f", in {_columns_in_words(columns_of(posterior).get(name, [name]))}"
            raise cv.DataError(
                f"the data lack '{name}', which the model {'observes' if is_observed else 'takes as known'}{columns}"
            )
    return found


def is_numpy_file(data: str | None) -> bool:
    """Whether data are arrays by name rather than a table."""
    return data is not None and data.lower().endswith(_NPZ)


def _columns_in_words(columns: Sequence[str]) -> str:
    return f"column{'s' * (len(columns) != 1)} {listed(columns)}"


def _of_table(
    posterior: cv.Posterior, data: str | None, sql: str | None, known: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the arrays of a model that a table has the columns of."""
    there = cv.scan(data, sql=sql).columns
    wanted = columns_of(posterior)
    chosen = {name: _found(name, columns, there) for name, columns in wanted.items()}
    chosen = {name: columns for name, columns in chosen.items() if columns}
    if not chosen:
        columns = [column for own in wanted.values() for column in own]
        label = data if sql is None else "the result of the query"
        raise cv.DataError(
            f"{label} has none of the columns of the model, {listed(columns)}; its columns are {listed(there)}. Rename "
            f"them by --sql 'SELECT {there[0]} AS {columns[0]}, ... FROM data', or give a NumPy .npz file with an "
            f"array for each variable"
        )
    names = list(dict.fromkeys(column for columns in chosen.values() for column in columns))
    categories = {name: values for name, values in known.items() if name in names}
    if categories:
        _tell_unknown(data, categories, sql)
        sql = cv.data.category_query(names, categories, sql=sql)
    table = cv.data.read_table(data, columns=names, sql=sql, missing_ok=True)
    shapes = (posterior.data_summary or {}).get("arrays", {})
    found = {}
    for name, columns in chosen.items():
        values = table.values[:, [names.index(column) for column in columns]]
        found[name] = values if len(shapes.get(name, {}).get("shape", [1])) == 2 else values[:, 0]
    return Placed(found, posterior.names)


def _names_in_the_table(posterior: cv.Posterior, data: str | None, sql: str | None) -> dict[str, list[str]]:
    """Return the names of categories of the columns that a table has; numbers are places, unless all names are some."""
    known, there = categories_of(posterior), cv.scan(data, sql=sql).columns
    known = {name: values for name, values in known.items() if name in there}
    if not known:
        return {}
    types = map(str, cv.data.read_columns(data, columns=list(known), sql=sql).schema.types)
    return {
        name: values
        for (name, values), own in zip(known.items(), types, strict=True)
        if not own.startswith(_NUMBERS) or all(value.removeprefix("-").isdecimal() for value in values)
    }


def _tell_unknown(data: str | None, categories: Mapping[str, Sequence[str]], sql: str | None) -> None:
    """Say which values the model has not seen: it gives them no probability, so that they tell as little as a hole."""
    for name, (values, n_rows) in cv.data.unknown_values(data, categories, sql=sql).items():
        complain(
            "warning",
            f"column {name} has values that the model was not fitted to, which count as missing (in "
            f"{counted(n_rows, 'row')}): {listed(values)}; the fit had {listed(categories[name])}",
        )


def _found(name: str, columns: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return the columns of an array that are there: all or none."""
    missing = [column for column in columns if column not in there]
    if not missing:
        return list(columns)
    if len(missing) < len(columns):
        raise cv.DataError(
            f"the data have some columns of '{name}', but not {listed(missing)}; they have {listed(there)}"
        )
    return []


def _of_file(path: Path, posterior: cv.Posterior) -> dict[str, Any]:
    """Return the arrays of a NumPy file that a model takes."""
    arrays = opened_arrays(path)
    wanted = wanted_arrays(posterior)
    found = {name: arrays[name] for name in wanted if name in arrays}
    if not found:
        raise cv.DataError(
            f"{path} has the arrays {listed(list(arrays))}, and none of those of the model: {listed(list(wanted))}"
        )
    return found


def opened_arrays(path: Path) -> Mapping[str, Any]:
    """Return the arrays of a NumPy file, of which nothing can run."""
    with _unreadable_told(path, "a NumPy file of numbers and texts, as numpy.savez writes"):
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.lib.npyio.NpzFile):
            with file:
                return {name: file[name] for name in file.files}
    raise cv.DataError(f"{path} contains one array without a name; save arrays with numpy.savez")


def sparse_counts(path: str) -> Any:
    """Return counts of words, documents x words, that ``scipy.sparse.save_npz`` wrote."""
    with _unreadable_told(path, "a sparse matrix that scipy.sparse.save_npz wrote"):
        return load_npz(path)


@contextmanager
def _unreadable_told(path: str | Path, what: str) -> Iterator[None]:
    """Say that a file is not there, or is not what it should be.

    Raises
    ------
    DataError
        If so.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise cv.DataError(f"there is no file {path}") from error
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise cv.DataError(f"{path} is not {what}, or is damaged") from error


def counts_for(lda: cv.LatentDirichletAllocation, model: Path, data: str | None, sql: str | None) -> Any:
    """Return counts of words, documents x words, from a table with a column for each word, or a sparse matrix.

    Parameters
    ----------
    lda
        A fitted estimator.
    model
        File that it came from.
    data
        A table, or what ``scipy.sparse.save_npz`` wrote.
    sql
        Query, for a table.

    Raises
    ------
    DataError
        If the data have other words.
    """
    if data is None or not is_numpy_file(data):
        return read_for(lda, model, data, sql).values
    counts = sparse_counts(data)
    if counts.shape[1] != lda.n_features_in_:
        raise cv.DataError(
            f"{model} was fitted to {lda.n_features_in_:,} words; {data} has counts of {counts.shape[1]:,}"
        )
    return counts
