"""The command that repeats a fit, and the one that goes on from its checkpoint."""

from __future__ import annotations

import shlex

from .fit_options import FitOptions
from .kinds import ModelName
from .non_numeric import NonNumeric

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
    >>> from caviar.cli.kinds import Covariance
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
