"""Options of ``caviar fit`` that belong to one kind of model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .kinds import Covariance, EmissionName, MeanPrecision
from .options import beginning_with, option

_GAUSSIAN, _HMM, _TOPICS = "Mixtures of Gaussians", "Hidden Markov models", "Topics"
_REGRESSION = "Mixed models: regression with group effects"
"""Headings of the help text."""

CovarianceType = Annotated[
    Covariance | None,
    option(
        metavar="TYPE",
        help="Covariances: full, tied, diag, spherical or unit; also for hmm.",
        default="full",
        panel=_GAUSSIAN,
    ),
]
EmissionKind = Annotated[
    EmissionName | None,
    option(
        "--emission",
        metavar="KIND",
        help="Distribution of a row given its state: gaussian, categorical or poisson.",
        default="gaussian",
        panel=_HMM,
    ),
]
Stickiness = Annotated[
    float | None,
    option(
        metavar="S",
        min=0,
        help="Prior number of steps that stay in each state; large values favour long states.",
        default="0",
        panel=_HMM,
    ),
]
FormulaText = Annotated[
    str | None,
    option(
        "--formula",
        metavar="FORMULA",
        help="Response, common effects and group effects: 'y ~ x + (x | school)'.",
        panel=_REGRESSION,
    ),
]
FamilyName = Annotated[
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
]
OrderedCategories = Annotated[
    str | None,
    option(
        "--categories",
        metavar="A,B",
        help="With ordinal: the categories of the response in their order, the lowest first.",
        default="numbers in their order",
        panel=_REGRESSION,
    ),
]
SequenceColumn = Annotated[
    str | None,
    option(
        "--sequence",
        metavar="COLUMN",
        help="Column with the sequence that each row belongs to.",
        default="one sequence",
        panel=_HMM,
    ),
]
MeanPrecisionForm = Annotated[
    MeanPrecision | None,
    option(
        metavar="FORM",
        help="With bayesian: one factor for mean and precision of a component (joint), or two (independent).",
        default="joint",
        panel=_GAUSSIAN,
    ),
]
Variance = Annotated[
    float | None,
    option(
        metavar="V", help="With known-variance: the variance of each component.", default="1", panel=_GAUSSIAN
    ),
]
PriorMean = Annotated[
    float | None,
    option(metavar="M", help="With known-variance: prior mean of the means.", default="0", panel=_GAUSSIAN),
]
PriorVariance = Annotated[
    float | None,
    option(
        metavar="V", help="With known-variance: prior variance of the means.", default="100", panel=_GAUSSIAN
    ),
]
TextColumn = Annotated[
    str | None,
    option(
        metavar="COLUMN",
        help="Column with the documents, one text in each row.",
        default="none; the table has a column of counts for each word",
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
        help="Words to leave out: english, none, or a file with one word in each line.",
        default="english",
        panel=_TOPICS,
    ),
]
MinDocuments = Annotated[
    int | None,
    option(
        metavar="N",
        min=1,
        help="Leave out words that occur in fewer documents than this.",
        default="2; 1 below 20 documents",
        panel=_TOPICS,
    ),
]
MaxWords = Annotated[
    int | None,
    option(
        metavar="N",
        min=1,
        help="Largest number of words; the most frequent are kept.",
        default="all",
        panel=_TOPICS,
    ),
]
VocabularyFile = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="File with the words to count, one in each line; for a .npz file, the words of its columns.",
        panel=_TOPICS,
    ),
]
DocTopicPrior = Annotated[
    float | None,
    option(
        metavar="A",
        help="Concentration of the topic proportions of a document.",
        default="1/K",
        panel=_TOPICS,
    ),
]
TopicWordPrior = Annotated[
    float | None,
    option(metavar="A", help="Concentration of the words in a topic.", default="1/K", panel=_TOPICS),
]
