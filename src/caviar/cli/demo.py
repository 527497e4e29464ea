"""``caviar demo``: a guided tour on the data of a geyser, in a few seconds and without files of one's own."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

import caviar as cv

from .fits import fitted
from .models.mixtures import GaussianMixtureOfFile
from .options.kinds import KINDS, ModelName
from .speaking.outputs import say, standard_error, standard_output
from .speaking.results import columns_table, print_document
from .tables.files import require_folder

_NUMBERS = (1, 2, 3, 4, 5)
_ARGUMENTS = {"random_state": 0, "n_init": 5}


def run_demo(folder: Path, *, as_json: bool, quiet: bool) -> None:
    """Do what ``caviar demo`` does."""
    require_folder(folder)
    console = standard_output()
    # programs are told what was written, and nothing of the tour
    console.quiet = as_json
    faithful = cv.datasets.load_faithful()
    X = faithful.values
    say(console, "Old Faithful", "bold")
    say(
        console,
        f"{len(X)} eruptions of the geyser: how long each lasted, and the wait for the next, in minutes.",
    )
    say(console)
    best = _choose(console, faithful, quiet=quiet)
    best.about_ = {"source": "faithful.csv", "rows": len(X), "columns": list(faithful.columns), "seed": 0}
    GaussianMixtureOfFile(best, folder).print(console)
    say(console)
    files = _write(console, folder, best, faithful)
    if as_json:
        told = {"rows": len(X), "columns": list(faithful.columns), "seed": 0}
        print_document({**files, **told, "n_components": len(best.weights_), "elbo": best.elbo_})


def _choose(console: Console, X: Any, *, quiet: bool) -> Any:
    """Fit mixtures of one to five components; return the one with the highest bound."""
    say(console, "How many kinds of eruption are there? A Bayesian mixture of Gaussians for each answer,")
    say(console, "and its lower bound on the log evidence (ELBO), by which the answers may be compared:")
    say(console)
    # Each takes a moment: there is time to watch them on a terminal, and no need for a record of it.
    quiet = quiet or not standard_error().is_terminal
    fits = {
        n: fitted(KINDS[ModelName.BAYESIAN], X, {"n_components": n, **_ARGUMENTS}, quiet=quiet)
        for n in _NUMBERS
    }
    best = max(fits, key=lambda n: fits[n].elbo_)
    table = columns_table("components", "ELBO", "iterations")
    table.add_column("weights")
    for n, mixture in fits.items():
        weights = ", ".join(f"{weight:.3f}" for weight in sorted(mixture.weights_, reverse=True))
        mark = "  <- highest" if n == best else ""
        table.add_row(str(n), f"{mixture.elbo_:.2f}", str(mixture.n_iter_), weights + mark)
    console.print(table)
    say(console)
    longest = max(fits, key=lambda n: fits[n].n_iter_)
    say(
        console,
        "Components that the data do not need are left without rows. In every fit the bound rises with",
    )
    say(
        console, f"each iteration; with {longest} components, and the number of the iteration in parentheses:"
    )
    say(console, _climb(fits[longest].elbo_trace_))
    say(console)
    return fits[best]


def _climb(trace: Any) -> str:
    """Return some steps of a bound on its way up."""
    last = len(trace) - 1
    steps = [step for step in (1, 2, 5, 10, 20, 50, 100, 200) if step < last]
    return "  ".join(f"{trace[step]:.1f} ({step})" for step in [*steps, last])


def _write(console: Console, folder: Path, mixture: Any, faithful: Any) -> dict[str, str]:
    """Write the plot, the model and the data, and say what may be done with them; return their names."""
    picture, model, data = (folder / f"faithful.{suffix}" for suffix in ("png", "caviar", "csv"))
    labels = ["length of the eruption (minutes)", "wait for the next (minutes)"]
    title = f"Old Faithful: {len(mixture.weights_)} kinds of eruption"
    cv.report.save_picture(cv.report.draw(mixture, faithful.values, columns=labels, title=title), picture)
    mixture.save(model)
    cv.data.write_table(data, {name: faithful.column(name) for name in faithful.columns})
    say(console, f"plot   {picture}")
    say(console, f"model  {model}")
    say(console, f"data   {data}")
    say(console)
    say(console, "Next, try:", "bold")
    program = _program()
    say(console, f"  {program} show {model}")
    say(console, f"  {program} report {model} {data} -o {folder / 'faithful.html'}")
    say(console, f"  {program} fit {data} --components 3 --mean-precision independent --seed 0")
    say(console, f"  {program} predict {model} {data} -o {folder / 'labels.csv'}")
    return {"picture": str(picture), "model": str(model), "data": str(data)}


def _program() -> str:
    """Return how this program is called from where it was called."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return "python -m caviar"
    found = shutil.which("caviar")
    return "caviar" if found is not None and called.exists() and called.samefile(found) else str(called)
