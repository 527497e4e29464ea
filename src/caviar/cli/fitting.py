"""``caviar fit``: read a table, fit a mixture while its progress is shown, print and save it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

import caviar as cv
from caviar.files.naming import listed

from .ending import end_told
from .files import require_writable
from .fit_request import FitRequest, command_of
from .kinds import KINDS, ModelName
from .mixed_fitting import fit_mixed, require_mixed
from .non_numeric import NonNumeric, NumericTable, numbers_only, other_choice_told
from .progress import resumptions_told, watching
from .results import document_of, print_document, print_results
from .rows import RowsOfTable, complain_of_columns, rows_of_table
from .speaking import gathered_warnings, say, standard_error, standard_output
from .tables import input_file, source_name

__all__ = ["fit_to_table", "fitted"]


def fit_to_table(request: FitRequest) -> None:
    """Do what ``caviar fit`` does."""
    is_mixed = request.non_numeric is NonNumeric.CATEGORICAL
    if is_mixed:
        require_mixed(request)
    arguments = {**request.arguments, **_own_arguments(request.model, request.options)}
    require_writable(request.output, ".caviar", inputs=(request.data,))
    require_writable(request.picture, ".png")
    is_auto = request.arguments.get("n_components") == "auto"
    with input_file(request.data) as file:
        if is_mixed:
            fit_mixed(request, file)
            return
        _fit_to_file(request, file, arguments, is_auto=is_auto)


def _fit_to_file(request: FitRequest, data: str | None, arguments: dict[str, Any], *, is_auto: bool) -> None:
    """Fit to a table that is in a file, and print and save the result."""
    numeric = numbers_only(data, request.sql, request.columns, request.non_numeric, quiet=request.quiet)
    with other_choice_told(request.non_numeric, others="drop, one-hot, or categorical"):
        table = rows_of_table(data, numeric.sql, numeric.columns, needs_all=is_auto)
    if KINDS[request.model].one_column and len(table.columns) != 1:
        names = listed(table.columns)
        raise cv.DataError(f"--model {request.model} takes one column; choose it by --columns from {names}")
    with resumptions_told(quiet=request.quiet):
        estimator = fitted(
            request.model, table.values, arguments, quiet=request.quiet, checkpoint=request.checkpoint
        )
    estimator.about_ = _about(request, table, numeric)
    if request.output is not None:
        estimator.save(request.output)
    if request.picture is not None:
        cv.report.save_picture(cv.report.draw(estimator, table.shown()), request.picture)
    _print(request, estimator)
    complain_of_columns(table.summary)
    status = estimator.posterior_.status
    end_told(status, estimator.n_iter_, output=request.output, checkpoint=request.checkpoint)


def fitted(
    model: ModelName, X: Any, arguments: dict[str, Any], *, quiet: bool, checkpoint: Path | None = None
) -> Any:
    """Return a mixture fitted to rows, while its progress is shown."""
    kind = KINDS[model]
    with (
        gathered_warnings(),
        watching(standard_error(), kind.objective, quiet=quiet, tol=arguments.get("tol", 1e-6)) as callback,
    ):
        return kind.build(**arguments, verbose=callback).fit(X, checkpoint=checkpoint)


def _own_arguments(model: ModelName, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that the options of one mixture stand for.

    Raises
    ------
    BadParameter
        If the mixture does not have one of the options.
    """
    own = KINDS[model].options
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in own:
            owners = " or ".join(other for other, kind in KINDS.items() if name in kind.options)
            raise typer.BadParameter(f"{name} belongs to --model {owners}, not to --model {model}")
    return {own[name]: value for name, value in given.items()}


def _about(request: FitRequest, table: RowsOfTable, numeric: NumericTable) -> dict[str, Any]:
    """Return what is kept of the data with the model."""
    return {
        "source": source_name(request.data),
        "query": request.sql,
        "rows": len(table.values),
        "missing_entries": table.missing,
        "columns": list(table.columns),
        "seed": request.arguments.get("random_state"),
        "column_summary": table.summary,
        **({"categories": numeric.categories} if numeric.categories else {}),
        "command": command_of(request),
        "versions": cv.report.versions(),
    }


def _print(request: FitRequest, estimator: Any) -> None:
    saved = None if request.output is None else str(request.output)
    if request.as_json:
        print_document(document_of(estimator, saved=saved))
        return
    console = standard_output()
    print_results(console, estimator)
    say(console, f"seed {request.arguments['random_state']}")
    if saved is not None:
        say(console, f"saved in {saved}")
    if request.picture is not None:
        say(console, f"picture in {request.picture}")
