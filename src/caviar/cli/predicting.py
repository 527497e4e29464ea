"""``caviar predict``: the component of each row of a table, written to another table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import caviar as cv

from .files import require_writable
from .speaking import say, standard_output

__all__ = ["predict_table"]


def predict_table(model: Path, data: str | None, sql: str | None, output: Path, *, quiet: bool) -> None:
    """Do what ``caviar predict`` does."""
    require_writable(output, ".csv", ".parquet", ".pq", inputs=(data, model))
    estimator = cv.load(model)
    if isinstance(estimator, cv.Posterior | cv.Model):
        raise cv.DataError(
            f"{model} holds a {type(estimator).__name__} of a stated model, whose arrays are no columns of one table; "
            f"predict in Python: caviar.load({str(model)!r}).predict({{'name': array, ...}})"
        )
    names = list(cv.report.column_names(estimator))
    table = cv.data.read_table(
        data, columns=names if _has_names(estimator) else None, sql=sql, missing_ok=True
    )
    if len(table.columns) != len(names):
        raise cv.DataError(
            f"{model} was fitted to {len(names)} columns without names; the data have {len(table.columns)}: "
            f"{', '.join(table.columns)}. Choose by --sql 'SELECT ... FROM data'"
        )
    cv.data.write_table(output, predictions(estimator, table.values))
    if not quiet:
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


def _has_names(estimator: Any) -> bool:
    return hasattr(estimator, "feature_names_in_") or "columns" in getattr(estimator, "about_", {})
