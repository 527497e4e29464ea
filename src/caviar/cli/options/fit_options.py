"""The options of ``caviar fit``, in the order of the help text, and what they ask for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from ..tables.non_numeric import NonNumeric
from . import shared as o
from .kinds import (
    KINDS,
    MIXED,
    OF_SOME,
    Covariance,
    EmissionName,
    Kind,
    MeanPrecision,
    ModelName,
    Uncertainty,
    given_of,
    model_named,
)
from .shared import TOPICS, beginning_with, option

_FIT, _GAUSSIAN, _HMM = "How to fit", "Mixtures of Gaussians", "Hidden Markov models"
_REGRESSION = "Mixed models: regression with group effects"
"""Headings of the help text."""


@dataclass(frozen=True)
class FitOptions:
    """What the user of ``caviar fit`` said; None where nothing was said. Each field is an option of its name."""

    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="CSV or Parquet file, folder of Parquet files, pattern such as '2024-*.csv', or - for standard input; "
            "optional with --sql. For topics also a folder of text files, or a SciPy .npz file of counts.",
            show_default=False,
        ),
    ] = None
    model: Annotated[
        str | None,
        option(
            metavar="NAME",
            help="Mixtures of Gaussians: bayesian, em (maximum likelihood) or known-variance. Other models: hmm "
            "(hidden Markov), topics, mixed (regression with group effects), or FILE.py:FUNCTION, a Python function "
            "that returns a model (its code is run).",
            default="bayesian; mixed with --formula",
            autocompletion=beginning_with(*(name.value for name in ModelName)),
        ),
    ] = None
    components: Annotated[
        str | None,
        option(
            "--components",
            "-k",
            metavar="N",
            help="Number of components, states or topics, or auto.",
            default="2; 10 topics",
        ),
    ] = None
    columns: o.Columns = None
    sql: o.Query = None
    non_numeric: o.OtherColumns = NonNumeric.ERROR
    output: Annotated[
        Path | None, option("--output", "-o", metavar="FILE", help="File for the model, such as m.caviar.")
    ] = None
    picture: Annotated[
        Path | None, option(metavar="FILE", help="File for a plot of the fit, such as m.png.")
    ] = None
    as_json: o.AsJson = False
    quiet: o.Quiet = False
    seed: Annotated[
        int | None,
        option(
            metavar="S",
            min=0,
            help="Random seed; the same seed gives the same result.",
            default="a new one; 0 with --checkpoint",
            panel=_FIT,
        ),
    ] = None
    restarts: Annotated[
        int,
        option(
            metavar="R", min=1, help="Number of starts; the best result is kept.", default="1", panel=_FIT
        ),
    ] = 1
    max_iter: Annotated[
        int,
        option(
            metavar="N",
            min=0,
            help="Largest number of iterations for each start, without the passes that find it.",
            default="500",
            panel=_FIT,
        ),
    ] = 500
    tol: Annotated[
        float | None,
        option(
            metavar="T",
            min=0,
            help="Stop when an iteration changes the ELBO by less than this, in nats per row (topics: per document).",
            default="1e-6; topics 0.01; mixed 1e-8",
            panel=_FIT,
        ),
    ] = None
    threads: Annotated[
        int | None,
        option(
            metavar="N",
            min=1,
            help="Number of threads; the result does not depend on it.",
            default="one for each core",
            panel=_FIT,
        ),
    ] = None
    uncertainty: Annotated[
        Uncertainty,
        option(
            "--uncertainty",
            metavar="KIND",
            help="How to find standard deviations and intervals: integrated, second-order, linear-response, "
            "mean-field, or auto, which is the first of these that costs little.",
            default="auto",
            panel=_FIT,
        ),
    ] = Uncertainty.AUTO
    checkpoint: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="File that keeps the state of the fit; after an interruption the same command continues from it.",
            panel=_FIT,
        ),
    ] = None
    covariance: Annotated[
        Covariance | None,
        option(
            metavar="TYPE",
            help="Covariances: full, tied, diag, spherical or unit; also for hmm.",
            default="full",
            panel=_GAUSSIAN,
        ),
    ] = None
    mean_precision: Annotated[
        MeanPrecision | None,
        option(
            metavar="FORM",
            help="With bayesian: one factor for mean and precision of a component (joint), or two (independent).",
            default="joint",
            panel=_GAUSSIAN,
        ),
    ] = None
    variance: Annotated[
        float | None,
        option(
            metavar="V",
            help="With known-variance: the variance of each component.",
            default="1",
            panel=_GAUSSIAN,
        ),
    ] = None
    prior_mean: Annotated[
        float | None,
        option(
            metavar="M", help="With known-variance: prior mean of the means.", default="0", panel=_GAUSSIAN
        ),
    ] = None
    prior_variance: Annotated[
        float | None,
        option(
            metavar="V",
            help="With known-variance: prior variance of the means.",
            default="100",
            panel=_GAUSSIAN,
        ),
    ] = None
    formula: Annotated[
        str | None,
        option(
            "--formula",
            metavar="FORMULA",
            help="Response, common effects and group effects: 'y ~ x + (x | school)'.",
            panel=_REGRESSION,
        ),
    ] = None
    family: Annotated[
        str | None,
        option(
            "--family",
            metavar="NAME",
            help="Distribution of the response: gaussian, student, bernoulli, probit, binomial, negative_binomial or "
            "ordinal.",
            default="gaussian",
            panel=_REGRESSION,
            autocompletion=beginning_with(
                "gaussian", "student", "bernoulli", "probit", "binomial", "negative_binomial", "ordinal"
            ),
        ),
    ] = None
    categories: Annotated[
        str | None,
        option(
            "--categories",
            metavar="A,B",
            help="With ordinal: the categories of the response in their order, the lowest first.",
            default="numbers in their order",
            panel=_REGRESSION,
        ),
    ] = None
    sequence: Annotated[
        str | None,
        option(
            "--sequence",
            metavar="COLUMN",
            help="Column with the sequence that each row belongs to.",
            default="one sequence",
            panel=_HMM,
        ),
    ] = None
    emission: Annotated[
        EmissionName | None,
        option(
            "--emission",
            metavar="KIND",
            help="Distribution of a row given its state: gaussian, categorical or poisson.",
            default="gaussian",
            panel=_HMM,
        ),
    ] = None
    stickiness: Annotated[
        float | None,
        option(
            metavar="S",
            min=0,
            help="Prior number of steps that stay in each state; large values favour long states.",
            default="0",
            panel=_HMM,
        ),
    ] = None
    text: o.TextColumn = None
    encoding: o.Encoding = None
    stop_words: o.StopWords = None
    min_documents: o.MinDocuments = None
    max_words: o.MaxWords = None
    vocabulary: o.VocabularyFile = None
    doc_topic_prior: Annotated[
        float | None,
        option(
            metavar="A",
            help="Concentration of the topic proportions of a document.",
            default="1/K",
            panel=TOPICS,
        ),
    ] = None
    topic_word_prior: Annotated[
        float | None,
        option(metavar="A", help="Concentration of the words in a topic.", default="1/K", panel=TOPICS),
    ] = None

    @property
    def is_mixed(self) -> bool:
        """Whether columns of words are to be categories of the mixture."""
        return self.non_numeric is NonNumeric.CATEGORICAL

    @property
    def column_names(self) -> list[str] | None:
        """The columns to use; None for all."""
        return o.column_names_of(self.columns)

    @property
    def model_name(self) -> ModelName | str:
        """Which model; or ``FILE.py:FUNCTION``, where one is stated.

        Raises
        ------
        BadParameter
            If there is no such model.
        """
        return model_named(self.model or ("bayesian" if self.formula is None else "mixed"))

    @property
    def kind(self) -> Kind:
        """The mixture that is to be fitted."""
        return MIXED if self.is_mixed else KINDS[ModelName(self.model_name)]

    @property
    def options(self) -> dict[str, Any]:
        """The options that only some models have and that were given, by their names on the command line."""
        found = given_of(self, OF_SOME)
        if self.categories is not None:
            found["--categories"] = o.column_names_of(self.categories)
        return found

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The arguments that every model takes; None where nothing was said.

        Raises
        ------
        BadParameter
            If one of them is impossible.
        """
        return {
            "n_components": _number_or_auto(self.components),
            "n_init": self.restarts,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "random_state": _seed_of(self.seed, self.checkpoint),
            "n_jobs": self.threads,
            "uncertainty": self.uncertainty,
        }

    @property
    def arguments_of_estimator(self) -> dict[str, Any]:
        """The arguments that every model takes, as its estimator writes them."""
        said = {name: value for name, value in self.arguments.items() if value is not None}
        uncertainty = self.uncertainty.replace("-", "_")
        return {**self.kind.defaults, **said, "uncertainty": uncertainty}


def _number_or_auto(components: str | None) -> int | str | None:
    """Return what ``--components`` says: a whole number of at least 1, or auto; None if it says nothing."""
    if components is None or components == "auto":
        return components
    if not components.isdecimal() or int(components) < 1:
        raise typer.BadParameter(
            f"--components must be a whole number of at least 1, or auto; got {components}"
        )
    return int(components)


def _seed_of(seed: int | None, checkpoint: Path | None) -> int:
    """Return the seed that was given, or another; with a checkpoint the same command must begin the same again."""
    if seed is not None:
        return seed
    return secrets.randbelow(2**31) if checkpoint is None else 0
