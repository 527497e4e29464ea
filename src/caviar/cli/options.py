"""Options and arguments of the commands, and how the help text shows them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import typer

from .kinds import Covariance, EmissionName, MeanPrecision, Uncertainty
from .non_numeric import NonNumeric
from .speaking import errors_in_words

_Given = TypeVar("_Given")
_FIT, _GAUSSIAN, _HMM = "How to fit", "Mixtures of Gaussians", "Hidden Markov models"
_TOPICS, _REGRESSION = "Topics", "Mixed models: regression with effects of groups"
"""Headings of the help text of ``caviar fit``."""


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


def taking(record: type[_Given]) -> Callable[[Callable[[_Given], None]], Callable[..., None]]:
    """Return what gives a function that takes a record an option for each field, as typer reads them."""
    hints = get_type_hints(record, include_extras=True)
    parameters = [
        Parameter(own.name, Parameter.KEYWORD_ONLY, default=own.default, annotation=hints[own.name])
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
    """Return an option whose default, if it is no plain value, is told in words.

    ``panel`` is the heading of the help text that the option belongs to.
    """
    told = f"{help}  [dim]\\[default: {default}][/dim]" if default else help
    return typer.Option(*names, help=told, metavar=metavar, show_default=False, rich_help_panel=panel, **more)


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
        "optional with --sql. Topics: also a folder of text files, or counts in a .npz file of SciPy.",
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
        help="Columns without numbers: error, categorical (right for a mixture), one-hot (0 and 1 for each value), "
        "drop.",
        default="error",
    ),
]
Quiet = Annotated[bool, option("--quiet", "-q", help="Show no progress; warnings are still shown.")]
Columns = Annotated[
    str | None,
    option(metavar="A,B", help="Columns; a name with a comma in double quotes.", default="all"),
]
Mixture = Annotated[
    str | None,
    option(
        metavar="NAME",
        help="bayesian, em (maximum likelihood), known-variance: mixtures of Gaussians; hmm (hidden Markov); topics; "
        "mixed (regression with effects of groups); or FILE.py:FUNCTION, which states a model in Python: its code "
        "is run.",
        default="bayesian; mixed with --formula",
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
    str, option("--components", "-k", metavar="LIST", help="Numbers: 1-8, or 2,4,auto.", default="1-6")
]
CovarianceType = Annotated[
    Covariance | None,
    option(
        metavar="TYPE",
        help="full, tied, diag, spherical or unit covariances; also of hmm.",
        default="full",
        panel=_GAUSSIAN,
    ),
]
CovarianceList = Annotated[
    str | None, option(metavar="LIST", help="Covariances: full, tied, diag, spherical, unit.", default="full")
]
EmissionKind = Annotated[
    EmissionName | None,
    option(
        "--emission",
        metavar="KIND",
        help="gaussian, categorical or poisson rows.",
        default="gaussian",
        panel=_HMM,
    ),
]
Stickiness = Annotated[
    float | None,
    option(
        metavar="S",
        min=0,
        help="Prior steps that stay in their state, for each state.",
        default="0",
        panel=_HMM,
    ),
]
FormulaText = Annotated[
    str | None,
    option(
        "--formula",
        metavar="FORMULA",
        help="Response, common effects and effects of groups: 'y ~ x + (x | school)'.",
        panel=_REGRESSION,
    ),
]
FamilyName = Annotated[
    str | None,
    option(
        "--family",
        metavar="NAME",
        help="Of the response: gaussian, student, bernoulli, probit, binomial or negative_binomial.",
        default="gaussian",
        panel=_REGRESSION,
    ),
]
SequenceColumn = Annotated[
    str | None,
    option(
        "--sequence",
        metavar="COLUMN",
        help="Column that says which sequence a row belongs to.",
        default="one sequence",
        panel=_HMM,
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
    option(
        metavar="FORM",
        help="If bayesian: posterior joint or independent.",
        default="joint",
        panel=_GAUSSIAN,
    ),
]
Variance = Annotated[
    float | None,
    option(metavar="V", help="If known-variance: that of each component.", default="1", panel=_GAUSSIAN),
]
PriorMean = Annotated[
    float | None,
    option(metavar="M", help="If known-variance: prior mean of the means.", default="0", panel=_GAUSSIAN),
]
PriorVariance = Annotated[
    float | None,
    option(
        metavar="V", help="If known-variance: prior variance of the means.", default="100", panel=_GAUSSIAN
    ),
]
Restarts = Annotated[
    int, option(metavar="R", min=1, help="Starts; the best end is kept.", default="1", panel=_FIT)
]
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
        panel=_FIT,
    ),
]
Tolerance = Annotated[
    float | None,
    option(
        metavar="T",
        min=0,
        help="Stop at a change below, in nats per row, or per document.",
        default="1e-6; topics 0.01; mixed 1e-8",
        panel=_FIT,
    ),
]
FitSeed = Annotated[
    int | None,
    option(
        metavar="S",
        min=0,
        help="The same seed gives the same result.",
        default="a new one; 0 with --checkpoint",
        panel=_FIT,
    ),
]
FixedSeed = Annotated[
    int, option(metavar="S", min=0, help="The same seed gives the same result.", default="0")
]
Threads = Annotated[
    int | None,
    option(
        metavar="N", min=1, help="Their number does not change the result.", default="one a core", panel=_FIT
    ),
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
        panel=_FIT,
    ),
]
SaveModel = Annotated[Path | None, option("--output", "-o", metavar="FILE", help="Save the model: m.caviar.")]
SaveBest = Annotated[
    Path | None, option("--output", "-o", metavar="FILE", help="Save the best new fit: best.caviar.")
]
Picture = Annotated[Path | None, option(metavar="FILE", help="Draw what was found: m.png.")]
Checkpoint = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="Keep the state of the fit; the same command again goes on from there.",
        panel=_FIT,
    ),
]
TextColumn = Annotated[
    str | None,
    option(
        metavar="COLUMN",
        help="Column of the table that holds the documents, a text in each row.",
        default="none: a column of counts for each word",
        panel=_TOPICS,
    ),
]
Encoding = Annotated[
    str | None,
    option(metavar="NAME", help="Encoding of text files.", default="utf-8", panel=_TOPICS),
]
StopWords = Annotated[
    str | None,
    option(
        metavar="WHICH",
        help="Words of texts that are not counted: english, none, or a file of words.",
        default="english",
        panel=_TOPICS,
    ),
]
MinDocuments = Annotated[
    int | None,
    option(
        metavar="N",
        min=1,
        help="Documents that a word of texts must occur in, at least.",
        default="2",
        panel=_TOPICS,
    ),
]
MaxWords = Annotated[
    int | None,
    option(
        metavar="N",
        min=1,
        help="Most words of texts; the most frequent are kept.",
        default="all",
        panel=_TOPICS,
    ),
]
VocabularyFile = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="Words to count in texts, or those of the columns of a .npz file; one a line.",
        panel=_TOPICS,
    ),
]
DocTopicPrior = Annotated[
    float | None,
    option(metavar="A", help="Concentration of the topics in a document.", default="1/K", panel=_TOPICS),
]
TopicWordPrior = Annotated[
    float | None,
    option(metavar="A", help="Concentration of the words in a topic.", default="1/K", panel=_TOPICS),
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
