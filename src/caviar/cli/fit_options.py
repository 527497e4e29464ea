"""The options of ``caviar fit``, in the order of the help text, and what they ask for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import typer

from . import model_options as m
from . import options as o
from .kinds import KINDS, MIXED, OF_SOME, Kind, ModelName, Uncertainty, given_of, model_named
from .non_numeric import NonNumeric


@dataclass(frozen=True)
class FitOptions:
    """What the user of ``caviar fit`` said; None where nothing was said. Each field is an option of its name."""

    data: o.FitData = None
    model: o.Mixture = None
    components: o.Components = None
    columns: o.Columns = None
    sql: o.Query = None
    non_numeric: o.OtherColumns = NonNumeric.ERROR
    output: o.SaveModel = None
    picture: o.Picture = None
    as_json: o.AsJson = False
    quiet: o.Quiet = False
    seed: o.FitSeed = None
    restarts: o.Restarts = 1
    max_iter: o.MaxIter = 500
    tol: o.Tolerance = None
    threads: o.Threads = None
    uncertainty: o.UncertaintyKind = Uncertainty.AUTO
    checkpoint: o.Checkpoint = None
    covariance: m.CovarianceType = None
    mean_precision: m.MeanPrecisionForm = None
    variance: m.Variance = None
    prior_mean: m.PriorMean = None
    prior_variance: m.PriorVariance = None
    formula: m.FormulaText = None
    family: m.FamilyName = None
    categories: m.OrderedCategories = None
    sequence: m.SequenceColumn = None
    emission: m.EmissionKind = None
    stickiness: m.Stickiness = None
    text: m.TextColumn = None
    encoding: m.Encoding = None
    stop_words: m.StopWords = None
    min_documents: m.MinDocuments = None
    max_words: m.MaxWords = None
    vocabulary: m.VocabularyFile = None
    doc_topic_prior: m.DocTopicPrior = None
    topic_word_prior: m.TopicWordPrior = None

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
