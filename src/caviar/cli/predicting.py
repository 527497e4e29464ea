"""``caviar predict``: the component of each row of a table, written to another table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from .results import print_document
from .speaking import say, standard_output
from .tables import STANDARD, input_file, load_estimator, read_for, require_table, write_result

__all__ = ["predict_table"]


def predict_table(
    model: Path, data: str | None, sql: str | None, output: Path, *, as_json: bool, quiet: bool
) -> None:
    """Do what ``caviar predict`` does."""
    require_table(output, data, model)
    estimator = load_estimator(model)
    with input_file(data) as file:
        table = read_for(estimator, model, file, sql)
    columns = predictions(estimator, table.values)
    write_result(output, columns)
    if as_json and str(output) != STANDARD:
        print_document({"rows": len(table.values), "output": str(output), "columns": list(columns)})
    elif not quiet and str(output) != STANDARD:
        say(standard_output(), f"{len(table.values):,} rows in {output}")


def predictions(estimator: Any, X: Any) -> dict[str, Any]:
    """Return the columns of the table of predictions, in the order of the rows."""
    with warnings.catch_warnings():
        # The columns were chosen by their names, which an array does not carry.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        probabilities = estimator.predict_proba(X)
        columns = {"label": probabilities.argmax(axis=1)}
        columns.update({f"probability_{k}": column for k, column in enumerate(probabilities.T)})
        columns["log_density"] = estimator.score_samples(X)
    return columns
