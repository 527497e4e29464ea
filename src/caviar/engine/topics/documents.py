"""Documents as a kind of rows: topics start from chance, and factors and densities are those of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import Array
from ...language import Variable
from ..ascent.problem import Factors, Problem
from ..local.statistics import LocalState, Rows
from ..rows.row_map import RowMap
from ..rows.subsample import Sample
from .e_step import TopicRows
from .evaluate import by_token, densities_of_words, objective_of_documents
from .kind_of_rows import KindOfRows
from .lowering import BoundDocuments
from .start import drawn_topics, given_tokens


@dataclass(frozen=True, eq=False)
class Documents(KindOfRows):
    """What rows of documents do in another way than rows of records.

    Attributes
    ----------
    bound
        The model with its data.
    rows
        What is done with a block of documents.
    """

    bound: BoundDocuments
    rows: TopicRows

    has_own_start = True

    def own_start(
        self, problem: Problem, sample: Sample, row_map: RowMap, rng: np.random.Generator, most: int
    ) -> tuple[Problem, dict[Variable, Any]]:
        """Return topics from chance, after passes over a sample of the documents."""
        return drawn_topics(problem, self.bound.pattern.topics, self.rows, sample, rng, most)

    def given_locals(
        self, problem: Problem, values: Mapping[Variable, Any], fixed: Mapping[Variable, Any]
    ) -> Callable[[Rows], LocalState]:
        """Return the topics of the tokens of any block of documents, from given ones or from given proportions."""
        return given_tokens(problem, self.bound, values, fixed)

    def for_each_datum(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return local factors with one for each token in the place of one for each entry of the counts."""
        return by_token(self.bound, found)

    def densities(self, factors: Mapping[str, Any], local: Callable[[], Mapping[str, Any]]) -> Array:
        """Return the log probability of each token."""
        return densities_of_words(self.bound, {**factors, **local()})

    def objective(self, problem: Problem, q: Factors, given: Mapping[str, Any], row_map: RowMap) -> float:
        """Return the objective of factors of the topics, with given ones of the proportions or tokens, or of both."""
        return objective_of_documents(problem, self.bound, self.rows, q, given, row_map)
