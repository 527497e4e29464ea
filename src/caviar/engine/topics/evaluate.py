"""Evaluation of given factors of documents: their bound, and the words' densities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import xlogy

from ..._errors import ParameterError
from ..._typing import Array
from ...families import Categorical, Dirichlet
from ..ascent.elbo import Objective
from ..ascent.problem import Factors, Plan, statistics_of
from ..local.statistics import LocalState, Rows, Summary
from ..rows.row_map import Passes
from ..starts.factors.given_factors import refuse_other_labels
from .e_step import DocumentPass
from .kernel import bounds_of_proportions, expected_log_of
from .lowering import DocumentBinding

__all__ = ["by_token", "densities_of_words", "objective_of_documents", "thorough"]


_ENTRIES = 8_192
"""Counts above zero whose densities are found at once."""


def thorough(plan: Plan) -> Plan:
    """Return a plan whose passes bring every document to its optimum; as it is, where rows are no documents."""
    return plan.with_rows(plan.rows.thorough()) if isinstance(plan.rows, DocumentPass) else plan


def by_token(binding: DocumentBinding, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return local factors with one for each token in the place of one for each entry of the counts."""
    name = binding.pattern.assignment.name
    return {**found, name: Categorical(found[name].probabilities[binding.entries()])}


def densities_of_words(binding: DocumentBinding, factors: Mapping[str, Any]) -> Array:
    r"""Return the log probability of each token, :math:`\log\sum_k \mathrm E[\theta_{dk}] \mathrm E[\beta_{kv}]`.

    In the order of the user's tokens; of counts, one for each that is above zero.
    """
    counts, pattern = binding.counts, binding.pattern
    owners = np.repeat(np.arange(binding.n_rows), np.diff(counts.indptr))
    proportions, topics = factors[pattern.proportions.name].mean, factors[pattern.topics.name].mean
    densities = np.empty(counts.nnz)
    for start in range(0, counts.nnz, _ENTRIES):
        some = slice(start, start + _ENTRIES)
        each = topics.T[counts.indices[some]]
        densities[some] = np.log(np.einsum("ek,ek->e", proportions[owners[some]], each))
    return densities[binding.entries()]


def objective_of_documents(
    plan: Plan, binding: DocumentBinding, q: Factors, given: Mapping[str, Any], passes: Passes
) -> float:
    """Return the objective of factors of the topics, with given ones of the proportions or tokens, or of both.

    Those that are not given are at their optimum. All documents at once, in an array counts x topics.
    """
    rows, arrays = plan.rows, statistics_of(plan, q)
    assert isinstance(rows, DocumentPass)
    pattern, counts, prior = binding.pattern, binding.counts, binding.prior
    coefficients = rows.coefficients(arrays)
    owners = np.repeat(np.arange(binding.n_rows), np.diff(counts.indptr))
    probabilities = _probabilities(binding, given.get(pattern.assignment.name))
    concentration = _concentration(binding, given.get(pattern.proportions.name))
    if concentration is None:
        assert probabilities is not None
        concentration = np.tile(prior, (binding.n_rows, 1))
        np.add.at(concentration, owners, probabilities * counts.data[:, None])
    expected_log = expected_log_of(concentration)
    if probabilities is None:
        logits = rows.logits(counts, expected_log, rows.words(coefficients))
        logits = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = logits / logits.sum(axis=1, keepdims=True)
    weights = np.ones(binding.n_rows) if binding.row_weights is None else binding.row_weights
    of_tokens = (probabilities * expected_log[owners] - xlogy(probabilities, probabilities)).sum(axis=1)
    proportions, tokens = plan.factors
    entropies = {
        proportions.key: float(weights @ bounds_of_proportions(concentration, prior)),
        tokens.key: float((weights[owners] * counts.data) @ of_tokens),
    }

    def give(rows: Rows) -> LocalState:
        inside = np.zeros(binding.n_rows, dtype=bool)
        inside[rows.where] = True
        return {tokens.key: probabilities[inside[owners]]}

    summary = passes.sum_given(plan.rows, passes.source, give, coefficients)
    arrays.update(summary.parts)
    return Objective(plan).set_all(q, arrays, Summary(summary.parts, entropies))


def _probabilities(binding: DocumentBinding, given: Any) -> Array | None:
    """Return probabilities (E, K) of the entries of the counts from those of their tokens."""
    if given is None:
        return None
    pattern, tokens = binding.pattern, binding.tokens
    refuse_other_labels(pattern.assignment.name, given, (tokens.n_rows, pattern.assignment.categories or 1))
    entries = binding.entries()
    places = np.zeros(binding.counts.nnz, dtype=np.intp)
    places[entries] = np.arange(len(entries))
    probabilities = np.asarray(given.probabilities)
    if not np.allclose(probabilities, probabilities[places][entries], rtol=0, atol=1e-9):
        raise ParameterError(
            f"the factors of '{pattern.assignment.name}' differ among equal words of a document, whose counts do not "
            f"tell them apart; fit with data_plate='{pattern.token.name}'"
        )
    return probabilities[places]


def _concentration(binding: DocumentBinding, given: Any) -> Array | None:
    """Return the concentrations (D, K) of given factors of the proportions."""
    if given is None:
        return None
    variable = binding.pattern.proportions
    shape = (binding.n_rows, variable.dimension)
    if not isinstance(given, Dirichlet) or given.concentration.shape != shape:
        raise ParameterError(
            f"a factor of '{variable.name}' is a Dirichlet of caviar.families with concentrations of shape {shape}, as "
            f"posterior.local(data)['{variable.name}']; got {given!r}"
        )
    return given.concentration
