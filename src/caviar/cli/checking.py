"""``caviar check``: whether what a fit reports is true, found out on the user's own data."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

import typer

import caviar as cv

from .opening import opened
from .options.saved_options import CheckOptions
from .speaking.outputs import FAILURE, gathered_warnings, say, standard_error, standard_output
from .speaking.results import print_document
from .speaking.steps import showing_clock
from .tables.files_and_streams import input_file

_WORDS = {
    "ascent": "Every iteration raised the objective, as exact coordinate ascent must",
    "stationarity": "At the end no parameter could be moved to raise it further",
    "saddle": "Fits that began a little way from the end ended no higher",
    "elbo": "The ELBO that was reported is the one that draws from the densities give",
    "recovery": "On data made from the prior, the intervals hold the true values",
}


def check_model(given: CheckOptions) -> None:
    """Do what ``caviar check`` does."""
    saved = opened(given.model)
    with input_file(given.data) as file:
        rows = saved.to_check(file, given.sql, given.rows, given.seed)
    if not given.quiet:
        say(standard_error(), rows.told)
    with gathered_warnings(), showing_clock(standard_error(), "checking", quiet=given.quiet):
        stated, values, arguments = rows.stated()
        arguments = {"uncertainty": "mean_field", **arguments}
        found = cv.testing.check_model(stated, values, seed=given.seed, progress=False, **arguments)
    if given.as_json:
        print_document(
            {"passed": found.passed, "rows": rows.n_rows, "checks": [asdict(check) for check in found.checks]}
        )
    else:
        _print(found)
    sys.stdout.flush()
    if not found.passed:
        raise typer.Exit(FAILURE)


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
