"""``caviar fit --formula``: a mixed model, fitted to the columns of a table."""

from __future__ import annotations

from typing import Any

import typer

import caviar as cv

from .fit_options import FitOptions
from .fits import deliver, fitted, origin_of, pictures
from .non_numeric import NonNumeric
from .regressions import RegressionOfFile


def fit_regression(request: FitOptions, data: str | None, arguments: dict[str, Any]) -> None:
    """Fit a mixed model to a table in a file, and print and save the result."""
    _require_regression(request)
    table = cv.data.read_columns(data, columns=request.column_names, sql=request.sql)
    model = fitted(request.kind, table, arguments, quiet=request.quiet)
    model.about_ = {**origin_of(request), "rows": table.num_rows, "columns": list(table.column_names)}
    deliver(request, RegressionOfFile, model, lambda path: pictures().draw_regression(model, path))


def _require_regression(request: FitOptions) -> None:
    """Refuse what mixed models do not have, and one without a formula.

    Raises
    ------
    BadParameter
        If the user asked for it.
    """
    if request.options.get("--formula") is None:
        what = "it needs --formula, such as 'y ~ x + (x | school)'"
    elif request.arguments.get("n_components") is not None:
        what = "it has no components; leave --components out"
    elif request.non_numeric is not NonNumeric.ERROR:
        what = (
            f"columns of texts are categories and groups; leave --non-numeric {request.non_numeric.value} out"
        )
    elif request.checkpoint is not None:
        what = "it keeps no checkpoint; leave --checkpoint out"
    else:
        return
    raise typer.BadParameter(f"--model mixed fits a regression with effects of groups: {what}")
