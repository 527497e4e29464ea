"""``caviar sample``: new rows from the density of a saved model."""

from __future__ import annotations

from pathlib import Path

import caviar as cv

from .speaking import say, standard_error
from .tables import load_mixture, require_table, write_result

__all__ = ["write_sample"]


def write_sample(
    model: Path, n: int, output: Path, *, seed: int | None, with_component: bool, quiet: bool
) -> None:
    """Do what ``caviar sample`` does."""
    require_table(output, model)
    estimator = load_mixture(model)
    rows, labels = estimator.sample(n, random_state=seed)
    names = cv.report.column_names(estimator)
    columns = dict(zip(names, rows.T, strict=True))
    if with_component:
        if "component" in columns:
            raise cv.DataError(
                "the model has a column 'component' of its own: leave --with-component out, and give the rows to "
                "caviar predict"
            )
        columns["component"] = labels
    write_result(output, columns)
    if not quiet and str(output) != "-":
        say(standard_error(), f"{n:,} rows in {output}")
