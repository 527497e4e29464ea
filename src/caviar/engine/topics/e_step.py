r"""One pass over a block of documents: proportions and tokens at their optimum, and what topics need of them.

How the words of documents that each topic has change with the topics: linear response of a block of documents.

With the probabilities :math:`r_{dvk}` of the topics of a word, :math:`C_{dv} = \mathrm{diag}\,r_{dv} - r_{dv}r_{dv}'`,
and the concentrations :math:`a_d = \alpha + \sum_v n_{dv} r_{dv}` of the proportions, a change of
:math:`\langle\log\beta\rangle` gives

.. math::
    dr_{dv} = C_{dv}\,(\psi'(a_d) \circ da_d + d\langle\log\beta_{\cdot v}\rangle), \qquad
    da_d = (I - M_d\,\mathrm{diag}\,\psi'(a_d))^{-1} \sum_v n_{dv} C_{dv}\, d\langle\log\beta_{\cdot v}\rangle,

with :math:`M_d = \sum_v n_{dv} C_{dv}`. Every document must be at a maximum: all eigenvalues of
:math:`\psi'^{1/2} M_d\, \psi'^{1/2}` below one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import polygamma, softmax

from ..._errors import ModelError
from ..._typing import Array
from ..design.backend import Workspace
from ..design.keys import ColumnKey, FactorKey, StatisticKey
from ..local.local_factor import LocalFactor, Part
from ..local.statistics import Arrays, Coefficients, LocalState, Rows, Summary, Sums
from ..rows.row_model import RowModel
from ..rows.terms.row_term import BlockWork
from .kernel import Found, TopicWords, ascend_documents, bounds_of_proportions, expected_log_of
from .lowering import BoundDocuments

_WORDS_A_DOCUMENT = 16
"""Words of the vocabulary for each document of a block: adding up topics x words then costs little beside it."""

_FEWEST_DOCUMENTS, _MOST_DOCUMENTS = 128, 4_096

_COEFFICIENTS = ("expected_log", "highest", "scaled")

_RATIOS, _APART = "ratios", "apart"
"""Keys of what documents leave behind, of which :meth:`TopicRows.with_entropies` makes the sum for the topics."""


@dataclass(frozen=True)
class Effort:
    """How near their optimum documents are brought in a pass.

    Attributes
    ----------
    first
        Updates at most where no pass before has left their factors.
    next
        Updates at most where one has.
    tol
        Change of a concentration, relative to the words of its document, that counts as none.
    stretch
        How many times the way of each of the first updates is gone; see
        :func:`~caviar.engine.topics.kernel.ascend_documents`. The settings here were chosen among few by the words
        held out of 1,123 articles: 7 updates of this stretch gave what 10 of 1.6 did, in 0.84 of the time.
    """

    first: int = 7
    next: int = 10
    tol: float = 1e-3
    stretch: float = 1.8


_THOROUGH = Effort(2_000, 2_000, 1e-10, 1.0)


class TopicRows(RowModel):
    """What a model of documents does with a block of them; see :class:`~caviar.engine.rows.row_model.RowModel`.

    Parameters
    ----------
    bound
        The model with its data.
    factors
        The local factors: of the proportions, and of the tokens.
    part
        The sum that the terms of the topics need.

    Attributes
    ----------
    effort
        How near their optimum documents are brought in a pass.
    prior
        Concentration of the proportions' prior, shape (K,).
    part_of_topics
        The sum that the terms of the topics need.
    word
        Key of the counts among the columns of a block.
    """

    keeps_locals = True
    begins_anew = True
    effort = Effort()

    def __init__(
        self,
        bound: BoundDocuments,
        factors: Sequence[LocalFactor],
        part: Part,
    ) -> None:
        self.factors = tuple(factors)
        self.proportions, self.tokens = factors
        self.prior = bound.prior if bound.pattern.is_plain else np.empty(0)
        self.part_of_topics = part
        self.parts_of_messages = {*_COEFFICIENTS, part.key}
        self.word = ColumnKey(bound.pattern.word.name)
        self._topics = StatisticKey(bound.pattern.topics.name, "log_x")

    def with_effort(self, effort: Effort) -> TopicRows:
        """Return the same pass with another effort."""
        other = object.__new__(type(self))
        vars(other).update({**vars(self), "effort": effort})
        return other

    def thorough(self) -> TopicRows:
        """Return the same pass that brings every document to its optimum."""
        return self.with_effort(_THOROUGH)

    def why_inexact(self) -> str:
        """Return why local variables cannot be integrated out exactly given the globals."""
        return "the proportions of a document and the topics of its words, both hidden, have a factor each"

    def why_not_on_a_device(self) -> str:
        """Return why no passes can be made on a device."""
        return "the pass over the rows of this model is one of its own"

    def changed(self, parts: Arrays, coefficients: Coefficients) -> Coefficients:
        """Return the change of the expected log topics, which the words meet."""
        own = parts.get(self.part_of_topics.key)
        whole = (
            np.zeros(self.part_of_topics.shape)
            if own is None
            else np.broadcast_to(own, self.part_of_topics.shape)
        )
        return Coefficients({}, {"expected_log": whole})

    def respond(
        self,
        work: BlockWork,
        changes: Sequence[Coefficients],
        given: Mapping[FactorKey, Sequence[Array]] | None = None,
    ) -> Sums:
        """Return the changes of the words of each topic, (n, K, V)."""
        rows, counts = work.rows, self._counts(work)
        words, found = self.words(work.coefficients), self.thorough()._ascend(work)
        logits = self.logits(counts, expected_log_of(found.concentration), words)
        probabilities = softmax(logits, axis=1)
        weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        own = DocumentResponse(counts, weights, found.concentration, probabilities)
        of_topics = [change.parts["expected_log"] for change in changes]
        return Sums({}, {self.part_of_topics.key: changes_of_words(own, of_topics)}, {}, {})

    @property
    def block_rows(self) -> int:
        """Documents of a block; depends on the size of the vocabulary alone."""
        wanted = 64 * round(self.part_of_topics.shape[1] / _WORDS_A_DOCUMENT / 64)
        return min(max(wanted, _FEWEST_DOCUMENTS), _MOST_DOCUMENTS)

    @property
    def n_sums(self) -> int:
        """Numbers that the sums over documents consist of: one for each topic and word."""
        return math.prod(self.part_of_topics.shape)

    def coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the documents need of the topics."""
        words = TopicWords.of(arrays[self._topics])
        return Coefficients(
            {}, {"expected_log": words.expected_log, "highest": words.highest, "scaled": words.scaled}
        )

    def words(self, coefficients: Coefficients) -> TopicWords:
        """Return what the documents need of the topics from coefficients."""
        parts = coefficients.parts
        return TopicWords(parts["expected_log"], parts["highest"], parts["scaled"])

    def prior_of(self, coefficients: Coefficients) -> Array:
        """Return the concentration of the proportions before any words are seen, (K,)."""
        return self.prior

    def bounds(self, concentration: Array, coefficients: Coefficients) -> Array:
        """Return what the proportions of each document add to the bound, (B,), of concentrations (B, K)."""
        return bounds_of_proportions(concentration, self.prior)

    def counting(self, counts: Any, weights: Array) -> Array:
        """Return the weights (B,) of documents in what their proportions add to the bound."""
        return weights

    def sums_above(self, concentration: Array, weights: Array) -> dict[Hashable, Array]:
        """Return the sums over documents that the variables above the proportions need: none."""
        return {}

    def summarize(self, work: BlockWork, given: LocalState | None = None) -> tuple[Sums, LocalState]:
        """Return the sums over a block of documents, and the concentrations of their proportions, (B, K)."""
        found = self._ascend(work)
        return self._sums(work, found), {self.proportions.key: found.concentration}

    def _counts(self, work: BlockWork) -> Any:
        """Return how often each document of a block has each word, a sparse array (B, V)."""
        return work.rows.columns[self.word]

    def _ascend(self, work: BlockWork) -> Found:
        effort, counts, before = self.effort, self._counts(work), work.state.get(self.proportions.key)
        words, prior = self.words(work.coefficients), self.prior_of(work.coefficients)
        most, stretch = (effort.next, 1.0) if before is not None else (effort.first, effort.stretch)
        # words shared by all topics alike
        start = prior + counts.sum(axis=1)[:, None] / len(prior) if before is None else before
        return ascend_documents(
            counts, words, prior, start, work.scratch, most=most, tol=effort.tol, stretch=stretch
        )

    def _sums(self, work: BlockWork, found: Found) -> Sums:
        rows, counts = work.rows, self._counts(work)
        bounds = self.bounds(found.concentration, work.coefficients)
        weights = np.ones(len(bounds)) if rows.weights is None else rows.weights
        ratios = csr_array((found.ratios, counts.indices, counts.indptr), shape=counts.shape)
        parts: dict[Hashable, Array] = {_RATIOS: ratios.T @ (found.theta * weights[:, None])}
        if found.apart is not None:
            places, shares, owners = found.apart
            parts[_APART] = np.zeros_like(parts[_RATIOS])
            np.add.at(parts[_APART], places, shares * weights[owners, None])
        seen = self.counting(counts, weights)
        parts.update(self.sums_above(found.concentration, seen))
        log_normaliser = float(weights @ found.log_normalisers)
        return Sums(
            {}, parts, {self.tokens.key: log_normaliser}, {self.proportions.key: float(seen @ bounds)}
        )

    def sums_of(self, work: BlockWork) -> Sums:
        """Return the sums over a block for given probabilities of the entries of the counts, (E, K)."""
        rows, counts = work.rows, self._counts(work)
        owners = np.repeat(np.arange(rows.n_rows), np.diff(counts.indptr))
        weights = counts.data if rows.weights is None else counts.data * rows.weights[owners]
        by_word = csr_array(
            (weights, counts.indices, np.arange(counts.nnz + 1)), shape=(counts.nnz, counts.shape[1])
        )
        total = by_word.T @ work.state[self.tokens.key]
        return Sums(
            {}, {self.part_of_topics.key: total.T}, {}, {self.proportions.key: 0.0, self.tokens.key: 0.0}
        )

    def zeros_of(self, factor: LocalFactor, zeros: Coefficients, rows: Rows, scratch: Workspace) -> Array:
        """Return zeros: no terms that count known probabilities of zero are compiled for documents."""
        counts: Any = rows.columns[self.word]
        return np.zeros((factor.n_rows, rows.n_rows if factor is self.proportions else counts.nnz))

    def infer(self, work: BlockWork) -> LocalState:
        """Return the natural parameters: of the proportions, (K, B), and of each entry of the counts, (K, E)."""
        assert not work.state, "what is given of documents gives the topics: documents/start.py"
        found, words = self.thorough()._ascend(work), self.words(work.coefficients)
        logits = self.logits(self._counts(work), expected_log_of(found.concentration), words)
        return {self.proportions.key: found.concentration.T, self.tokens.key: logits.T}

    def logits(self, counts: Any, expected_log: Array, words: TopicWords) -> Array:
        """Return the natural parameters of the entries of the counts, (E, K), from expected log proportions (B, K)."""
        owners = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        return expected_log[owners] + words.expected_log.T[counts.indices]

    def with_entropies(self, sums: Sums, coefficients: Coefficients) -> Sums:
        """Return sums with the entropies of tokens in the place of their log-normalisers."""
        if _RATIOS not in sums.parts:
            return sums
        total = sums.parts[_RATIOS] * coefficients.parts["scaled"]
        if _APART in sums.parts:
            total += sums.parts[_APART]
        met = float(np.einsum("vk,kv->", total, coefficients.parts["expected_log"]))
        entropy = {**sums.entropy, self.tokens.key: sums.log_partition[self.tokens.key] - met}
        rest = {key: own for key, own in sums.parts.items() if key not in (_RATIOS, _APART)}
        return Sums({}, {**rest, self.part_of_topics.key: total.T}, {}, entropy)

    def summary(self, sums: Sums, static: Sums, coefficients: Coefficients) -> Summary:
        """Return the sums of a pass in the shapes that the global terms expect."""
        total = self.with_entropies(sums, coefficients)
        return Summary(total.parts, dict(total.entropy))


_MOST_NUMBERS = 4e6
"""Numbers of the matrices of documents that are made together."""


class DocumentResponse:
    """The response of a block of documents at their optimum.

    Parameters
    ----------
    counts
        Of words, a sparse array by rows, (B, V).
    weights
        Of documents, (B,).
    concentration
        Of the proportions, (B, K).
    probabilities
        Of the topics of each entry of the counts, (E, K).

    Raises
    ------
    ModelError
        If a document is at a saddle point.
    """

    def __init__(self, counts: Any, weights: Array, concentration: Array, probabilities: Array) -> None:
        self._words, self._shape = counts.indices, counts.shape
        self._owners = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        self._probabilities = probabilities
        entries = np.arange(counts.nnz)
        self._by_document = csr_array(
            (counts.data, entries, counts.indptr), shape=(counts.shape[0], counts.nnz)
        )
        numbers = counts.data * weights[self._owners]
        self._by_word = csr_array((numbers, (counts.indices, entries)), shape=(counts.shape[1], counts.nnz))
        self._slope = polygamma(1, concentration)
        self._inverse = self._inverses()

    def _inverses(self) -> Array:
        """Return (I - M diag(slope))^-1 of each document, (B, K, K)."""
        n_docs, n_topics = self._slope.shape
        found = np.empty((n_docs, n_topics, n_topics))
        root = np.sqrt(self._slope)
        portion = max(int(_MOST_NUMBERS / n_topics**2), 1)
        for start in range(0, n_docs, portion):
            docs = slice(start, start + portion)
            spread = np.stack([self._spread(doc) for doc in range(start, min(start + portion, n_docs))])
            own = np.eye(n_topics) - root[docs, :, None] * spread * root[docs, None, :]
            values, vectors = np.linalg.eigh(own)
            if not (values > 0).all():
                raise ModelError(
                    "the fit has ended at a saddle point of the proportions and the words of a document, so there is "
                    "no linear response; fit again with another seed or more restarts"
                )
            solved = (vectors / values[:, None, :]) @ vectors.swapaxes(1, 2)
            found[docs] = solved * root[docs, None, :] / root[docs, :, None]
        return found

    def _spread(self, document: int) -> Array:
        """Return M of a document, (K, K)."""
        entries = slice(*self._by_document.indptr[document : document + 2])
        own, number = self._probabilities[entries], self._by_document.data[entries]
        weighed = own * number[:, None]
        return np.diag(weighed.sum(axis=0)) - weighed.T @ own

    def change(self, expected_log: Array) -> Array:
        """Return the change of the words of each topic, (K, V), with one of the expected log topics, (K, V)."""
        said = expected_log.T[self._words]
        drawn = self._by_document @ self._spread_of(said)
        moved = self._slope * np.einsum("bij,bj->bi", self._inverse, drawn)
        return (self._by_word @ self._spread_of(said + moved[self._owners])).T

    def _spread_of(self, changes: Array) -> Array:
        """Return C times a change of the natural parameters of each entry, (E, K)."""
        own = self._probabilities
        return own * (changes - (own * changes).sum(axis=1, keepdims=True))


def changes_of_words(response: DocumentResponse, changes: Sequence[Array]) -> Array:
    """Return the changes of the words of each topic, (n, K, V)."""
    return np.stack([response.change(own) for own in changes])
