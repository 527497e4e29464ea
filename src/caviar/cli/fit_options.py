"""The options of ``caviar fit``, in the order of the help text."""

from __future__ import annotations

from dataclasses import dataclass

from . import options as o
from .kinds import Uncertainty
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
    covariance: o.CovarianceType = None
    mean_precision: o.MeanPrecisionForm = None
    variance: o.Variance = None
    prior_mean: o.PriorMean = None
    prior_variance: o.PriorVariance = None
    formula: o.FormulaText = None
    family: o.FamilyName = None
    sequence: o.SequenceColumn = None
    emission: o.EmissionKind = None
    stickiness: o.Stickiness = None
    text: o.TextColumn = None
    encoding: o.Encoding = None
    stop_words: o.StopWords = None
    min_documents: o.MinDocuments = None
    max_words: o.MaxWords = None
    vocabulary: o.VocabularyFile = None
    doc_topic_prior: o.DocTopicPrior = None
    topic_word_prior: o.TopicWordPrior = None
