"""``caviar fit``: read a table, fit a mixture while its progress is shown, print and save it.

``caviar fit --model FILE.py:FUNCTION``: a model that is stated in Python, fitted to a table or to arrays.
"""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import typer

import caviar as cv
from caviar.data.columns.row_numbers import numbers_rows, remark
from caviar.files.naming import listed, named

from .fits import deliver, fitted, kept_told, origin_of, pictures
from .models.mixtures import GaussianMixtureOfFile, MixedMixtureOfFile
from .models.regressions import RegressionOfFile
from .models.saved import Saved
from .models.sequences import Sequences, SequencesOfFile, sequences_of
from .models.stated import PosteriorOfFile
from .models.topics import TopicsOfFile
from .options.fit_options import FitOptions
from .options.kinds import KINDS, ModelName, Uncertainty
from .speaking.outputs import complain
from .speaking.progress import watching
from .tables.arrays import is_numpy_file, opened_arrays
from .tables.documents import documents_to_fit
from .tables.files import require_writable
from .tables.files_and_streams import input_file
from .tables.non_numeric import (
    NonNumeric,
    NumericTable,
    complain_of_indicators,
    numbers_only,
    other_choice_told,
    renaming_told,
)
from .tables.rows import RowsOfTable, complain_of_columns, rows_of_table

Fit: TypeAlias = "tuple[type[Saved], Any, Callable[[Path], None]]"
"""How the command line knows a fitted model, the model, and what draws it to a file."""

_CHOICES = "categorical (best for a mixture: each value gets a probability), one-hot, or drop"


def fit_to_table(request: FitOptions) -> None:
    """Do what ``caviar fit`` does."""
    with kept_told(request):
        _fit(request)


def _fit(request: FitOptions) -> None:
    """Fit what was asked for, and print and save the result.

    Raises
    ------
    BadParameter
        If the user asked for what the model does not have: the message says why there is none, and what there is.
    """
    if not isinstance(request.model_name, ModelName):
        fit_stated(request)
        return
    why_not = _why_not(request)
    if why_not:
        raise typer.BadParameter(why_not)
    arguments = {**request.arguments_of_estimator, **_own_arguments(request)}
    require_writable(request.output, ".caviar", inputs=(request.data,))
    require_writable(request.picture, ".png")
    with input_file(request.data) as file:
        deliver(request, *_FITS[request.model_name](request, file, arguments))


def fit_to_rows(request: FitOptions, data: str | None, arguments: dict[str, Any]) -> Fit:
    """Fit a mixture to a table that is in a file."""
    numeric = numbers_only(data, request.sql, request.column_names, request.non_numeric, quiet=request.quiet)
    # places of categories, rather than indicators
    places = numeric.categories if request.is_mixed else {}
    needs_all = request.is_mixed or arguments["n_components"] == "auto"
    with other_choice_told(request.non_numeric, others=_CHOICES):
        table = rows_of_table(data, numeric.sql, numeric.columns, needs_all=needs_all, categories=places)
    if "--covariance" in request.kind.options:
        complain_of_indicators(numeric, [request.options.get("--covariance") or "full"])
    if request.kind.one_column and len(table.columns) != 1:
        names = listed(table.columns)
        raise cv.DataError(
            f"--model {request.model_name} takes one column; choose it by --columns from {names}"
        )
    complain_of_columns(table.summary)
    X = table.named(places)
    with renaming_told(table.columns):
        estimator = fitted(request.kind, X, arguments, quiet=request.quiet, checkpoint=request.checkpoint)
    estimator.about_ = _about(request, table, numeric)
    if request.is_mixed:
        return MixedMixtureOfFile, estimator, lambda path: pictures().draw_profiles(estimator, path)
    return (
        GaussianMixtureOfFile,
        estimator,
        lambda path: pictures().draw_rows(estimator, table.shown(), path),
    )


def _own_arguments(request: FitOptions) -> dict[str, Any]:
    """Return the arguments for the options of one model.

    Raises
    ------
    BadParameter
        If the model does not have one of the options.
    """
    own = request.kind
    given = request.options
    for name in given:
        if name not in own.options and name not in own.reading:
            owners = " or ".join(
                other for other, kind in KINDS.items() if name in kind.options or name in kind.reading
            )
            raise typer.BadParameter(
                f"{name} belongs to --model {owners}, not to --model {request.model_name}"
            )
    return {own.options[name]: value for name, value in given.items() if name in own.options}


def _why_not(request: FitOptions) -> str:
    """Return why a model cannot be fitted as the user asked for; empty if it can."""
    leave_out = f"leave --non-numeric {request.non_numeric.value} out"
    is_plain, name = request.non_numeric is NonNumeric.ERROR, request.model_name
    if name is ModelName.HMM and not is_plain:
        return f"--model hmm fits a hidden Markov model: {leave_out}; --emission categorical takes a column of texts"
    if name is ModelName.TOPICS:
        about = "--model topics fits topics: "
        if not is_plain:
            return f"{about}{leave_out}; --text COLUMN takes a column of texts"
        if request.uncertainty not in (Uncertainty.AUTO, Uncertainty.MEAN_FIELD):
            return f"{about}linear response of topics is not asked for here, but in Python; leave --uncertainty out"
    if name is ModelName.MIXED:
        about = "--model mixed fits a regression with effects of groups: "
        if "--formula" not in request.options:
            return f"{about}it needs --formula, such as 'y ~ x + (x | school)'"
        if request.arguments.get("n_components") is not None:
            return f"{about}it has no components; leave --components out"
        if not is_plain:
            return f"{about}columns of texts are categories and groups; {leave_out}"
        if request.checkpoint is not None:
            return f"{about}it keeps no checkpoint; leave --checkpoint out"
    elif request.is_mixed:
        about = "--non-numeric categorical fits a Bayesian mixture of mixed columns: "
        if name is not ModelName.BAYESIAN:
            return f"{about}--model {name} has no categories; leave --model out"
        if request.options:
            first = next(iter(request.options))
            return f"{about}given the component its columns are independent, and there is no {first}; leave it out"
    return ""


def _about(request: FitOptions, table: RowsOfTable, numeric: NumericTable) -> dict[str, Any]:
    """Return what is kept of the data with the model."""
    indicators = {} if request.is_mixed else numeric.categories
    return {
        **origin_of(request),
        "rows": len(table.values),
        "missing_entries": table.missing,
        "columns": list(table.columns),
        "column_summary": table.summary,
        **({"categories": indicators} if indicators else {}),
    }


def fit_to_sequences(request: FitOptions, data: str | None, arguments: dict[str, Any]) -> Fit:
    """Fit a hidden Markov model to the sequences of a table in a file."""
    emission = arguments.get("emission", "gaussian")
    sequence = request.options.get("--sequence")
    found = sequences_of(data, request.sql, request.column_names, sequence, emission)
    _complain_of_time(found)
    kept = {"checkpoint": request.checkpoint, "lengths": found.lengths}
    hmm = fitted(request.kind, found.named(), arguments, quiet=request.quiet, **kept)
    hmm.about_ = {
        **origin_of(request),
        "rows": len(found.rows),
        "sequences": len(found.lengths),
        "sequence": sequence,
        "columns": list(found.columns),
    }
    return (
        SequencesOfFile,
        hmm,
        lambda path: pictures().draw_states(hmm, found.named(), found.lengths, path),
    )


def _complain_of_time(found: Sequences) -> None:
    """Warn of columns of numbers that only count the steps of each sequence."""
    if found.rows.dtype == object:
        return
    ends = np.cumsum(found.lengths)[:-1]
    for name, column in zip(found.columns, found.rows.T, strict=True):
        if all(numbers_rows(part) for part in np.split(column, ends)):
            complain("warning", remark(name, " by --columns"))


def fit_to_documents(request: FitOptions, data: str | None, arguments: dict[str, Any]) -> Fit:
    """Fit topics to documents in files."""
    found = documents_to_fit(data, request.sql, request.column_names, request.options, quiet=request.quiet)
    if found.words is not None:
        arguments = {**arguments, "vocabulary": list(found.words)}
    lda = fitted(request.kind, found.counts, arguments, quiet=request.quiet, checkpoint=request.checkpoint)
    texts = {"texts": dict(found.how)} if found.how else {}
    lda.about_ = {**origin_of(request), "rows": found.counts.shape[0], **texts}
    return TopicsOfFile, lda, lambda path: pictures().draw_topics(lda, path)


def fit_regression(request: FitOptions, data: str | None, arguments: dict[str, Any]) -> Fit:
    """Fit a mixed model to a table in a file."""
    table = cv.data.read_columns(data, columns=request.column_names, sql=request.sql)
    model = fitted(request.kind, table, arguments, quiet=request.quiet)
    model.about_ = {**origin_of(request), "rows": table.num_rows, "columns": list(table.column_names)}
    return RegressionOfFile, model, lambda path: pictures().draw_regression(model, path)


_FITS = {
    **dict.fromkeys(ModelName, fit_to_rows),
    ModelName.HMM: fit_to_sequences,
    ModelName.TOPICS: fit_to_documents,
    ModelName.MIXED: fit_regression,
}
"""Name of a model -> what fits it."""


_NO_OPTIONS = "it is stated in the file, which says all of that"


def fit_stated(request: FitOptions) -> None:
    """Do what ``caviar fit`` does for a model that is stated in a file."""
    _require_stated(request)
    require_writable(request.output, ".caviar", inputs=(request.data,))
    require_writable(request.picture, ".png")
    model = model_of(str(request.model_name))
    with input_file(request.data) as file:
        data = _data(request, file)
        posterior = _fitted(request, model, data)
    posterior.data_summary = {**(posterior.data_summary or {}), "about": origin_of(request)}
    deliver(request, PosteriorOfFile, posterior, lambda path: pictures().draw_variables(posterior, path))


def model_of(place: str) -> cv.Model:
    """Return the model that a function of a Python file states; the code of the file runs.

    Parameters
    ----------
    place
        ``FILE.py:FUNCTION``.

    Raises
    ------
    DataError
        If there is no such file or function, it fails, or it returns something else.
    """
    file, _, name = place.rpartition(":")
    if not Path(file).is_file():
        raise cv.DataError(f"there is no file {file}")
    complain("warning", f"running the Python code of {file}; use only files that you trust")
    try:
        found = runpy.run_path(file)
    except Exception as error:
        raise cv.DataError(f"{file} does not run: {type(error).__name__}: {error}") from error
    if not callable(found.get(name)):
        functions = [own for own, value in found.items() if callable(value) and not own.startswith("_")]
        raise cv.DataError(f"{file} has no function {name!r}; it has {listed(functions) or 'none'}")
    if needed := _needed(found[name]):
        raise cv.DataError(f"{name}() of {file} must take no arguments; it needs {listed(needed)}")
    try:
        model = found[name]()
    except cv.CaviarError:
        raise
    except Exception as error:
        raise cv.DataError(f"{name}() of {file} fails: {type(error).__name__}: {error}") from error
    if not isinstance(model, cv.Model):
        raise cv.DataError(
            f"{name}() of {file} must return a caviar.Model; it returned {named(type(model).__name__)}"
        )
    return model


def _needed(function: Any) -> list[str]:
    """Return the arguments that a function cannot be called without; none where it does not tell."""
    try:
        own = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in own if one.default is one.empty and one.kind not in kinds]


def _data(request: FitOptions, file: str | None) -> Any:
    """Return data by name: arrays of a NumPy file, or the columns of a table."""
    if is_numpy_file(file):
        return dict(opened_arrays(Path(str(file))))
    return cv.data.read_columns(file, columns=request.column_names, sql=request.sql)


def _fitted(request: FitOptions, model: cv.Model, data: Any) -> cv.Posterior:
    given = request.arguments
    tol = 1e-6 if given["tol"] is None else given["tol"]
    with watching("ELBO", quiet=request.quiet, tol=tol) as callback:
        return model.fit(
            data,
            seed=np.random.default_rng(given["random_state"]),
            n_restarts=given["n_init"],
            max_iter=given["max_iter"],
            tol=tol,
            executor=given["n_jobs"],
            checkpoint=request.checkpoint,
            progress=callback,
        )


def _require_stated(request: FitOptions) -> None:
    """Refuse options that a stated model does not have.

    Raises
    ------
    BadParameter
        If the user gave one.
    """
    given = list(request.options)
    given += ["--components"] if request.arguments.get("n_components") is not None else []
    given += ["--non-numeric"] if request.non_numeric is not NonNumeric.ERROR else []
    if given:
        raise typer.BadParameter(f"{given[0]} does not belong to --model {request.model_name}: {_NO_OPTIONS}")
