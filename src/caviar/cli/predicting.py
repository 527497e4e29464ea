"""``caviar predict``: what a saved model says of each row of a table, written to another table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import caviar as cv

from .arrays import arrays_for, categories_of, columns_of, counts_for, wanted_arrays
from .mixed_results import is_mixed
from .results import print_document
from .speaking import counted, say, standard_error, standard_output
from .tables import (
    STANDARD,
    input_file,
    load_fitted,
    require_table,
    rows_for_prediction,
    write_result,
)

__all__ = ["predict_table"]


def predict_table(
    model: Path, data: str | None, sql: str | None, output: Path, *, as_json: bool, quiet: bool
) -> None:
    """Do what ``caviar predict`` does."""
    require_table(output, data, model)
    fitted = load_fitted(model)
    with input_file(data) as file:
        if isinstance(fitted, cv.Posterior) and is_mixed(fitted):
            columns = _of_mixed(fitted, arrays_for(fitted, file, sql), quiet=quiet)
        elif isinstance(fitted, cv.Posterior):
            columns = _of_posterior(fitted, arrays_for(fitted, file, sql), quiet=quiet)
        elif isinstance(fitted, cv.LatentDirichletAllocation):
            columns = _of_documents(fitted, counts_for(fitted, model, file, sql))
        else:
            columns = predictions(fitted, rows_for_prediction(fitted, model, file, sql))
    write_result(output, columns)
    n_rows = len(next(iter(columns.values())))
    if as_json and str(output) != STANDARD:
        print_document({"rows": n_rows, "output": str(output), "columns": list(columns)})
    elif not quiet and str(output) != STANDARD:
        say(standard_output(), f"{counted(n_rows, 'row')} in {output}")


def predictions(estimator: Any, X: Any) -> dict[str, Any]:
    """Return the columns of the table of predictions of a mixture, in the order of the rows."""
    with warnings.catch_warnings():
        # The columns were chosen by their names, which an array does not carry.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        probabilities = estimator.predict_proba(X)
        columns = {"label": probabilities.argmax(axis=1)}
        columns.update({f"probability_{k}": column for k, column in enumerate(probabilities.T)})
        columns["log_density"] = estimator.score_samples(X)
    return columns


def _of_documents(lda: cv.LatentDirichletAllocation, counts: Any) -> dict[str, Any]:
    """Return the most probable topic of each document, and the proportions of all."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        proportions = lda.transform(counts)
    shares = {f"topic_{k}": column for k, column in enumerate(proportions.T)}
    return {"topic": proportions.argmax(axis=1), **shares}


def _of_posterior(posterior: cv.Posterior, arrays: Mapping[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Return what a stated model says of each row: of what it lacks, and of what is hidden in it."""
    observed = {leaf.name for leaf in posterior.model.leaves}
    found = posterior.predict(arrays)
    if not found and not all(wanted_arrays(posterior).values()):
        # all is there: what the known columns say of the observed ones, as if these were not
        found = posterior.predict({name: value for name, value in arrays.items() if name not in observed})
        if not quiet:
            told = ", ".join(sorted(observed & set(arrays)))
            say(standard_error(), f"predicted from the known columns; the values of {told} were not used")
    names = columns_of(posterior)
    columns: dict[str, Any] = {}
    for name, what in found.items():
        columns.update(_columns(name, what, names.get(name)))
    if not columns:
        raise cv.DataError(
            f"there is nothing to predict: the rows have every observed variable ({', '.join(sorted(observed))}), and "
            f"nothing is hidden in them. Leave out the columns that are to be predicted"
        )
    return columns


def _of_mixed(posterior: cv.Posterior, arrays: Mapping[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Return what a mixture of mixed columns says of each row, and of the columns that the rows lack."""
    n_rows = len(next(iter(arrays.values())))
    leaves = [leaf.name for leaf in posterior.model.leaves]
    # a row of zeros below the others, so that no column is without any value, which would be refused
    there = {name: np.append(values, 0.0) for name, values in arrays.items()}
    whole = {name: there.get(name, np.append(np.full(n_rows, np.nan), 0.0)) for name in leaves}
    probabilities = posterior.local(whole)["z"].probabilities[:-1]
    columns = {"label": probabilities.argmax(axis=1)}
    columns.update({f"probability_{k}": column for k, column in enumerate(probabilities.T)})
    columns["log_density"] = posterior.log_predictive(whole)[:-1]
    absent = [name for name in leaves if name not in arrays]
    found = posterior.predict(there) if absent else {}
    for name in absent:
        own = _columns_of_absent(name, found[name], categories_of(posterior).get(name))
        own = {column: values[:-1] for column, values in own.items()}
        twice = sorted(set(own) & set(columns))
        if twice:
            raise cv.DataError(
                f"the rows lack '{name}', and its prediction would be a second column {twice[0]}; give an empty column"
            )
        columns.update(own)
    if absent and not quiet:
        say(standard_error(), f"predicted from the rest, for the rows lack them: {', '.join(absent)}")
    return columns


def _columns_of_absent(name: str, told: Any, categories: list[str] | None) -> dict[str, Any]:
    """Return mean and standard deviation of a number, or the most probable category and the probability of each."""
    if np.ndim(told.mean) == 1:
        return _columns(name, told, [name])
    names = categories or [str(number) for number in range(np.shape(told.mean)[1])]
    shares = {f"{name}_probability_{value}": column for value, column in zip(names, told.mean.T, strict=True)}
    return {name: np.array(names)[told.mean.argmax(axis=1)], **shares}


def _columns(name: str, what: Any, names: list[str] | None) -> dict[str, Any]:
    """Return the columns that tell of a variable; none of one that is repeated within the rows."""
    probabilities = getattr(what, "probabilities", None)
    if probabilities is not None and np.ndim(probabilities) == 2:
        # of a chain the most probable path, which is more than the most probable state of each step
        label = what.mode() if hasattr(what, "starts") else np.argmax(probabilities, axis=1)
        shares = {f"{name}_probability_{k}": column for k, column in enumerate(np.transpose(probabilities))}
        return {name: np.asarray(label), **shares}
    mean = getattr(what, "mean", None)
    if mean is None or isinstance(mean, tuple) or np.ndim(mean) not in (1, 2):
        return {}
    spread = getattr(what, "standard_deviation", None)
    spread = _deviation(what) if spread is None else spread
    if np.ndim(mean) == 1:
        own = {name: (np.asarray(mean), spread)}
    else:
        width = np.shape(mean)[1]
        named = names if names is not None and len(names) == width else [f"{name}_{j}" for j in range(width)]
        own = {column: (mean[:, j], spread[:, j]) for j, column in enumerate(named)}
    return {
        f"{column}_{word}": values
        for column, pair in own.items()
        for word, values in zip(("mean", "sd"), pair, strict=True)
    }


def _deviation(factor: Any) -> Any:
    """Return the standard deviations of a factor, of the shape of its mean."""
    if hasattr(factor, "covariance"):
        return np.sqrt(np.diagonal(factor.covariance, axis1=-2, axis2=-1))
    return np.sqrt(factor.variance)
