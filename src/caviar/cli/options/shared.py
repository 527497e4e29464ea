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

from ..speaking.outputs import errors_in_words
from ..tables.non_numeric import NonNumeric

_Given = TypeVar("_Given")
TOPICS = "Topics"
"""Heading of the help text."""


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
TextColumn = Annotated[
    str | None,
    option(
        metavar="COLUMN",
        help="Column with the documents, one text in each row.",
        default="none; the table has a column of counts for each word",
        panel=TOPICS,
    ),
]
Encoding = Annotated[
    str | None,
    option(metavar="NAME", help="Encoding of text files.", default="utf-8", panel=TOPICS),
]
StopWords = Annotated[
    str | None,
    option(
        metavar="WHICH",
        help="Words to leave out: english, none, or a file with one word in each line.",
        default="english",
        panel=TOPICS,
    ),
]
MinDocuments = Annotated[
    int | None,
    option(
        metavar="N",
        min=1,
        help="Leave out words that occur in fewer documents than this.",
        default="2; 1 below 20 documents",
        panel=TOPICS,
    ),
]
MaxWords = Annotated[
    int | None,
    option(
        metavar="N",
        min=1,
        help="Largest number of words; the most frequent are kept.",
        default="all",
        panel=TOPICS,
    ),
]
VocabularyFile = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="File with the words to count, one in each line; for a .npz file, the words of its columns.",
        panel=TOPICS,
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
