"""``caviar fit``: read a table, fit a mixture while its progress is shown, print and save it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

import caviar as cv
from caviar.files.naming import listed

from .files import require_writable
from .fit_request import FitRequest, command_of
from .kinds import KINDS, Kind, ModelName
from .mixtures import document_of, print_results
from .non_numeric import (
    NonNumeric,
    NumericTable,
    complain_of_indicators,
    numbers_only,
    other_choice_told,
    renaming_told,
)
from .progress import resumptions_told, watching
from .results import print_document
from .rows import RowsOfTable, complain_of_columns, rows_of_table
from .sequences import document_of_sequences, print_sequences, sequences_of
from .speaking import FAILURE, complain, counted, gathered_warnings, say, standard_error, standard_output
from .stated_fits import fit_stated
from .tables import input_file, source_name

_CHOICES = "categorical, which is right for a mixture (each value gets a probability), one-hot, or drop"


def fit_to_table(request: FitRequest) -> None:
    """Do what ``caviar fit`` does."""
    if not isinstance(request.model, ModelName):
        fit_stated(request)
        return
    if request.arguments.get("n_components") is None:
        request = replace(request, arguments={**request.arguments, "n_components": 2})
    if request.is_mixed:
        _require_mixed(request)
    if request.sequence is not None and request.model is not ModelName.HMM:
        raise typer.BadParameter(
            f"--sequence belongs to --model hmm, not to --model {request.model}, which takes rows for independent"
        )
    arguments = {**request.arguments_of_estimator, **_own_arguments(request)}
    require_writable(request.output, ".caviar", inputs=(request.data,))
    require_writable(request.picture, ".png")
    with input_file(request.data) as file:
        if request.model is ModelName.HMM:
            _fit_to_sequences(request, file, arguments)
        else:
            _fit_to_file(request, file, arguments)


def _fit_to_file(request: FitRequest, data: str | None, arguments: dict[str, Any]) -> None:
    """Fit to a table that is in a file, and print and save the result."""
    numeric = numbers_only(data, request.sql, request.columns, request.non_numeric, quiet=request.quiet)
    # places of categories, rather than indicators
    places = numeric.categories if request.is_mixed else {}
    needs_all = request.is_mixed or request.arguments.get("n_components") == "auto"
    with other_choice_told(request.non_numeric, others=_CHOICES):
        table = rows_of_table(data, numeric.sql, numeric.columns, needs_all=needs_all, categories=places)
    if "--covariance" in request.kind.options:
        complain_of_indicators(numeric, [request.options.get("--covariance") or "full"])
    if request.kind.one_column and len(table.columns) != 1:
        names = listed(table.columns)
        raise cv.DataError(f"--model {request.model} takes one column; choose it by --columns from {names}")
    X = cv.data.Table(table.values, table.columns, places) if request.is_mixed else table.values
    with resumptions_told(quiet=request.quiet), renaming_told(table.columns):
        estimator = fitted(request.kind, X, arguments, quiet=request.quiet, checkpoint=request.checkpoint)
    estimator.about_ = _about(request, table, numeric)
    if request.output is not None:
        estimator.save(request.output)
    if request.picture is not None:
        cv.report.save_picture(cv.report.draw(estimator, table.shown()), request.picture)
    _print(request, estimator)
    complain_of_columns(table.summary)
    _tell_end(request, estimator.posterior_.status.value, estimator.n_iter_)


def _fit_to_sequences(request: FitRequest, data: str | None, arguments: dict[str, Any]) -> None:
    """Fit a hidden Markov model to the sequences of a table in a file, and print and save the result."""
    _require_sequences(request)
    emission = arguments.get("emission", "gaussian")
    found = sequences_of(data, request.sql, request.columns, request.sequence, emission)
    with resumptions_told(quiet=request.quiet):
        hmm = fitted(
            request.kind,
            found.named(),
            arguments,
            quiet=request.quiet,
            checkpoint=request.checkpoint,
            lengths=found.lengths,
        )
    hmm.about_ = {
        "source": source_name(request.data),
        "query": request.sql,
        "rows": len(found.rows),
        "sequences": len(found.lengths),
        "sequence": request.sequence,
        "columns": list(found.columns),
        "seed": request.arguments.get("random_state"),
        "command": command_of(request),
        "versions": cv.report.versions(),
    }
    if request.output is not None:
        hmm.save(request.output)
    _print(request, hmm, document_of_sequences, print_sequences)
    _tell_end(request, hmm.posterior_.status.value, hmm.n_iter_)


def _require_sequences(request: FitRequest) -> None:
    """Refuse what hidden Markov models do not have.

    Raises
    ------
    BadParameter
        If the user asked for it.
    """
    if request.picture is not None:
        what = (
            "--picture draws mixtures; save the model by -o m.caviar, and draw by caviar report m.caviar DATA"
        )
    elif request.non_numeric is not NonNumeric.ERROR:
        what = f"leave --non-numeric {request.non_numeric.value} out; --emission categorical takes a column of texts"
    elif request.arguments.get("n_components") == "auto":
        what = "it takes a number of states; fit several, --components 2, 3, ..., and compare their ELBOs"
    else:
        return
    raise typer.BadParameter(f"--model hmm fits a hidden Markov model: {what}")


def fitted(
    kind: Kind,
    X: Any,
    arguments: dict[str, Any],
    *,
    quiet: bool,
    checkpoint: Path | None = None,
    **more: Any,
) -> Any:
    """Return a model fitted to rows, while its progress is shown; ``more`` are arguments of ``fit``."""
    with (
        gathered_warnings(),
        watching(standard_error(), kind.objective, quiet=quiet, tol=arguments.get("tol", 1e-6)) as callback,
    ):
        return kind.build(**arguments, verbose=callback).fit(X, checkpoint=checkpoint, **more)


def _own_arguments(request: FitRequest) -> dict[str, Any]:
    """Return the arguments for the options of one mixture.

    Raises
    ------
    BadParameter
        If the mixture does not have one of the options.
    """
    own = request.kind.options
    given = {name: value for name, value in request.options.items() if value is not None}
    for name in given:
        if name not in own:
            owners = " or ".join(other for other, kind in KINDS.items() if name in kind.options)
            raise typer.BadParameter(f"{name} belongs to --model {owners}, not to --model {request.model}")
    return {own[name]: value for name, value in given.items()}


def _require_mixed(request: FitRequest) -> None:
    """Refuse what only mixtures of Gaussians have.

    Raises
    ------
    BadParameter
        If the user asked for it: the message says why there is none, and what there is.
    """
    given = [name for name, value in request.options.items() if value is not None]
    if request.model is not ModelName.BAYESIAN:
        what = f"--model {request.model} has no categories; leave --model out"
    elif given:
        what = f"given the component its columns are independent, and there is no {given[0]}; leave it out"
    elif request.arguments.get("n_components") == "auto":
        what = "it takes a number of components; fit several, --components 2, 3, ..., and compare their ELBOs"
    elif request.picture is not None:
        what = "--picture draws mixtures of Gaussians; save it by -o m.caviar, and draw by caviar report m.caviar"
    else:
        return
    raise typer.BadParameter(f"--non-numeric categorical fits a Bayesian mixture of mixed columns: {what}")


def _about(request: FitRequest, table: RowsOfTable, numeric: NumericTable) -> dict[str, Any]:
    """Return what is kept of the data with the model."""
    indicators = {} if request.is_mixed else numeric.categories
    return {
        "source": source_name(request.data),
        "query": request.sql,
        "rows": len(table.values),
        "missing_entries": table.missing,
        "columns": list(table.columns),
        "seed": request.arguments.get("random_state"),
        "column_summary": table.summary,
        **({"categories": indicators} if indicators else {}),
        "command": command_of(request),
        "versions": cv.report.versions(),
    }


def _print(
    request: FitRequest,
    estimator: Any,
    document: Callable[[Any], dict[str, Any]] = document_of,
    show: Callable[[Console, Any], None] = print_results,
) -> None:
    """Print what was fitted, as a document for programs or for people."""
    saved = None if request.output is None else str(request.output)
    if request.as_json:
        print_document({**document(estimator), "saved": saved})
        return
    console = standard_output()
    show(console, estimator)
    say(console, f"seed {request.arguments['random_state']}")
    if saved is not None:
        say(console, f"saved in {saved}")
    if request.picture is not None:
        say(console, f"picture in {request.picture}")


def _tell_end(request: FitRequest, status: str, n_iter: int) -> None:
    """Say that a fit has not settled, or was stopped.

    Raises
    ------
    Exit
        If it was stopped.
    """
    if status == "max_iter":
        advice = "raise --max-iter, or --tol, or begin elsewhere with --seed"
        complain("warning", f"the fit has not settled after {counted(n_iter, 'iteration')}: {advice}")
    if status == "interrupted":
        kept = "" if request.output is None else f", and is saved in {request.output}"
        again = "" if request.checkpoint is None else "; the same command again goes on from the checkpoint"
        complain(
            "interrupted", f"the fit was stopped before it settled; the best so far is shown{kept}{again}"
        )
        raise typer.Exit(FAILURE)
