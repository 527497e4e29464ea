"""``caviar check``: whether what a fit reports is true, found out on the user's own data."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import typer

import caviar as cv

from .opening import opened_mixture
from .results import print_document
from .speaking import FAILURE, gathered_warnings, say, standard_error, standard_output
from .steps import showing_clock
from .tables import input_file

_MOST_ROWS = 300
_WORDS = {
    "ascent": "Every iteration raised the objective, as exact coordinate ascent must",
    "stationarity": "At the end no parameter could be moved to raise it further",
    "saddle": "Fits that began a little way from the end ended no higher",
    "elbo": "The ELBO that was reported is the one that draws from the densities give",
    "recovery": "On data made from the prior, the intervals hold the true values",
}


def check_model(
    model: Path, data: str | None, sql: str | None, *, seed: int, n_rows: int, as_json: bool, quiet: bool
) -> None:
    """Do what ``caviar check`` does."""
    saved = opened_mixture(model)
    with input_file(data) as file:
        read = saved.data(file, sql)
    values: Any = saved.fitted._validated(read, reset=False)
    complete = np.flatnonzero(~np.isnan(values).any(axis=1))
    if not len(complete):
        raise cv.DataError("every row has a missing entry, and the check takes whole rows")
    generator = np.random.default_rng(seed)
    chosen = complete[np.sort(generator.choice(len(complete), min(n_rows, len(complete)), replace=False))]
    if not quiet:
        left = len(values) - len(complete)
        told = f"; {left:,} rows with missing entries are left out" if left else ""
        say(standard_error(), f"checking on {len(chosen):,} of {len(values):,} rows{told}")
    # each category by its place among those of the mixture
    rows = cv.data.Table(values[chosen], read.columns, getattr(saved.fitted, "categories_", {}))
    with gathered_warnings(), showing_clock(standard_error(), "checking", quiet=quiet):
        found = _verified(saved.fitted, rows, seed)
    if as_json:
        print_document(
            {"passed": found.passed, "rows": len(chosen), "checks": [asdict(check) for check in found.checks]}
        )
    else:
        _print(found)
    sys.stdout.flush()
    if not found.passed:
        raise typer.Exit(FAILURE)


def _verified(estimator: Any, rows: Any, seed: int) -> Any:
    """Return what the verification finds of the model that an estimator like this one states for rows."""
    if getattr(estimator, "fixed", None):
        raise cv.ParameterError("the check takes no components that are fixed: it fits all of them again")
    arguments = {
        **estimator.get_params(deep=False),
        "n_components": len(estimator.weights_),
        "n_init": 1,
        "random_state": seed,
        "verbose": False,
        **({"kinds": estimator.kinds_} if isinstance(estimator, cv.MixedMixture) else {}),
    }
    fitted = type(estimator)(**arguments).fit(rows)
    # maximum likelihood: all that is learnt is points
    point = tuple(fitted.posterior_.keys()) if isinstance(estimator, cv.GaussianMixture) else ()
    data = fitted._data(fitted._rows_to_predict(rows))
    return cv.testing.check_model(fitted.posterior_.model, data, seed=seed, point=point, progress=False)


def _print(found: Any) -> None:
    console = standard_output()
    for check in found.checks:
        word, style = ("passed", "green") if check.passed else ("FAILED", "bold red")
        say(console, f"{word}  {_WORDS[check.name]}", style)
        say(console, f"        {check.sentence}: {check.figure:.3g}, allowed {check.threshold:.3g}")
    say(console)
    verdict = (
        "What the fit reports is true of these rows."
        if found.passed
        else "What the fit reports is not true of these rows: please report it, with the model and the data."
    )
    say(console, verdict, "bold")
