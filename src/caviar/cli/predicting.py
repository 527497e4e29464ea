"""``caviar predict``: what a saved model says of each row of a table, written to another table."""

from __future__ import annotations

from pathlib import Path

from .opening import opened
from .results import print_document
from .speaking import counted, say, standard_output
from .tables import STANDARD, input_file, require_table, write_result

__all__ = ["predict_table"]


def predict_table(
    model: Path, data: str | None, sql: str | None, output: Path, *, as_json: bool, quiet: bool
) -> None:
    """Do what ``caviar predict`` does."""
    require_table(output, data, model)
    saved = opened(model)
    with input_file(data) as file:
        columns = saved.predictions(file, sql, quiet=quiet)
    write_result(output, columns)
    n_rows = len(next(iter(columns.values())))
    if as_json and str(output) != STANDARD:
        print_document({"rows": n_rows, "output": str(output), "columns": list(columns)})
    elif not quiet and str(output) != STANDARD:
        say(standard_output(), f"{counted(n_rows, 'row')} in {output}")
