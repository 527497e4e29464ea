"""Documents whose proportions have a prior with hidden parents, as weights of a hierarchical Dirichlet process."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import Array
from ...families import Dirichlet
from ...numerics.spread import spread
from ..compiled.terms import Compiled
from ..design.contraction import Derivative
from ..design.keys import StatisticKey
from ..local.local_factor import LocalFactor, Part
from ..local.statistics import Coefficients, Sums
from ..rows.terms.row_term import BlockWork
from .e_step import TopicRows
from .kernel import expected_log_of
from .lowering import BoundDocuments

PRIOR = "prior"
"""Key of the concentration that the proportions of a document are expected to have before its words are seen."""


class Ties:
    """What the proportions of documents and the variables above them need from each other.

    Parameters
    ----------
    compiled
        The terms of everything above the proportions and of themselves, a row for each document.
    key
        Of the expected logarithms of proportions.
    """

    def __init__(self, compiled: Compiled, key: StatisticKey) -> None:
        self.logs: Part | None = None
        self.counts: Part | None = None
        for part in compiled.parts.values():
            if part.stat == key:
                self.logs = part
            else:
                self.counts = part
        assert self.logs is not None
        self._messages: list[Derivative] = [
            term.derivative(term.contraction.keys.index(self.logs.key))
            for term in compiled.terms
            if self.logs.key in term.contraction.keys
        ]

    def prior(self, arrays: Mapping[Hashable, Array]) -> Array:
        """Return the concentration (K,) that documents begin from."""
        assert self.logs is not None
        total = np.zeros(self.logs.shape)
        for message in self._messages:
            total = total + spread(message(arrays), self.logs.shape)
        return total.reshape(-1)

    def sums(self, expected_log: Array, weights: Array) -> dict[Hashable, Array]:
        """Return the sums over documents with these expected log proportions, (B, K), and weights (B,)."""
        assert self.logs is not None
        found: dict[Hashable, Array] = {self.logs.key: (weights @ expected_log).reshape(self.logs.shape)}
        if self.counts is not None:
            found[self.counts.key] = np.full(self.counts.shape, weights.sum())
        return found


class TiedTopicRows(TopicRows):
    """What a model does with a block of documents whose proportions have hidden parents.

    The prior of the proportions comes with the coefficients, and what they add to the ELBO is their entropy: the rest
    is in terms of what is above them.
    """

    def __init__(
        self,
        bound: BoundDocuments,
        factors: Sequence[LocalFactor],
        part: Part,
        ties: Ties,
    ) -> None:
        super().__init__(bound, factors, part)
        self.ties = ties
        self.parts_of_messages = {*self.parts_of_messages, PRIOR}

    def why_no_response(self) -> str:
        """Return why the response of the sums to the globals cannot be computed."""
        return "these are documents whose proportions have hidden parents, and how they respond to these is not known"

    def coefficients(self, arrays: Mapping[Hashable, Array]) -> Coefficients:
        """Return what the documents need from the topics and from the variables above their proportions."""
        own = super().coefficients(arrays)
        return Coefficients({}, {**own.parts, PRIOR: self.ties.prior(arrays)})

    def prior_of(self, coefficients: Coefficients) -> Array:
        """Return the concentration that documents begin from, (K,)."""
        return coefficients.parts[PRIOR]

    def bounds(self, concentration: Array, coefficients: Coefficients) -> Array:
        """Return what the proportions of each document add to the bound besides their terms: entropies, (B,)."""
        return Dirichlet(concentration).entropy_about_base()

    def counting(self, counts: Any, weights: Array) -> Array:
        """Return weights of documents, (B,), 0 for those without words, whose proportions integrate to one."""
        return np.where(np.diff(counts.indptr) > 0, weights, 0.0)

    def sums_above(self, concentration: Array, weights: Array) -> dict[Hashable, Array]:
        """Return the sums over documents with these concentrations (B, K)."""
        return self.ties.sums(expected_log_of(concentration), weights)

    def sums_of(self, work: BlockWork) -> Sums:
        """Return the sums over a block for given probabilities of the entries of the counts, (E, K)."""
        own = super().sums_of(work)
        rows, counts = work.rows, self._counts(work)
        owners = np.repeat(np.arange(rows.n_rows), np.diff(counts.indptr))
        concentration = np.tile(self.prior_of(work.coefficients), (rows.n_rows, 1))
        np.add.at(concentration, owners, counts.data[:, None] * work.state[self.tokens.key])
        weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        above = self.sums_above(concentration, self.counting(counts, weights))
        return Sums({}, {**own.parts, **above}, {}, own.entropy)
