"""The request of ``caviar fit``, and the command that repeats it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .kinds import KINDS, MIXED, Kind, ModelName
from .non_numeric import NonNumeric


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
        What was given of the options that only some mixtures have.
    arguments
        Arguments that every mixture takes.
    output, picture
        Files to write, if any.
    checkpoint
        File that keeps the state of the fit, if any.
    non_numeric
        What is done with columns without numbers.
    sequence
        The column that says which sequence a row belongs to, if any.
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
    sequence: str | None = None
    as_json: bool = False
    quiet: bool = False

    @property
    def is_mixed(self) -> bool:
        """Whether columns of words are to be categories of the mixture."""
        return self.non_numeric is NonNumeric.CATEGORICAL

    @property
    def arguments_of_estimator(self) -> dict[str, Any]:
        """The arguments that every mixture takes, as its estimator writes them."""
        return {**self.arguments, "uncertainty": self.arguments.get("uncertainty", "auto").replace("-", "_")}

    @property
    def kind(self) -> Kind:
        """The mixture that is to be fitted."""
        return MIXED if self.is_mixed else KINDS[ModelName(self.model)]


_ARGUMENTS = {
    "n_components": ("--components", 2),
    "n_init": ("--restarts", 1),
    "max_iter": ("--max-iter", 500),
    "tol": ("--tol", 1e-6),
    "n_jobs": ("--threads", None),
    "random_state": ("--seed", None),
    "uncertainty": ("--uncertainty", "auto"),
}
"""Argument of every mixture -> its option, and the default, which need not be said."""


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
    if request.sequence is not None:
        words += ["--sequence", request.sequence]
    for name, value in request.options.items():
        words += [] if value is None else [name, str(value)]
    for argument, (name, default) in _ARGUMENTS.items():
        value = request.arguments.get(argument, default)
        words += [] if value == default else [name, str(value)]
    return shlex.join(words)
