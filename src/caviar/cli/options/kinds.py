"""The models that the command line fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import typer

import caviar as cv


class ModelName(StrEnum):
    """The values of ``--model``."""

    BAYESIAN = "bayesian"
    EM = "em"
    KNOWN_VARIANCE = "known-variance"
    HMM = "hmm"
    TOPICS = "topics"
    MIXED = "mixed"


class EmissionName(StrEnum):
    """The values of ``--emission``."""

    GAUSSIAN = "gaussian"
    CATEGORICAL = "categorical"
    POISSON = "poisson"


class Covariance(StrEnum):
    """The values of ``--covariance``."""

    FULL = "full"
    TIED = "tied"
    DIAG = "diag"
    SPHERICAL = "spherical"
    UNIT = "unit"


class MeanPrecision(StrEnum):
    """The values of ``--mean-precision``."""

    JOINT = "joint"
    INDEPENDENT = "independent"


class Uncertainty(StrEnum):
    """The values of ``--uncertainty``."""

    AUTO = "auto"
    INTEGRATED = "integrated"
    LINEAR_RESPONSE = "linear-response"
    SECOND_ORDER = "second-order"
    MEAN_FIELD = "mean-field"


@dataclass(frozen=True)
class Kind:
    """A model as the command line knows it.

    Attributes
    ----------
    estimator
        Name of its class.
    options
        The options of the command line that only some models have, and the argument that each sets.
    reading
        Those that say how its data are read.
    defaults
        Arguments of the command line that are others than those of Python.
    one_column
        Whether it is a mixture in one dimension.
    automatic
        The arguments that ``--components auto`` sets.
    """

    estimator: str
    options: dict[str, str]
    reading: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=lambda: {"n_components": 2, "tol": 1e-6})
    one_column: bool = False
    automatic: dict[str, Any] = field(default_factory=lambda: {"n_components": "auto"})

    def build(self, **arguments: Any) -> Any:
        """Return the estimator; its class is looked up now, so that asking for help imports nothing."""
        kind: Callable[..., Any] = getattr(cv, self.estimator)
        return kind(**arguments)


KINDS = {
    ModelName.BAYESIAN: Kind(
        "BayesianGaussianMixture",
        {"--covariance": "covariance_type", "--mean-precision": "mean_precision_family"},
    ),
    ModelName.EM: Kind("GaussianMixture", {"--covariance": "covariance_type"}),
    ModelName.KNOWN_VARIANCE: Kind(
        "KnownVarianceMixture",
        {"--variance": "variance", "--prior-variance": "prior_variance", "--prior-mean": "prior_mean"},
        one_column=True,
    ),
    ModelName.HMM: Kind(
        "HiddenMarkovModel",
        {"--covariance": "covariance_type", "--emission": "emission", "--stickiness": "stickiness"},
        reading=("--sequence",),
    ),
    ModelName.TOPICS: Kind(
        "LatentDirichletAllocation",
        {"--doc-topic-prior": "doc_topic_prior", "--topic-word-prior": "topic_word_prior"},
        reading=("--text", "--encoding", "--stop-words", "--min-documents", "--max-words", "--vocabulary"),
        defaults={"n_components": 10, "tol": 1e-2},
        automatic={"n_components": 50, "doc_topic_prior_type": "dirichlet_process", "moves": 20},
    ),
    ModelName.MIXED: Kind(
        "MixedModel",
        {"--formula": "formula", "--family": "family", "--categories": "categories"},
        defaults={"tol": 1e-8},
    ),
}


OF_SOME = tuple(dict.fromkeys(name for kind in KINDS.values() for name in (*kind.reading, *kind.options)))
"""The options that only some models have."""


def given_of(request: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return those of some options that a request has, by their names; a choice as the word that was given."""
    values = {name: getattr(request, name.removeprefix("--").replace("-", "_")) for name in names}
    return {name: getattr(value, "value", value) for name, value in values.items() if value is not None}


def model_named(text: str) -> ModelName | str:
    """Return what ``--model`` says: one of the names, or ``FILE.py:FUNCTION`` as it is.

    Raises
    ------
    BadParameter
        If it is neither.
    """
    file, colon, function = text.rpartition(":")
    if colon and file.endswith(".py") and function.isidentifier():
        return text
    if text not in {name.value for name in ModelName}:
        names = ", ".join(name.value for name in ModelName)
        raise typer.BadParameter(
            f"{text!r} is unknown; choose {names}, or FILE.py:FUNCTION, a Python function that returns a model",
            param_hint="--model",
        )
    return ModelName(text)


MIXED = Kind("MixedMixture", {})
"""The mixture that ``--non-numeric categorical`` fits."""
