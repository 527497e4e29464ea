"""Documents as a kind of rows: topics start from chance; factors, their bound and densities are those of tokens.

Starts of topics: random, or from what a user gives for documents and tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import xlogy

from ..._errors import ParameterError
from ..._typing import AnyArray, Array
from ...families import Categorical, Dirichlet, StickBreaking
from ...language import Variable
from ..ascent.elbo import Objective
from ..ascent.problem import Factors, Problem, statistics_of
from ..binding.clamped.factor import PointMass
from ..local.statistics import LocalState, Rows, Summary
from ..rows.row_map import RowMap
from ..rows.subsample import Sample
from ..starts.factors.given_factors import refuse_other_labels
from ..starts.factors.prior import Start, prior_start
from .e_step import TopicRows
from .kernel import expected_log_of
from .kind_of_rows import KindOfRows
from .lowering import BoundDocuments
from .passes.left_out import LeftOutTopics
from .passes.trials import best_of_trials, n_trials


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
    # proportions that are given need not be the prior where a document has no words
    weights = np.ones(bound.n_rows) if bound.given_weights is None else bound.given_weights
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


_PASSES = 30
"""Passes over the sample at most."""

_LIGHT = 1 << 24
"""Numbers (counts above zero x topics) in all that take hardly any time: so many passes, one at least, there are before
a fit of few passes."""

_MOST_NUMBERS = 1 << 26
"""Numbers (counts above zero x topics) that the passes keep at most: 256 MB."""

_CERTAIN = 1e12
"""Tokens that a known topic counts as having been seen, so that no other ones move it."""

_EVEN = 10.0
"""Concentration, for each topic, of the weights of broken sticks that a fit begins with."""


def drawn_topics(
    problem: Problem, topics: Variable, rows: TopicRows, sample: Sample, rng: np.random.Generator, most: int
) -> Start:
    """Return topics from chance, after passes over a sample of documents with topics as points.

    Mean field by itself keeps to the topics that its first passes happen upon: of 2,022 articles and 50 topics it ended
    with a bound of -3,194,495 and the perplexity 3,011 of words held out, and after these passes with -3,110,000 and
    2,640.

    Parameters
    ----------
    most
        Passes of the fit at most: a fit of few passes has few before it, that take no longer than those.
    """
    shape = (*(problem.bound.sizes[plate] for plate in topics.plates), topics.dimension or 1)
    even = np.full(shape, 1.0 / shape[-1])
    factor = PointMass.of(topics, even) if topics in problem.point else topics.family.from_natural((even,))
    own = {topics: problem.with_known(topics, factor)}
    sticks = {variable: _even(problem, variable) for variable in problem.order if variable.is_stick}
    q = prior_start(problem, {**own, **sticks})
    arrays = statistics_of(problem, q)
    (prior,) = problem.updates[topics].natural({**arrays, rows.part_of_topics.key: np.zeros(shape)})
    known = problem.bound.of(topics).clamped
    if known is not None:
        certain = np.exp(arrays[problem.keys[topics][0]]) * _CERTAIN
        prior = np.where(known.is_known[..., None], certain, prior)
    of_documents = rows.prior_of(rows.coefficients(arrays))
    counts, weights = _documents(sample.columns[rows.word], sample, shape[0], rng)
    numbers = max(counts.nnz * shape[0], 1)
    n_passes = min(_PASSES, max(1, _LIGHT // numbers, round(most * _documents_of_each(sample, len(weights)))))
    best = best_of_trials(
        lambda: LeftOutTopics(counts, weights, of_documents, prior, rng, n_passes),
        n_trials(counts, shape[0]),
        n_passes,
    )
    q[topics] = problem.factor(topics, (prior + best.of_words.T.astype(float),))
    return problem, q


def _even(problem: Problem, variable: Variable) -> Any:
    """Return weights of broken sticks that are about equal, to give every topic the same chance."""
    left = np.arange((variable.dimension or 2) - 1, 0, -1.0)
    plates = tuple(problem.bound.sizes[plate] for plate in variable.plates)
    shares = np.broadcast_to(_EVEN * np.ones_like(left), (*plates, len(left)))
    even = StickBreaking(shares, shares * left)
    point = variable in problem.point
    factor = PointMass.of(variable, even.mean) if point else variable.family.widened(even)
    return problem.with_known(variable, factor)


def _documents(counts: Any, sample: Sample, n_topics: int, rng: np.random.Generator) -> tuple[Any, Array]:
    """Return counts and weights of documents of a sample, in an order from chance, as many as memory is meant for."""
    order = rng.permutation(sample.n_rows)
    numbers = np.cumsum(np.diff(counts.indptr)[order]) * n_topics
    order = order[: max(int(np.searchsorted(numbers, _MOST_NUMBERS, side="right")), 1)]
    weights = sample.row_weights[order]
    return counts[order], weights * (sample.total_weight / weights.sum())


def _documents_of_each(sample: Sample, n_chosen: int) -> float:
    """Return for how many documents of the whole table each of those stands that are chosen from a sample."""
    is_whole = not sample.is_part and n_chosen == sample.n_rows
    return 1.0 if is_whole else max(sample.total_weight / n_chosen, 1.0)


def given_tokens(
    problem: Problem, bound: BoundDocuments, values: Mapping[Variable, Any], fixed: Collection[Variable] = ()
) -> Callable[[Rows], LocalState]:
    """Return the topics of the tokens of any block of documents, from given ones or from given proportions.

    Raises
    ------
    ParameterError
        If values do not fit their variable, or both are given, or the topics are.
    """
    pattern = bound.pattern
    if fixed:
        name = next(iter(values)).name
        raise ParameterError(
            f"init gives '{pattern.topics.name}', and documents begin at the optimum given these: leave out '{name}', "
            f"or fit with data_plate='{pattern.token.name}', where the proportions are global"
        )
    if len(values) > 1:
        raise ParameterError(
            f"init gives both '{pattern.proportions.name}' and '{pattern.assignment.name}': topics follow from either "
            f"one. Leave the other out"
        )
    ((variable, value),) = values.items()
    if variable is pattern.assignment:
        probabilities = _of_tokens(bound, value)
    else:
        weights = _of_documents(bound, value)
        owners = np.repeat(np.arange(len(weights)), np.diff(bound.counts_at_once.indptr))
        probabilities = weights[owners]
    counts, tokens = bound.counts_at_once, problem.factors[1]
    numbers = csr_array((np.arange(counts.nnz), counts.indices, counts.indptr), shape=counts.shape)

    def give(rows: Rows) -> LocalState:
        return {tokens.key: probabilities[numbers[rows.where].data]}

    return give


def _of_tokens(bound: BoundDocuments, value: Any) -> Array:
    """Return probabilities (E, K) of the entries of the counts: the means of those of their tokens."""
    variable, tokens = bound.pattern.assignment, bound.tokens
    array = _numbers(variable, value)
    n_topics = variable.categories or 1
    if array.shape == (tokens.n_rows,):
        problem = variable.problem_with(array)
        if problem:
            raise ParameterError(f"init of '{variable.name}' {problem}")
        array = np.eye(n_topics)[array.astype(np.intp)]
    if array.shape != (tokens.n_rows, n_topics):
        n = tokens.n_rows
        raise ParameterError(
            f"init of '{variable.name}' must have shape ({n},) for labels or ({n}, {n_topics}) for probabilities, a "
            f"row for each token, or for each count above zero; got {array.shape}"
        )
    if (array < 0).any() or not np.allclose(array.sum(axis=-1), 1, rtol=0, atol=1e-6):
        raise ParameterError(f"init of '{variable.name}': the probabilities of a row must sum to one")
    weights = np.ones(tokens.n_rows) if tokens.row_weights is None else tokens.row_weights
    entries = bound.entries()
    total = np.zeros((bound.counts.nnz, n_topics))
    np.add.at(total, entries, array * weights[:, None])
    return total / bound.counts.data[:, None]


def _of_documents(bound: BoundDocuments, value: Any) -> Array:
    """Return the proportions of each document, (D, K): as they are given, or what is expected of given factors."""
    variable = bound.pattern.proportions
    if isinstance(value, variable.family):
        expected_log = value.expected_statistics[0]
        value = np.exp(expected_log - expected_log.max(axis=-1, keepdims=True))
        value = value / value.sum(axis=-1, keepdims=True)
    array = _numbers(variable, value)
    shape = (bound.n_rows, variable.dimension)
    if array.shape != shape:
        raise ParameterError(f"init of '{variable.name}' must have shape {shape}; got {array.shape}")
    problem = variable.problem_with(array)
    if problem:
        raise ParameterError(f"init of '{variable.name}' {problem}")
    return array


def _numbers(variable: Variable, value: Any) -> AnyArray:
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise ParameterError(f"init of '{variable.name}' must be an array of finite numbers; got {value!r}")
    return array
