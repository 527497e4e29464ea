"""Options and arguments that several commands take, and how they are told in a help text."""

from __future__ import annotations

import csv
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer

from .non_numeric import NonNumeric

__all__ = [
    "AsJson",
    "Data",
    "Model",
    "OtherColumns",
    "Query",
    "Quiet",
    "column_names_of",
    "option",
    "require_rows",
    "taught",
]


def _examples(*lines: str) -> str:
    """Return the end of a help text; paragraphs, for lines of one paragraph are joined."""
    return "\n\n".join(["Examples:", *lines])


def taught(app: typer.Typer, *lines: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what makes a function a command of ``app``: its docstring is the help text, which ends with examples."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        paragraphs = cleandoc(function.__doc__ or "").split("\n\n")
        # each in one line, to be folded anew where it is shown
        told = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        return app.command(help=told, epilog=_examples(*lines))(function)

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
        help="Columns without numbers: error, drop, one-hot (0 and 1 for each value), or, in fit, categorical.",
        default="error",
    ),
]
Quiet = Annotated[bool, option("--quiet", "-q", help="Show no progress.")]


def require_rows(data: str | None, sql: str | None) -> None:
    """Refuse a command without anything to read."""
    if data is None and sql is None:
        raise typer.BadParameter("expected DATA, a file to read, or --sql QUERY", param_hint="DATA")


def column_names_of(columns: str | None) -> list[str] | None:
    """Return names between commas; one that holds a comma stands in double quotes.

    Examples
    --------
    >>> column_names_of('a, "b,c"')
    ['a', 'b,c']
    """
    if columns is None:
        return None
    return [name.strip() for name in next(csv.reader([columns], skipinitialspace=True), [])]
