"""``caviar sample``: new rows from the density of a saved model."""

from __future__ import annotations

from pathlib import Path

import caviar as cv

from .opening import opened
from .results import print_document
from .speaking import counted, say, standard_output
from .tables import STANDARD, require_table, write_result

__all__ = ["write_sample"]


def write_sample(
    model: Path,
    data: str | None,
    n: int | None,
    output: Path,
    *,
    seed: int | None,
    with_component: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Do what ``caviar sample`` does."""
    require_table(output, data, model)
    saved = opened(model)
    if with_component and not saved.has_components:
        raise cv.DataError("--with-component belongs to mixtures of Gaussians, as caviar fit saves them")
    columns = saved.draws(data, n, seed, with_component=with_component)
    write_result(output, columns)
    n_rows = len(next(iter(columns.values())))
    if str(output) == STANDARD:
        return
    if as_json:
        print_document({"output": str(output), "rows": n_rows, "columns": list(columns), "seed": seed})
    elif not quiet:
        say(standard_output(), f"{counted(n_rows, 'row')} in {output}")
