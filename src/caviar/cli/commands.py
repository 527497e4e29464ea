"""The commands for fitted models and for choosing among them: what they take, and what ``--help`` says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .files import require_writable
from .kinds import Covariance
from .mixture_options import (
    Columns,
    CovarianceList,
    FixedSeed,
    HeldOut,
    Models,
    Numbers,
    RestartsEach,
    SaveBest,
)
from .non_numeric import NonNumeric
from .options import (
    AsJson,
    Data,
    Model,
    OtherColumns,
    Query,
    Quiet,
    column_names_of,
    option,
    require_rows,
    taught,
)
from .speaking import errors_in_words

__all__ = ["add_commands"]

_STANDARD_OUTPUT = Path("-")


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module."""
    taught(
        app,
        "caviar report m.caviar eruptions.csv -o report.html",
        "caviar report m.caviar -o report.html",
        "caviar report m.caviar new.csv -o new.html --json | jq .verdict",
        "caviar report m.caviar trips.parquet --sql 'SELECT * FROM data WHERE year = 2024' -o 2024.html",
        "caviar report regression.caviar arrays.npz -o regression.html",
    )(report)
    taught(
        app,
        "caviar sample m.caviar -n 1000 -o new.csv",
        "caviar sample m.caviar -n 5 --seed 1 --with-component",
        "caviar sample m.caviar -n 100 | caviar predict m.caviar - -o labels.csv",
        "caviar sample regression.caviar known-columns.csv -o new.csv",
    )(sample)
    taught(
        app,
        "caviar compare eruptions.csv --components 1-6",
        "caviar compare eruptions.csv --components 2,3,auto --covariance full,diag --held-out 0.25",
        "caviar compare new.csv --model a.caviar --model b.caviar --json",
    )(compare)
    taught(
        app, "caviar check m.caviar eruptions.csv", "caviar check m.caviar eruptions.csv --rows 100 --json"
    )(check)


def report(
    model: Model,
    output: Annotated[Path, option("--output", "-o", metavar="FILE", help="Page to write: report.html.")],
    data: Data = None,
    sql: Query = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a page of HTML about a model: whether to trust it, what was found, pictures, data quality.

    Of a mixture it shows components and outliers; of topics their words; of the posterior of a model stated in Python,
    saved by posterior.save, its statement, every variable with its interval, hidden states and predictions.

    DATA may be the rows that the model was fitted to, or new ones; without them less is shown. A stated model takes a
    table with columns like its arrays (y, X_0, X_1), or a NumPy file .npz with an array for each. The page needs no
    network, and nothing else, to be read.
    """
    from .reporting import write_report

    with errors_in_words():
        write_report(model, data, sql, output, as_json=as_json, quiet=quiet)


def sample(
    model: Model,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="Known columns of the new rows, where a stated model has some, as a regression: a table, or .npz.",
            show_default=False,
        ),
    ] = None,
    n: Annotated[
        int | None, option("--number", "-n", metavar="N", min=1, help="How many rows.", default="1")
    ] = None,
    output: Annotated[
        Path,
        option(
            "--output",
            "-o",
            metavar="FILE",
            help="Table to write: new.csv, new.parquet.",
            default="-, standard output",
        ),
    ] = _STANDARD_OUTPUT,
    seed: Annotated[
        int | None,
        option(metavar="S", min=0, help="The same gives the same rows.", default="that of the model"),
    ] = None,
    with_component: Annotated[
        bool,
        option("--with-component", help="Of a mixture: add the column component, where each row comes from."),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draw new rows from a model; their columns have the names of those it was fitted to.

    From topics: documents as counts of words, each of the average length of those of the fit. From the posterior of a
    stated model: the rows of one new data set.
    """
    from .sampling import write_sample

    if as_json and output == _STANDARD_OUTPUT:
        raise typer.BadParameter(
            "--json tells what was written to a file; say which by -o", param_hint="--json"
        )
    with errors_in_words():
        write_sample(
            model, data, n, output, seed=seed, with_component=with_component, as_json=as_json, quiet=quiet
        )


def compare(
    data: Data = None,
    columns: Columns = None,
    sql: Query = None,
    non_numeric: OtherColumns = NonNumeric.ERROR,
    model: Models = None,
    components: Numbers = "1-6",
    covariance: CovarianceList = "full",
    held_out: HeldOut = None,
    restarts: RestartsEach = 3,
    seed: FixedSeed = 0,
    output: SaveBest = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare mixtures of several sizes and covariances by their ELBO, a lower bound on the log evidence.

    ELBO + log K! makes up for the K! numberings of K components that lie apart, of which a fit finds one.
    """
    _refuse_categorical(non_numeric)
    from .comparing import ComparisonRequest
    from .comparing import compare as compare_mixtures

    if not model:
        require_rows(data, sql)
    if model and output is not None:
        raise typer.BadParameter("--output saves a new fit; with --model there is none")
    numbers = _numbers(components)
    with errors_in_words():
        require_writable(output, ".caviar", inputs=(data,))
        compare_mixtures(
            ComparisonRequest(
                data=data,
                sql=sql,
                columns=column_names_of(columns),
                models=tuple(model or ()),
                components=numbers,
                covariances=_covariances(covariance),
                held_out=held_out,
                non_numeric=non_numeric,
                restarts=restarts,
                seed=seed,
                output=output,
                as_json=as_json,
                quiet=quiet,
            )
        )


def check(
    model: Model,
    data: Data = None,
    sql: Query = None,
    rows: Annotated[
        int, option(metavar="N", min=2, help="Check on so many rows, chosen at random.", default="300")
    ] = 300,
    seed: Annotated[int, option(metavar="S", min=0, help="Of the fit and of all draws.", default="0")] = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check that what a fit reports is true: fit the model of MODEL to DATA again, and verify the result.

    The objective must rise at every iteration, be stationary at the end, and agree with an estimate from draws. The
    exit status is 1 if a check fails.
    """
    from .checking import check_model

    require_rows(data, sql)
    with errors_in_words():
        check_model(model, data, sql, seed=seed, n_rows=rows, as_json=as_json, quiet=quiet)


def _refuse_categorical(non_numeric: NonNumeric) -> None:
    if non_numeric is NonNumeric.CATEGORICAL:
        raise typer.BadParameter(
            "--non-numeric categorical belongs to caviar fit, for compare fits mixtures of Gaussians; choose drop, or "
            "one-hot, or compare the ELBOs of caviar fit --components 2, 3, ..."
        )


def _numbers(text: str) -> tuple[int | str, ...]:
    from .comparing import numbers_of_components

    try:
        return numbers_of_components(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--components") from error


def _covariances(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in {kind.value for kind in Covariance}:
            kinds = ", ".join(kind.value for kind in Covariance)
            raise typer.BadParameter(f"{name!r} is not one of {kinds}", param_hint="--covariance")
    return names
