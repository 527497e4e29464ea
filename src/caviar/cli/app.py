"""The commands: what they take, and what ``--help`` says. Modules of their own do the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import caviar as cv

from .options import shared as options
from .options.compare_options import CompareOptions
from .options.fit_options import FitOptions
from .options.saved_options import STANDARD_OUTPUT, CheckOptions, PredictOptions, ReportOptions, SampleOptions
from .options.shared import option, require_rows, taking, taught
from .speaking.usage import CommandsInWords
from .tables.files import require_file

app = typer.Typer(
    cls=CommandsInWords,
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Rows count from 0, lines of files from 1. Exit status: 0 success, 2 bad usage or bad input, 1 other.",
)


def _refuse_two_answers(output: Path, *, as_json: bool) -> None:
    """Refuse a table and a document on standard output at once."""
    if as_json and output == STANDARD_OUTPUT:
        raise typer.BadParameter("--json describes a written file, so it needs the name of one: add -o FILE")


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
    """Variational inference for tables: mixtures, hidden Markov models, and models stated in Python.

    To see what it does: caviar demo

    show, report, predict, sample and check also take files saved in Python: estimators, and posteriors of your own
    models.
    """


@taught(
    app,
    "caviar demo --output-dir demo-output",
)
def demo(
    output_dir: Annotated[
        Path,
        option(
            metavar="FOLDER",
            help="Folder for the plot, the model and the data.",
            default="demo-output",
        ),
    ] = Path("demo-output"),
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Try caviar: fit a mixture to the eruptions of Old Faithful, and plot it."""
    # Imported here, as in all commands: --help need not wait for NumPy and what they need besides.
    from .demo import run_demo

    run_demo(output_dir, as_json=as_json, quiet=quiet or as_json)


@taught(
    app,
    "caviar fit eruptions.csv --components 3 -o m.caviar",
    "caviar fit 'trips/*.parquet' --columns distance,duration --restarts 5",
    "caviar fit a.csv --sql 'SELECT ln(b) AS b FROM data WHERE c > 2' --seed 1",
    "caviar fit penguins.csv --components auto --covariance diag --picture penguins.png",
    "caviar fit penguins.csv --non-numeric categorical --components 3 -o penguins.caviar",
    "caviar fit a.csv --model known-variance --variance 4 --json",
    "caviar fit pupils.csv --model model.py:build -o m.caviar",
    "caviar fit news/ --model topics --components 20 -o news.caviar",
    "caviar fit reviews.csv --model topics --text review --components 8 -o reviews.caviar",
    "caviar fit pupils.csv --formula 'points ~ hours + (hours | school)' -o m.caviar",
    "caviar fit days.csv --model hmm --components 3 --sequence subject -o m.caviar",
    "caviar fit 'trips/*.parquet' -k 40 --restarts 20 --checkpoint trips.ckpt -o m.caviar",
)
@taking(FitOptions)
def fit(given: FitOptions) -> None:
    """Fit a mixture, hidden Markov model, topic model, mixed model, or your own Python model to a table.

    --formula fits a regression with group effects, in the notation of lme4: 'y ~ x + (x | school)'.

    --model topics reads documents from a folder of text files, a column of texts (--text), a table with a column of
    counts for each word, or a SciPy .npz file of counts. Words are runs of at least two letters, in lower case.

    --model FILE.py:FUNCTION runs the Python code of that file, so use only files that you trust. The function takes no
    arguments and returns a caviar.Model, whose variables are the columns of DATA by name; text columns are labels. DATA
    may also be a NumPy .npz file with an array for each variable.
    """
    from .fitting import fit_to_table

    require_rows(given.data, given.sql)
    fit_to_table(given)


@taught(
    app,
    "caviar compare eruptions.csv --components 1-6",
    "caviar compare eruptions.csv --components 2,3,auto --covariance full,diag --held-out 0.25",
    "caviar compare penguins.csv --non-numeric categorical --components 2-8,auto -o best.caviar",
    "caviar compare reviews.csv --model topics --text review -k 5,10,20 --held-out 0.2 -o topics.caviar",
    "caviar compare new.csv --model a.caviar --model b.caviar --json",
)
@taking(CompareOptions)
def compare(given: CompareOptions) -> None:
    """Compare mixtures with several numbers of components and covariances, or topic models, by their ELBO.

    The ELBO is a lower bound of the log evidence. A fit finds one of the K! equivalent numberings of K components; ELBO
    + log K! counts all of them. --model topics fits topics to documents, which are read as by caviar fit; with
    --held-out they are also compared by the perplexity of half of the words in held-out documents.
    """
    from .comparing import compare as compare_models

    given.require_possible()
    compare_models(given)


@taught(
    app,
    "caviar show m.caviar",
    "caviar show m.caviar --json | jq .components",
)
def show(model: options.Model, as_json: options.AsJson = False) -> None:
    """Show a saved model: components with intervals, words of topics, or the variables of your own model."""
    require_file(model)
    from .opening import show_model

    show_model(model, as_json=as_json)


@taught(
    app,
    "caviar report m.caviar eruptions.csv -o report.html",
    "caviar report m.caviar",
    "caviar report m.caviar new.csv -o new.html --json | jq .verdict",
    "caviar report m.caviar trips.parquet --sql 'SELECT * FROM data WHERE year = 2024' -o 2024.html",
    "caviar report regression.caviar arrays.npz -o regression.html",
)
@taking(ReportOptions)
def report(given: ReportOptions) -> None:
    """Write an HTML report about a model: whether to trust it, its parameters, plots, and data quality.

    For a mixture it shows components and outliers, for topics their words. For the posterior of your own model, saved
    by posterior.save, it shows the model, every variable with its interval, hidden states and predictions.

    DATA may be the rows of the fit or new rows; without DATA the report shows less. For your own model, DATA is a table
    with a column for each array entry (y, X_0, X_1), or a NumPy .npz file with the arrays. The report is one file that
    can be read offline.
    """
    require_file(given.model)
    from .opening import write_report

    write_report(given)


@taught(
    app,
    "caviar predict m.caviar new.csv -o labels.csv",
    "caviar predict m.caviar 'new/*.parquet' -o labels.parquet",
    "caviar predict m.caviar new.csv -o - | head",
    "caviar predict regression.caviar new.csv -o predictions.csv --keep school,pupil",
    "caviar predict hmm.caviar days.csv --ahead 7 -o forecast.csv",
)
@taking(PredictOptions)
def predict(given: PredictOptions) -> None:
    """Write the prediction of a model for each row of a table.

    For a mixture the columns are label, probability_0, probability_1, ..., log_density. For a hidden Markov model they
    have state, the most probable path, instead of label. For topics they are topic and the proportions topic_0, ... For
    regressions, forecasts and your own model they are mean, sd and interval (lower, upper) of the missing columns, and
    the hidden variables of the rows.

    Rows are in the order of DATA, and --keep copies columns that tell which is which. Columns of the fit are found by
    name; for your own model, DATA may also be a NumPy .npz file with an array for each variable.
    """
    from .opening import predict_table

    require_rows(given.data, given.sql)
    _refuse_two_answers(given.output, as_json=given.as_json)
    predict_table(given)


@taught(
    app,
    "caviar sample m.caviar -n 1000 -o new.csv",
    "caviar sample m.caviar -n 5 --seed 1 --with-component",
    "caviar sample m.caviar -n 100 | caviar predict m.caviar - -o labels.csv",
    "caviar sample regression.caviar known-columns.csv -o new.csv",
)
@taking(SampleOptions)
def sample(given: SampleOptions) -> None:
    """Draw new rows from a model, with the columns of the table of the fit.

    Topics give documents as word counts, with the average length of the documents of the fit. Your own model gives the
    rows of one new data set.
    """
    from .opening import write_sample

    _refuse_two_answers(given.output, as_json=given.as_json)
    write_sample(given)


@taught(
    app,
    "caviar check m.caviar eruptions.csv",
    "caviar check m.caviar eruptions.csv --rows 100 --json",
    "caviar check topics.caviar news/",
)
@taking(CheckOptions)
def check(given: CheckOptions) -> None:
    """Check a fit: fit the model of MODEL to DATA again, and verify the result.

    The objective must increase in every iteration, be stationary at the end, and agree with an estimate from draws. The
    exit status is 1 if a check fails. It takes every kind of saved fit, and rows without missing entries: of sequences
    parts, of documents at most 2,000 words, and all rows where those of your own model belong together.
    """
    from .checking import check_model

    require_rows(given.data, given.sql)
    check_model(given)
