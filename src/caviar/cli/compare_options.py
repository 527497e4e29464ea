"""The options of ``caviar compare``, in the order of the help text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import model_options as m
from . import options as o
from .non_numeric import NonNumeric

_READING = ("text", "encoding", "stop_words", "min_documents", "max_words", "vocabulary")


@dataclass(frozen=True)
class CompareOptions:
    """What the user of ``caviar compare`` said. Each field is an option of its name."""

    data: o.Data = None
    columns: o.Columns = None
    sql: o.Query = None
    non_numeric: o.OtherColumns = NonNumeric.ERROR
    model: o.Models = None
    components: o.Numbers = "1-6"
    covariance: o.CovarianceList = None
    held_out: o.HeldOut = None
    restarts: o.RestartsEach = 3
    seed: o.FixedSeed = 0
    output: o.SaveBest = None
    as_json: o.AsJson = False
    quiet: o.Quiet = False
    text: m.TextColumn = None
    encoding: m.Encoding = None
    stop_words: m.StopWords = None
    min_documents: m.MinDocuments = None
    max_words: m.MaxWords = None
    vocabulary: m.VocabularyFile = None


def reading_of(given: CompareOptions) -> dict[str, Any]:
    """Return the options that say how texts are read, by their names on the command line; None where not given."""
    return {f"--{name.replace('_', '-')}": getattr(given, name) for name in _READING}
