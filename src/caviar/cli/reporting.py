"""``caviar report``: a page of HTML about a saved model, and about data."""

from __future__ import annotations

import warnings
from pathlib import Path

import caviar as cv

from .files import require_writable
from .results import print_document
from .speaking import say, standard_output
from .tables import input_file, load_mixture, read_for, source_name

__all__ = ["write_report"]


def write_report(
    model: Path, data: str | None, sql: str | None, output: Path, *, as_json: bool, quiet: bool
) -> None:
    """Do what ``caviar report`` does."""
    require_writable(output, ".html", ".htm", inputs=(data, model))
    estimator = load_mixture(model)
    with input_file(data) as file:
        rows = None
        if file is not None or sql is not None:
            rows = read_for(estimator, model, file, sql).values
        with warnings.catch_warnings():
            # The columns were chosen by their names, which an array does not carry.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            cv.report.write(estimator, output, rows, source=source_name(data))
            told = cv.report.gather(estimator, rows, source=source_name(data)) if as_json else {}
    if as_json:
        parts = ("verdict", "findings", "rows", "outliers", "quality", "versions")
        print_document({"report": str(output), **{part: told[part] for part in parts}})
        return
    if not quiet:
        less = "" if rows is not None else "; without DATA it shows no rows, predictions or outliers"
        say(standard_output(), f"report in {output}{less}")
