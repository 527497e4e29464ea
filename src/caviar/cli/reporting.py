"""``caviar report``: a page of HTML about a saved model, and about data."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import caviar as cv

from .files import require_writable
from .opening import opened
from .results import print_document
from .speaking import say, standard_output
from .tables import input_file, source_name

__all__ = ["write_report"]

_TOLD = ("verdict", "findings", "entries", "rows", "outliers", "quality", "versions")
"""What programs are told of a page, as far as it has it."""


def write_report(
    model: Path, data: str | None, sql: str | None, output: Path, *, as_json: bool, quiet: bool
) -> None:
    """Do what ``caviar report`` does."""
    require_writable(output, ".html", ".htm", inputs=(data, model))
    saved = opened(model)
    with input_file(data) as file:
        rows = None
        if file is not None or sql is not None:
            rows = saved.data(file, sql)
        told = _written(saved.fitted, output, rows, source_name(data), as_json=as_json)
    if as_json:
        print_document({"report": str(output), **{part: told[part] for part in _TOLD if part in told}})
        return
    if not quiet:
        less = "" if rows is not None else "; without DATA it shows no rows, predictions or outliers"
        say(standard_output(), f"report in {output}{less}")


def _written(fitted: Any, output: Path, rows: Any, source: str | None, *, as_json: bool) -> dict[str, Any]:
    """Write the page; return what it shows, if programs are to be told."""
    with warnings.catch_warnings():
        # The columns were chosen by their names, which an array does not carry.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        cv.report.write(fitted, output, rows, source=source)
        return cv.report.gather(fitted, rows, source=source) if as_json else {}
