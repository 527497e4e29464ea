"""Documents as a kind of rows: topics start from chance; factors, their bound and densities are those of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from ..._errors import ParameterError
from ..._typing import Array
from ...families import Categorical, Dirichlet
from ...language import Variable
from ..ascent.elbo import Objective
from ..ascent.problem import Factors, Problem, statistics_of
from ..local.statistics import LocalState, Rows, Summary
from ..rows.row_map import RowMap
from ..rows.subsample import Sample
from ..starts.factors.given_factors import refuse_other_labels
from .e_step import TopicRows
from .kernel import expected_log_of
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


_ENTRIES = 8_192
"""Counts above zero whose densities are found at once."""


def by_token(bound: BoundDocuments, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return local factors with one for each token in the place of one for each entry of the counts."""
    name = bound.pattern.assignment.name
    return {**found, name: Categorical(found[name].probabilities[bound.entries()])}


def densities_of_words(bound: BoundDocuments, factors: Mapping[str, Any]) -> Array:
    r"""Return the log probability of each token, :math:`\log\sum_k \mathrm E[\theta_{dk}] \mathrm E[\beta_{kv}]`.

    In the order of the user's tokens; of counts, one for each that is above zero.
    """
    counts, pattern = bound.counts_at_once, bound.pattern
    owners = np.repeat(np.arange(bound.n_rows), np.diff(counts.indptr))
    proportions, topics = factors[pattern.proportions.name].mean, factors[pattern.topics.name].mean
    densities = np.empty(counts.nnz)
    for start in range(0, counts.nnz, _ENTRIES):
        some = slice(start, start + _ENTRIES)
        each = topics.T[counts.indices[some]]
        densities[some] = np.log(np.einsum("ek,ek->e", proportions[owners[some]], each))
    return densities[bound.entries()]


def objective_of_documents(
    problem: Problem,
    bound: BoundDocuments,
    rows: TopicRows,
    q: Factors,
    given: Mapping[str, Any],
    row_map: RowMap,
) -> float:
    """Return the objective of factors of the topics, with given ones of the proportions or tokens, or of both.

    Those that are not given are at their optimum. All documents at once, in an array counts x topics.
    """
    arrays = statistics_of(problem, q)
    pattern, counts = bound.pattern, bound.counts_at_once
    coefficients = rows.coefficients(arrays)
    prior = rows.prior_of(coefficients)
    owners = np.repeat(np.arange(bound.n_rows), np.diff(counts.indptr))
    probabilities = _probabilities(bound, given.get(pattern.assignment.name))
    concentration = _concentration(bound, given.get(pattern.proportions.name))
    if concentration is None:
        assert probabilities is not None
        concentration = np.tile(prior, (bound.n_rows, 1))
        np.add.at(concentration, owners, probabilities * counts.data[:, None])
    expected_log = expected_log_of(concentration)
    if probabilities is None:
        logits = rows.logits(counts, expected_log, rows.words(coefficients))
        logits = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = logits / logits.sum(axis=1, keepdims=True)
    weights = np.ones(bound.n_rows) if bound.row_weights is None else bound.row_weights
    of_tokens = (probabilities * expected_log[owners] - xlogy(probabilities, probabilities)).sum(axis=1)
    proportions, tokens = problem.factors
    seen = rows.counting(counts, weights)
    entropies = {
        proportions.key: float(seen @ rows.bounds(concentration, coefficients)),
        tokens.key: float((weights[owners] * counts.data) @ of_tokens),
    }

    def give(rows: Rows) -> LocalState:
        inside = np.zeros(bound.n_rows, dtype=bool)
        inside[rows.where] = True
        return {tokens.key: probabilities[inside[owners]]}

    summary = row_map.at(rows).sum_given(give, coefficients)
    parts = {**summary.parts, **rows.sums_above(concentration, seen)}
    arrays.update(parts)
    return Objective(problem, q, arrays, Summary(parts, entropies)).value


def _probabilities(bound: BoundDocuments, given: Any) -> Array | None:
    """Return probabilities (E, K) of the entries of the counts from those of their tokens."""
    if given is None:
        return None
    pattern, tokens = bound.pattern, bound.tokens
    refuse_other_labels(pattern.assignment.name, given, (tokens.n_rows, pattern.assignment.categories or 1))
    entries = bound.entries()
    places = np.zeros(bound.counts.nnz, dtype=np.intp)
    places[entries] = np.arange(len(entries))
    probabilities = np.asarray(given.probabilities)
    if not np.allclose(probabilities, probabilities[places][entries], rtol=0, atol=1e-9):
        raise ParameterError(
            f"the factors of '{pattern.assignment.name}' differ among equal words of a document, whose counts do not "
            f"tell them apart; fit with data_plate='{pattern.token.name}'"
        )
    return probabilities[places]


def _concentration(bound: BoundDocuments, given: Any) -> Array | None:
    """Return the concentrations (D, K) of given factors of the proportions."""
    if given is None:
        return None
    variable = bound.pattern.proportions
    shape = (bound.n_rows, variable.dimension)
    if not isinstance(given, Dirichlet) or given.concentration.shape != shape:
        raise ParameterError(
            f"a factor of '{variable.name}' is a Dirichlet of caviar.families with concentrations of shape {shape}, as "
            f"posterior.local(data)['{variable.name}']; got {given!r}"
        )
    return given.concentration
