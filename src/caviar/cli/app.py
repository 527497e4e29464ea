"""The commands: what they take, and what ``--help`` says. What they do stands in modules of their own."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

import caviar as cv

from .commands import add_commands
from .kinds import Covariance, MeanPrecision, ModelName
from .mixture_options import (
    Checkpoint,
    Columns,
    Components,
    CovarianceType,
    FitSeed,
    MaxIter,
    MeanPrecisionForm,
    Mixture,
    Picture,
    PriorMean,
    PriorVariance,
    Restarts,
    SaveModel,
    Threads,
    Tolerance,
    Variance,
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

__all__ = ["app"]

_ORDER = ("demo", "fit", "compare", "show", "report", "predict", "sample", "check")
"""Of the commands in the help text: as they are used, one after the other."""

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 success, 2 bad usage or bad input, 1 anything else.",
)


def _number_or_auto(components: str) -> int | str:
    """Return what ``--components`` says: a whole number of at least 1, or auto."""
    if components == "auto":
        return components
    if not components.isdecimal() or int(components) < 1:
        raise typer.BadParameter(
            f"--components must be a whole number of at least 1, or auto; got {components}"
        )
    return int(components)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"caviar {cv.__version__}")
        raise typer.Exit


@app.callback()
def caviar(
    version: Annotated[
        bool, option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Variational inference by coordinate ascent: mixtures of Gaussians for tables.

    To see what it does: caviar demo

    Show, report, predict and sample also take topics, and posteriors of models stated in Python, that were saved.
    """


@taught(
    app,
    "caviar fit eruptions.csv --components 3 -o m.caviar",
    "caviar fit 'trips/*.parquet' --columns distance,duration --restarts 5",
    "caviar fit a.csv --sql 'SELECT ln(b) AS b FROM data WHERE c > 2' --seed 1",
    "caviar fit penguins.csv --components auto --covariance diag --picture penguins.png",
    "caviar fit penguins.csv --non-numeric categorical --components 3 -o penguins.caviar",
    "caviar fit a.csv --model known-variance --variance 4 --json",
    "caviar fit 'trips/*.parquet' -k 40 --restarts 20 --checkpoint trips.ckpt -o m.caviar",
)
def fit(
    data: Data = None,
    columns: Columns = None,
    sql: Query = None,
    non_numeric: OtherColumns = NonNumeric.ERROR,
    model: Mixture = ModelName.BAYESIAN,
    components: Components = "2",
    covariance: CovarianceType = None,
    mean_precision: MeanPrecisionForm = None,
    variance: Variance = None,
    prior_mean: PriorMean = None,
    prior_variance: PriorVariance = None,
    restarts: Restarts = 1,
    max_iter: MaxIter = 500,
    tol: Tolerance = 1e-6,
    seed: FitSeed = None,
    threads: Threads = None,
    output: SaveModel = None,
    picture: Picture = None,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit a mixture of Gaussians to the columns of a table."""
    # Imported here: --help need not wait for NumPy and what the commands need besides.
    from .fit_request import FitRequest
    from .fitting import fit_to_table

    require_rows(data, sql)
    with errors_in_words():
        fit_to_table(
            FitRequest(
                data=data,
                sql=sql,
                columns=column_names_of(columns),
                model=model,
                options=_own_options(covariance, mean_precision, variance, prior_mean, prior_variance),
                arguments=_arguments(components, restarts, max_iter, tol, _seed(seed, checkpoint), threads),
                output=output,
                picture=picture,
                checkpoint=checkpoint,
                non_numeric=non_numeric,
                as_json=as_json,
                quiet=quiet,
            )
        )


@taught(
    app,
    "caviar predict m.caviar new.csv -o labels.csv",
    "caviar predict m.caviar 'new/*.parquet' -o labels.parquet",
    "caviar predict m.caviar new.csv -o - | head",
    "caviar predict regression.caviar new.csv -o predictions.csv",
)
def predict(
    model: Model,
    output: Annotated[
        Path,
        option(
            "--output",
            "-o",
            metavar="FILE",
            help="Table to write: labels.csv, labels.parquet; - is standard output.",
        ),
    ],
    data: Data = None,
    sql: Query = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write what a model says of each row of a table.

    Of a mixture: the columns label, probability_0, probability_1, ..., log_density. Of topics: topic, topic_0, ..., the
    proportions. Of the posterior of a stated model: mean and sd of what the rows lack, and what is hidden in them.

    The rows are those of DATA in their order. The columns that the model was fitted to are found by their names; a
    stated model also takes a NumPy file .npz with an array for each name.
    """
    from .predicting import predict_table

    require_rows(data, sql)
    with errors_in_words():
        predict_table(model, data, sql, output, as_json=as_json, quiet=quiet)


@taught(app, "caviar show m.caviar", "caviar show m.caviar --json | jq .components")
def show(model: Model, as_json: AsJson = False) -> None:
    """Show a saved model: components with intervals, words of topics, or the variables of a stated model."""
    from .opening import show_model

    with errors_in_words():
        show_model(model, as_json=as_json)


@taught(app, "caviar demo --output-dir demo-output")
def demo(
    output_dir: Annotated[
        Path,
        option(
            metavar="FOLDER",
            help="Where to write the picture, the model and the data.",
            default="demo-output",
        ),
    ] = Path("demo-output"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Take a tour: fit the eruptions of Old Faithful, and draw a picture of them."""
    from .demo import run_demo

    with errors_in_words():
        run_demo(output_dir, as_json=as_json, quiet=quiet or as_json)


def _own_options(
    covariance: Covariance | None,
    mean_precision: MeanPrecision | None,
    variance: float | None,
    prior_mean: float | None,
    prior_variance: float | None,
) -> dict[str, str | float | None]:
    """Return what was given of the options that only some mixtures have."""
    return {
        "--covariance": None if covariance is None else covariance.value,
        "--mean-precision": None if mean_precision is None else mean_precision.value,
        "--variance": variance,
        "--prior-mean": prior_mean,
        "--prior-variance": prior_variance,
    }


def _arguments(
    components: str, restarts: int, max_iter: int, tol: float, seed: int, threads: int | None
) -> dict[str, int | float | str | None]:
    """Return the arguments that every mixture takes."""
    return {
        "n_components": _number_or_auto(components),
        "n_init": restarts,
        "max_iter": max_iter,
        "tol": tol,
        "random_state": seed,
        "n_jobs": threads,
    }


def _seed(seed: int | None, checkpoint: Path | None) -> int:
    """Return the seed: with a checkpoint the same command must begin the same again."""
    if seed is not None:
        return seed
    return secrets.randbelow(2**31) if checkpoint is None else 0


add_commands(app)
app.registered_commands.sort(key=lambda command: _ORDER.index(getattr(command.callback, "__name__", "")))
