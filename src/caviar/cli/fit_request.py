"""The request of ``caviar fit``, and the command that repeats it."""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from .fit_options import FitOptions
from .kinds import KINDS, MIXED, Kind, ModelName, model_named
from .non_numeric import NonNumeric
from .options import column_names_of


@dataclass(frozen=True)
class FitRequest:
    """The request of the user.

    Attributes
    ----------
    data, sql, columns
        Where the rows come from.
    model
        Which model; or ``FILE.py:FUNCTION``, where one is stated.
    options
        What was given of the options that only some models have.
    arguments
        Arguments that every model takes; None where nothing was said.
    output, picture
        Files to write, if any.
    checkpoint
        File that keeps the state of the fit, if any.
    non_numeric
        What is done with columns without numbers.
    as_json, quiet
        How to print.
    """

    data: str | None
    sql: str | None
    columns: list[str] | None
    model: ModelName | str
    options: dict[str, Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    output: Path | None = None
    picture: Path | None = None
    checkpoint: Path | None = None
    non_numeric: NonNumeric = NonNumeric.ERROR
    as_json: bool = False
    quiet: bool = False

    @property
    def is_mixed(self) -> bool:
        """Whether columns of words are to be categories of the mixture."""
        return self.non_numeric is NonNumeric.CATEGORICAL

    @property
    def arguments_of_estimator(self) -> dict[str, Any]:
        """The arguments that every model takes, as its estimator writes them."""
        said = {name: value for name, value in self.arguments.items() if value is not None}
        uncertainty = self.arguments.get("uncertainty", "auto").replace("-", "_")
        return {**self.kind.defaults, **said, "uncertainty": uncertainty}

    @property
    def kind(self) -> Kind:
        """The mixture that is to be fitted."""
        return MIXED if self.is_mixed else KINDS[ModelName(self.model)]


def request_of(given: FitOptions) -> FitRequest:
    """Return the request that options make.

    Raises
    ------
    BadParameter
        If one of them is impossible.
    """
    return FitRequest(
        data=given.data,
        sql=given.sql,
        columns=column_names_of(given.columns),
        model=model_named(given.model or ("bayesian" if given.formula is None else "mixed")),
        options={name: _plain(getattr(given, field)) for name, field in _OWN.items()},
        arguments={
            "n_components": _number_or_auto(given.components),
            "n_init": given.restarts,
            "max_iter": given.max_iter,
            "tol": given.tol,
            "random_state": _seed_of(given.seed, given.checkpoint),
            "n_jobs": given.threads,
            "uncertainty": given.uncertainty,
        },
        output=given.output,
        picture=given.picture,
        checkpoint=given.checkpoint,
        non_numeric=given.non_numeric,
        as_json=given.as_json,
        quiet=given.quiet,
    )


_OWN = {
    f"--{field.replace('_', '-')}": field
    for field in (
        *("sequence", "covariance", "mean_precision", "variance", "prior_mean", "prior_variance"),
        *("emission", "stickiness"),
        *(
            "text",
            "encoding",
            "stop_words",
            "min_documents",
            "max_words",
            "vocabulary",
            "doc_topic_prior",
            "topic_word_prior",
        ),
        *("formula", "family"),
    )
}
"""Options that only some models have -> their fields."""


def _plain(value: Any) -> Any:
    """Return a choice as the word that was given, and anything else as it is."""
    return getattr(value, "value", value)


def _number_or_auto(components: str | None) -> int | str | None:
    """Return what ``--components`` says: a whole number of at least 1, or auto; None if it says nothing."""
    if components is None or components == "auto":
        return components
    if not components.isdecimal() or int(components) < 1:
        raise typer.BadParameter(
            f"--components must be a whole number of at least 1, or auto; got {components}"
        )
    return int(components)


def _seed_of(seed: int | None, checkpoint: Path | None) -> int:
    """Return the seed that was given, or another; with a checkpoint the same command must begin the same again."""
    if seed is not None:
        return seed
    return secrets.randbelow(2**31) if checkpoint is None else 0


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


def command_that_goes_on(request: FitRequest) -> str:
    """Return the command that goes on from the checkpoint of a fit, and writes what it was to write.

    Examples
    --------
    >>> arguments, file = {"random_state": 0}, Path("run.ckpt")
    >>> request = FitRequest(
    ...     "a.csv", None, None, ModelName.EM, {}, arguments, Path("m.caviar"), checkpoint=file
    ... )
    >>> command_that_goes_on(request)
    'caviar fit a.csv --model em --seed 0 --checkpoint run.ckpt -o m.caviar'
    """
    files = (("--checkpoint", request.checkpoint), ("-o", request.output), ("--picture", request.picture))
    words = [word for name, path in files if path is not None for word in (name, str(path))]
    return f"{command_of(request)} {shlex.join(words)}"


def command_of(request: FitRequest) -> str:
    """Return the command that gives the same fit: with its seed, and without what only says where to write.

    Examples
    --------
    >>> request = FitRequest(
    ...     "a b.csv", None, ["x"], ModelName.EM, {"--covariance": "diag"}, {"random_state": 3}
    ... )
    >>> command_of(request)
    "caviar fit 'a b.csv' --columns x --model em --covariance diag --seed 3"
    """
    words = ["caviar", "fit", *([] if request.data is None else [request.data])]
    if request.columns is not None:
        quoted = (f'"{name}"' if "," in name else name for name in request.columns)
        words += ["--columns", ",".join(quoted)]
    if request.sql is not None:
        words += ["--sql", request.sql]
    if request.non_numeric is not NonNumeric.ERROR:
        words += ["--non-numeric", request.non_numeric.value]
    if request.model is not ModelName.BAYESIAN:
        words += ["--model", str(request.model)]
    for name, value in request.options.items():
        words += [] if value is None else [name, str(value)]
    for argument, (name, default) in _ARGUMENTS.items():
        value = request.arguments.get(argument, default)
        words += [] if value == default else [name, str(value)]
    return shlex.join(words)
