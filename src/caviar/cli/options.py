"""Options and arguments of the commands, and how the help text shows them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer

from .kinds import Covariance, EmissionName, MeanPrecision, Uncertainty
from .non_numeric import NonNumeric
from .speaking import errors_in_words


def taught(app: typer.Typer, *lines: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what makes a function a command of ``app``, whose errors are told in words.

    Its docstring is the help text, which ends with examples, a paragraph each: lines of one paragraph would be joined.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        paragraphs = cleandoc(function.__doc__ or "").split("\n\n")
        # each in one line, to be wrapped where it is shown
        told = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        return app.command(help=told, epilog="\n\n".join(["Examples:", *lines]))(errors_in_words()(function))

    return add


def option(*names: str, help: str, metavar: str | None = None, default: str = "", **more: Any) -> Any:
    """Return an option whose default, if it is no plain value, is told in words."""
    told = f"{help}  [dim]\\[default: {default}][/dim]" if default else help
    return typer.Option(*names, help=told, metavar=metavar, show_default=False, **more)


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="CSV or Parquet file, folder of Parquet files, pattern such as '2024-*.csv', or - for standard input; "
        "optional with --sql.",
        show_default=False,
    ),
]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="File that caviar fit -o, or save in Python, wrote.", show_default=False
    ),
]
Query = Annotated[
    str | None, option("--sql", help="DuckDB query to read; in it, data is the table DATA.", metavar="QUERY")
]
AsJson = Annotated[bool, option("--json", help="Print the result as JSON.")]
OtherColumns = Annotated[
    NonNumeric,
    option(
        "--non-numeric",
        metavar="CHOICE",
        help="Columns without numbers: error, categorical (in fit; right for a mixture), one-hot (0 and 1 for each "
        "value), drop.",
        default="error",
    ),
]
Quiet = Annotated[bool, option("--quiet", "-q", help="Show no progress; warnings are still shown.")]
Columns = Annotated[
    str | None,
    option(metavar="A,B", help="Columns; a name with a comma in double quotes.", default="all"),
]
Mixture = Annotated[
    str,
    option(
        metavar="NAME",
        help="bayesian, em (maximum likelihood), known-variance, hmm (hidden Markov), or FILE.py:FUNCTION, which "
        "states a model in Python: its code is run.",
        default="bayesian",
    ),
]
Components = Annotated[
    str | None, option("--components", "-k", metavar="N", help="Number of components, or auto.", default="2")
]
Numbers = Annotated[
    str, option("--components", "-k", metavar="LIST", help="Numbers: 1-8, or 2,4,auto.", default="1-6")
]
CovarianceType = Annotated[
    Covariance | None,
    option(metavar="TYPE", help="full, tied, diag, spherical or unit covariances.", default="full"),
]
CovarianceList = Annotated[
    str, option(metavar="LIST", help="Covariances: full, tied, diag, spherical, unit.", default="full")
]
EmissionKind = Annotated[
    EmissionName | None,
    option(
        "--emission",
        metavar="KIND",
        help="If hmm: gaussian, categorical or poisson rows.",
        default="gaussian",
    ),
]
Stickiness = Annotated[
    float | None,
    option(
        metavar="S", min=0, help="If hmm: prior steps that stay in their state, for each state.", default="0"
    ),
]
SequenceColumn = Annotated[
    str | None,
    option(
        "--sequence",
        metavar="COLUMN",
        help="If hmm: which sequence a row belongs to.",
        default="one sequence",
    ),
]
StepsAhead = Annotated[
    int | None,
    option(
        "--ahead", metavar="N", min=1, help="Of a hidden Markov model: so many steps after each sequence."
    ),
]
MeanPrecisionForm = Annotated[
    MeanPrecision | None,
    option(metavar="FORM", help="If bayesian: posterior joint or independent.", default="joint"),
]
Variance = Annotated[
    float | None, option(metavar="V", help="If known-variance: that of each component.", default="1")
]
PriorMean = Annotated[
    float | None, option(metavar="M", help="If known-variance: prior mean of the means.", default="0")
]
PriorVariance = Annotated[
    float | None, option(metavar="V", help="If known-variance: prior variance of the means.", default="100")
]
Restarts = Annotated[int, option(metavar="R", min=1, help="Starts; the best end is kept.", default="1")]
RestartsEach = Annotated[
    int, option(metavar="R", min=1, help="Starts of each fit; the best end is kept.", default="3")
]
MaxIter = Annotated[
    int,
    option(
        metavar="N",
        min=0,
        help="Most iterations of each start, besides the sweeps that find it.",
        default="500",
    ),
]
Tolerance = Annotated[
    float, option(metavar="T", min=0, help="Stop at a change below, in nats per row.", default="1e-6")
]
FitSeed = Annotated[
    int | None,
    option(
        metavar="S",
        min=0,
        help="The same seed gives the same result.",
        default="a new one; 0 with --checkpoint",
    ),
]
FixedSeed = Annotated[
    int, option(metavar="S", min=0, help="The same seed gives the same result.", default="0")
]
Threads = Annotated[
    int | None,
    option(metavar="N", min=1, help="Their number does not change the result.", default="one a core"),
]
HeldOut = Annotated[
    float | None,
    option(metavar="SHARE", help="Share of rows to hold out and judge by, such as 0.25.", default="none"),
]
Models = Annotated[
    list[Path] | None,
    option(metavar="FILE", help="A saved model, instead of new fits; several times for several."),
]
UncertaintyKind = Annotated[
    Uncertainty,
    option(
        "--uncertainty",
        metavar="KIND",
        help="Of standard deviations and intervals: auto, linear-response or mean-field; auto is linear-response where "
        "it costs at most as much as the fit.",
        default="auto",
    ),
]
SaveModel = Annotated[Path | None, option("--output", "-o", metavar="FILE", help="Save the model: m.caviar.")]
SaveBest = Annotated[
    Path | None, option("--output", "-o", metavar="FILE", help="Save the best new fit: best.caviar.")
]
Picture = Annotated[Path | None, option(metavar="FILE", help="Draw rows and components: m.png.")]
Checkpoint = Annotated[
    Path | None,
    option(metavar="FILE", help="Keep the state of the fit; the same command again goes on from there."),
]


def require_rows(data: str | None, sql: str | None) -> None:
    """Refuse a command without anything to read."""
    if data is None and sql is None:
        raise typer.BadParameter("expected DATA, a file to read, or --sql QUERY", param_hint="DATA")


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
