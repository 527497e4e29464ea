"""What all fits of the command line share: progress while they run, where they come from, and how they are told."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

import caviar as cv

from .models.saved import Saved
from .options.fit_options import FitOptions
from .options.kinds import Kind, ModelName
from .speaking.outputs import FAILURE, complain, counted, say, standard_output
from .speaking.progress import watching
from .speaking.results import print_document
from .tables.files_and_streams import source_name
from .tables.non_numeric import NonNumeric


def fitted(
    kind: Kind,
    X: Any,
    arguments: dict[str, Any],
    *,
    quiet: bool,
    **more: Any,
) -> Any:
    """Return a model fitted to rows, while its progress is shown, and that it goes on from a checkpoint is told.

    ``more`` are arguments of ``fit``.
    """
    searching = arguments.get("n_components") == "auto"
    if searching:
        arguments = {**arguments, **kind.automatic}
    estimator = kind.build(**arguments)
    objective, tol = estimator._objective_in_words, arguments.get("tol", 1e-6)
    with watching(objective, quiet=quiet, tol=tol, searching=searching) as callback:
        return estimator.set_params(verbose=callback).fit(X, **more)


def origin_of(request: FitOptions) -> dict[str, Any]:
    """Return what is kept with every model of where it comes from."""
    return {
        "source": source_name(request.data),
        "query": request.sql,
        "seed": request.arguments.get("random_state"),
        "command": command_of(request),
        "versions": cv.report.versions(),
    }


def pictures() -> Any:
    """Return the module that draws; it imports Matplotlib, which takes a while, for those who ask for a plot."""
    return import_module(".pictures", __package__)


def deliver(request: FitOptions, kind: type[Saved], fitted: Any, draw: Callable[[Path], None]) -> None:
    """Save, draw and print what was fitted, and say how the fit ended.

    Parameters
    ----------
    request
        The request of the user.
    kind
        How the command line knows such a model.
    fitted
        The fitted object.
    draw
        Draws it to a file; called if the user wants a plot.

    Raises
    ------
    Exit
        If the fit was stopped.
    """
    shown = kind(fitted, request.output or Path("the model"))
    if request.output is not None:
        fitted.save(request.output)
    if request.picture is not None:
        draw(request.picture)
    if request.as_json:
        saved = None if request.output is None else str(request.output)
        print_document({**shown.document(), "saved": saved})
    else:
        console = standard_output()
        shown.print(console)
        say(console, f"seed {request.arguments['random_state']}")
        if request.output is not None:
            say(console, f"saved in {request.output}")
        if request.picture is not None:
            say(console, f"plot in {request.picture}")
    posterior = shown.posterior
    _tell_end(request, posterior.status.value, getattr(fitted, "n_iter_", posterior.n_iter))


@contextmanager
def kept_told(request: FitOptions) -> Iterator[None]:
    """Where a fit is interrupted before it has a result, say what was kept, and by which command it goes on.

    Raises
    ------
    Exit
        If it was interrupted.
    """
    try:
        yield
    except KeyboardInterrupt as interruption:
        path = request.checkpoint
        if path is None:
            kept = "nothing was kept; with --checkpoint FILE a fit goes on where it was stopped"
        elif not path.exists():
            kept = f"nothing was kept, for nothing had been written to {path}"
        else:
            kept = f"what was done is in {path}. To go on: {command_that_goes_on(request)}"
        complain("interrupted", f"there is no result yet; {kept}")
        raise typer.Exit(FAILURE) from interruption


def _tell_end(request: FitOptions, status: str, n_iter: int) -> None:
    """Say that a fit has not settled, or was stopped.

    Raises
    ------
    Exit
        If it was stopped.
    """
    if status == "max_iter":
        advice = "raise --max-iter or --tol, or try another --seed"
        complain("warning", f"the fit has not converged after {counted(n_iter, 'iteration')}; {advice}")
    if status == "interrupted":
        kept = "" if request.output is None else f", and is saved in {request.output}"
        again = "" if request.checkpoint is None else "; the same command again goes on from the checkpoint"
        complain(
            "interrupted", f"the fit was stopped before it settled; the best so far is shown{kept}{again}"
        )
        raise typer.Exit(FAILURE)


_ARGUMENTS = {
    "n_components": ("--components", None),
    "n_init": ("--restarts", 1),
    "max_iter": ("--max-iter", 500),
    "tol": ("--tol", None),
    "n_jobs": ("--threads", None),
    "random_state": ("--seed", None),
    "uncertainty": ("--uncertainty", "auto"),
}
"""Argument of every mixture -> its option, and the default, which need not be said."""


def command_that_goes_on(request: FitOptions) -> str:
    """Return the command that goes on from the checkpoint of a fit, and writes what it was to write.

    Examples
    --------
    >>> from pathlib import Path
    >>> request = FitOptions(
    ...     "a.csv", model="em", seed=0, checkpoint=Path("run.ckpt"), output=Path("m.caviar")
    ... )
    >>> command_that_goes_on(request)
    'caviar fit a.csv --model em --seed 0 --checkpoint run.ckpt -o m.caviar'
    """
    files = (("--checkpoint", request.checkpoint), ("-o", request.output), ("--picture", request.picture))
    words = [word for name, path in files if path is not None for word in (name, str(path))]
    return f"{command_of(request)} {shlex.join(words)}"


def command_of(request: FitOptions) -> str:
    """Return the command that gives the same fit: with its seed, and without what only says where to write.

    Examples
    --------
    >>> from caviar.cli.options.kinds import Covariance
    >>> request = FitOptions("a b.csv", model="em", columns="x", seed=3, covariance=Covariance.DIAG)
    >>> command_of(request)
    "caviar fit 'a b.csv' --columns x --model em --covariance diag --seed 3"
    """
    words = ["caviar", "fit", *([] if request.data is None else [request.data])]
    if request.column_names is not None:
        quoted = (f'"{name}"' if "," in name else name for name in request.column_names)
        words += ["--columns", ",".join(quoted)]
    if request.sql is not None:
        words += ["--sql", request.sql]
    if request.non_numeric is not NonNumeric.ERROR:
        words += ["--non-numeric", request.non_numeric.value]
    if request.model_name is not ModelName.BAYESIAN:
        words += ["--model", str(request.model_name)]
    for name, value in request.options.items():
        words += [name, str(value)]
    for argument, (name, default) in _ARGUMENTS.items():
        value = request.arguments.get(argument, default)
        words += [] if value == default else [name, str(value)]
    return shlex.join(words)
