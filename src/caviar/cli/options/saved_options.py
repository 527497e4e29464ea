"""The options of the commands on a saved model, in the order of the help text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from . import shared as o
from .shared import option

STANDARD_OUTPUT = Path("-")


def _probability(value: float | None) -> float | None:
    """Refuse what is no probability of an interval."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"it must lie between 0 and 1; got {value:g}")
    return value


@dataclass(frozen=True)
class ReportOptions:
    """What the user of ``caviar report`` said. Each field is an option of its name."""

    model: o.Model
    data: o.Data = None
    sql: o.Query = None
    output: Annotated[
        Path | None,
        option(
            "--output", "-o", metavar="FILE", help="Report to write.", default="MODEL.html, beside the model"
        ),
    ] = None
    draws: Annotated[
        int | None,
        option(
            "--draws",
            metavar="S",
            min=100,
            help="Draws that compare the fit with the exact posterior, for all but mixtures of Gaussians.",
            default="1000, fewer for many rows",
        ),
    ] = None
    as_json: o.AsJson = False
    quiet: o.Quiet = False


@dataclass(frozen=True)
class PredictOptions:
    """What the user of ``caviar predict`` said. Each field is an option of its name."""

    model: o.Model
    output: Annotated[
        Path,
        option(
            "--output",
            "-o",
            metavar="FILE",
            help="Table to write, such as labels.csv or labels.parquet; - is standard output.",
        ),
    ]
    data: o.Data = None
    sql: o.Query = None
    keep: Annotated[
        str | None,
        option(
            "--keep",
            metavar="A,B",
            help="Columns of DATA to write before the predictions, such as one that names the rows.",
            default="none",
        ),
    ] = None
    ahead: Annotated[
        int | None,
        option(
            "--ahead",
            metavar="N",
            min=1,
            help="Hidden Markov models: forecast this many steps after each sequence.",
        ),
    ] = None
    interval: Annotated[
        float | None,
        option(
            "--interval",
            metavar="P",
            callback=_probability,
            help="Probability of the intervals of predicted numbers, between 0 and 1.",
            default="0.95",
        ),
    ] = None
    as_json: o.AsJson = False
    quiet: o.Quiet = False


@dataclass(frozen=True)
class SampleOptions:
    """What the user of ``caviar sample`` said. Each field is an option of its name."""

    model: o.Model
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="Known columns of the new rows, if your own model needs them: a table or a .npz file.",
            show_default=False,
        ),
    ] = None
    n: Annotated[
        int | None, option("--number", "-n", metavar="N", min=1, help="Number of rows.", default="1")
    ] = None
    output: Annotated[
        Path,
        option(
            "--output",
            "-o",
            metavar="FILE",
            help="Table to write, such as new.csv or new.parquet.",
            default="-, standard output",
        ),
    ] = STANDARD_OUTPUT
    seed: Annotated[
        int | None,
        option(
            metavar="S",
            min=0,
            help="Random seed; the same seed gives the same rows.",
            default="that of the model",
        ),
    ] = None
    with_component: Annotated[
        bool,
        option("--with-component", help="Add a column with the component, or the state, of each row."),
    ] = False
    as_json: o.AsJson = False
    quiet: o.Quiet = False


@dataclass(frozen=True)
class CheckOptions:
    """What the user of ``caviar check`` said. Each field is an option of its name."""

    model: o.Model
    data: o.Data = None
    sql: o.Query = None
    rows: Annotated[
        int,
        option(
            metavar="N",
            min=2,
            help="Number of rows, or of documents, to check with, chosen at random.",
            default="300",
        ),
    ] = 300
    seed: Annotated[
        int, option(metavar="S", min=0, help="Seed of the fit and of all draws.", default="0")
    ] = 0
    as_json: o.AsJson = False
    quiet: o.Quiet = False
