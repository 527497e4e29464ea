"""``caviar fit``: read a table, fit a mixture while its progress is shown, print and save it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

import caviar as cv
from caviar.files.naming import listed

from .files import require_writable
from .fit_options import FitOptions
from .fits import deliver, fitted, kept_told, origin_of, pictures
from .kinds import KINDS, ModelName
from .mixtures import GaussianMixtureOfFile, MixedMixtureOfFile
from .non_numeric import (
    NumericTable,
    complain_of_indicators,
    numbers_only,
    other_choice_told,
    renaming_told,
)
from .regression_fits import fit_regression
from .rows import RowsOfTable, complain_of_columns, rows_of_table
from .sequence_fits import fit_to_sequences
from .stated_fits import fit_stated
from .tables import input_file
from .topic_fits import fit_to_documents

_CHOICES = "categorical (best for a mixture: each value gets a probability), one-hot, or drop"


def fit_to_table(request: FitOptions) -> None:
    """Do what ``caviar fit`` does."""
    with kept_told(request):
        _fit(request)


def _fit(request: FitOptions) -> None:
    """Fit what was asked for, and print and save the result."""
    if not isinstance(request.model_name, ModelName):
        fit_stated(request)
        return
    if request.is_mixed:
        _require_mixed(request)
    arguments = {**request.arguments_of_estimator, **_own_arguments(request)}
    require_writable(request.output, ".caviar", inputs=(request.data,))
    require_writable(request.picture, ".png")
    with input_file(request.data) as file:
        _FITS.get(request.model_name, fit_to_rows)(request, file, arguments)


_FITS: dict[ModelName, Callable[[FitOptions, str | None, dict[str, Any]], None]] = {
    ModelName.HMM: fit_to_sequences,
    ModelName.TOPICS: fit_to_documents,
    ModelName.MIXED: fit_regression,
}
"""Models of data that are no rows of a mixture -> what fits them."""


def fit_to_rows(request: FitOptions, data: str | None, arguments: dict[str, Any]) -> None:
    """Fit to a table that is in a file, and print and save the result."""
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
        deliver(
            request, MixedMixtureOfFile, estimator, lambda path: pictures().draw_profiles(estimator, path)
        )
    else:
        deliver(
            request,
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


def _require_mixed(request: FitOptions) -> None:
    """Refuse what only mixtures of Gaussians have.

    Raises
    ------
    BadParameter
        If the user asked for it: the message says why there is none, and what there is.
    """
    given = list(request.options)
    if request.model_name is not ModelName.BAYESIAN:
        what = f"--model {request.model_name} has no categories; leave --model out"
    elif given:
        what = f"given the component its columns are independent, and there is no {given[0]}; leave it out"
    else:
        return
    raise typer.BadParameter(f"--non-numeric categorical fits a Bayesian mixture of mixed columns: {what}")


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
