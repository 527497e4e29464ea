"""The options of ``caviar fit``, in the order of the help text."""

from __future__ import annotations

from dataclasses import dataclass

from . import model_options as m
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
    covariance: m.CovarianceType = None
    mean_precision: m.MeanPrecisionForm = None
    variance: m.Variance = None
    prior_mean: m.PriorMean = None
    prior_variance: m.PriorVariance = None
    formula: m.FormulaText = None
    family: m.FamilyName = None
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
