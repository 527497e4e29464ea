"""Options and arguments of the commands, and how the help text shows them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import typer

from .kinds import ModelName, Uncertainty
from .non_numeric import NonNumeric
from .speaking import errors_in_words

_Given = TypeVar("_Given")
_FIT = "How to fit"
"""Heading of the help text of ``caviar fit``."""


def taught(app: typer.Typer, *lines: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what makes a function a command of ``app``, whose errors are told in words.

    Its docstring is the help text, which ends with examples, a paragraph each: lines of one paragraph would be joined.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        paragraphs = cleandoc(function.__doc__ or "").split("\n\n")
        # each in one line, to be wrapped where it is shown
        told = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

        @wraps(function)
        def command(**given: Any) -> None:
            model = given.get("model")
            with errors_in_words(
                "the query" if given.get("data") is None else given["data"],
                model if isinstance(model, Path) else None,
            ):
                function(**given)

        return app.command(help=told, epilog="\n\n".join(["Examples:", *lines]))(command)

    return add


def taking(record: type[_Given]) -> Callable[[Callable[[_Given], None]], Callable[..., None]]:
    """Return what gives a function that takes a record an option for each field, as typer reads them."""
    hints = get_type_hints(record, include_extras=True)
    parameters = [
        Parameter(
            own.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if own.default is MISSING else own.default,
            annotation=hints[own.name],
        )
        for own in fields(cast(Any, record))
    ]

    def add(function: Callable[[_Given], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            function(record(**given))

        command.__doc__, command.__name__ = function.__doc__, function.__name__
        command.__annotations__ = {own.name: own.annotation for own in parameters}
        command.__signature__ = Signature(parameters)
        return command

    return add


def option(
    *names: str,
    help: str,
    metavar: str | None = None,
    default: str = "",
    panel: str | None = None,
    **more: Any,
) -> Any:
    """Return an option whose default, if it is not a plain value, is told in words.

    ``panel`` is the heading of the help text that the option belongs to.
    """
    told = f"{help}  [dim]\\[default: {default}][/dim]" if default else help
    return typer.Option(*names, help=told, metavar=metavar, show_default=False, rich_help_panel=panel, **more)


def beginning_with(*words: str) -> Callable[[str], list[str]]:
    """Return what gives a shell the words that begin as what was typed."""

    def begun(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return begun


def _probability(value: float | None) -> float | None:
    """Refuse what is no probability of an interval."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"it must lie between 0 and 1; got {value:g}")
    return value


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="CSV or Parquet file, folder of Parquet files, pattern such as '2024-*.csv', or - for standard input; "
        "optional with --sql.",
        show_default=False,
    ),
]
FitData = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="CSV or Parquet file, folder of Parquet files, pattern such as '2024-*.csv', or - for standard input; "
        "optional with --sql. For topics also a folder of text files, or a SciPy .npz file of counts.",
        show_default=False,
    ),
]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="File written by caviar fit -o, or by save in Python.", show_default=False
    ),
]
Query = Annotated[
    str | None,
    option(
        "--sql",
        help="DuckDB query whose result is read; in it, the table DATA is called data.",
        metavar="QUERY",
    ),
]
AsJson = Annotated[bool, option("--json", help="Print the result as JSON.")]
OtherColumns = Annotated[
    NonNumeric,
    option(
        "--non-numeric",
        metavar="CHOICE",
        help="What to do with text columns: error, categorical (best for a mixture), one-hot (a column of 0 and 1 for "
        "each value), or drop.",
        default="error",
    ),
]
Quiet = Annotated[bool, option("--quiet", "-q", help="Show no progress; warnings are still shown.")]
Columns = Annotated[
    str | None,
    option(
        metavar="A,B",
        help="Columns to use; put a name that contains a comma in double quotes.",
        default="all",
    ),
]
Kept = Annotated[
    str | None,
    option(
        "--keep",
        metavar="A,B",
        help="Columns of DATA to write before the predictions, such as one that names the rows.",
        default="none",
    ),
]
Mixture = Annotated[
    str | None,
    option(
        metavar="NAME",
        help="Mixtures of Gaussians: bayesian, em (maximum likelihood) or known-variance. Other models: hmm (hidden "
        "Markov), topics, mixed (regression with group effects), or FILE.py:FUNCTION, a Python function that "
        "returns a model (its code is run).",
        default="bayesian; mixed with --formula",
        autocompletion=beginning_with(*(name.value for name in ModelName)),
    ),
]
Components = Annotated[
    str | None,
    option(
        "--components",
        "-k",
        metavar="N",
        help="Number of components, states or topics, or auto.",
        default="2; 10 topics",
    ),
]
Numbers = Annotated[
    str,
    option(
        "--components", "-k", metavar="LIST", help="Numbers of components: 1-8, or 2,4,auto.", default="1-6"
    ),
]
CovarianceList = Annotated[
    str | None, option(metavar="LIST", help="Covariances: full, tied, diag, spherical, unit.", default="full")
]
StepsAhead = Annotated[
    int | None,
    option(
        "--ahead",
        metavar="N",
        min=1,
        help="Hidden Markov models: forecast this many steps after each sequence.",
    ),
]
Interval = Annotated[
    float | None,
    option(
        "--interval",
        metavar="P",
        callback=_probability,
        help="Probability of the intervals of predicted numbers, between 0 and 1.",
        default="0.95",
    ),
]
Draws = Annotated[
    int | None,
    option(
        "--draws",
        metavar="S",
        min=100,
        help="Draws that compare the fit with the exact posterior, for all but mixtures of Gaussians.",
        default="1000, fewer for many rows",
    ),
]
Restarts = Annotated[
    int,
    option(metavar="R", min=1, help="Number of starts; the best result is kept.", default="1", panel=_FIT),
]
RestartsEach = Annotated[
    int,
    option(metavar="R", min=1, help="Number of starts of each fit; the best result is kept.", default="3"),
]
MaxIter = Annotated[
    int,
    option(
        metavar="N",
        min=0,
        help="Largest number of iterations for each start, without the passes that find it.",
        default="500",
        panel=_FIT,
    ),
]
Tolerance = Annotated[
    float | None,
    option(
        metavar="T",
        min=0,
        help="Stop when an iteration changes the ELBO by less than this, in nats per row (topics: per document).",
        default="1e-6; topics 0.01; mixed 1e-8",
        panel=_FIT,
    ),
]
FitSeed = Annotated[
    int | None,
    option(
        metavar="S",
        min=0,
        help="Random seed; the same seed gives the same result.",
        default="a new one; 0 with --checkpoint",
        panel=_FIT,
    ),
]
FixedSeed = Annotated[
    int, option(metavar="S", min=0, help="Random seed; the same seed gives the same result.", default="0")
]
Threads = Annotated[
    int | None,
    option(
        metavar="N",
        min=1,
        help="Number of threads; the result does not depend on it.",
        default="one for each core",
        panel=_FIT,
    ),
]
HeldOut = Annotated[
    float | None,
    option(
        metavar="SHARE",
        help="Share of rows to hold out and evaluate the fits on, such as 0.25.",
        default="none",
    ),
]
Models = Annotated[
    list[Path] | None,
    option(
        metavar="FILE",
        help="A saved model to compare instead of new fits; repeat it for several models. Or topics: fit topic models.",
    ),
]
UncertaintyKind = Annotated[
    Uncertainty,
    option(
        "--uncertainty",
        metavar="KIND",
        help="How to find standard deviations and intervals: integrated, second-order, linear-response, mean-field, or "
        "auto, which is the first of these that costs little.",
        default="auto",
        panel=_FIT,
    ),
]
SaveModel = Annotated[
    Path | None, option("--output", "-o", metavar="FILE", help="File for the model, such as m.caviar.")
]
SaveBest = Annotated[
    Path | None,
    option("--output", "-o", metavar="FILE", help="File for the best new fit, such as best.caviar."),
]
Picture = Annotated[Path | None, option(metavar="FILE", help="File for a plot of the fit, such as m.png.")]
Checkpoint = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="File that keeps the state of the fit; after an interruption the same command continues from it.",
        panel=_FIT,
    ),
]


def require_rows(data: str | None, sql: str | None) -> None:
    """Refuse a command without data."""
    if data is None and sql is None:
        raise typer.BadParameter("expected DATA, a file to read, or --sql QUERY")


def column_names_of(columns: str | None) -> list[str] | None:
    """Return names between commas; one that holds a comma is in double quotes.

    Examples
    --------
    >>> column_names_of('a, "b,c"')
    ['a', 'b,c']
    """
    if columns is None:
        return None
    return [name.strip() for name in next(csv.reader([columns], skipinitialspace=True), [])]
