"""One joint factor of a chain of labels, of further labels of its steps, and of what these gate.

Given its states the steps of a chain are independent, so that the rest of a step is summed out of what it says of its
state; the states follow forward and backward, and the rest given the state of its step. This is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import entr, logsumexp

from ...._typing import Array
from ....families import ChainMixture, ExponentialFamily, ForecastMarkovChain, MarkovChain
from ....families.chains.markov_chain import Smoothing
from ....language import Axis, Variable
from ...binding.bound_model import BoundModel
from ...binding.evidence import Evidence
from ...design.keys import StatisticKey
from ...design.scratch import Scratch
from ..gated import SwitchedFactor
from ..statistics import Arrays
from .chain import Ahead, ChainFactor, Said, SequenceResponse
from .chain_mixture import chain_of_states
from .steps import Steps


@dataclass(frozen=True)
class _Emission:
    """What the steps say.

    Attributes
    ----------
    logits
        Of each state, with the rest of the step summed out, (K, B).
    given
        Probabilities of the combinations of the other labels given the state, (K, ..., B).
    conditionals
        What is gated, given all labels.
    """

    logits: Array
    given: Array
    conditionals: Mapping[Variable, Any]


@dataclass(frozen=True)
class SwitchedSmoothing:
    """The moments of the states, of the other labels, and the entropy of all."""

    states: Smoothing
    table: Array
    conditionals: Mapping[Variable, Any]
    entropy: float


@dataclass(frozen=True)
class SwitchedPath:
    """The distribution of the states of whole sequences, and what the steps say, natural parameters (E, N)."""

    factor: SwitchedChainFactor
    states: MarkovChain | ForecastMarkovChain | ChainMixture
    natural: Array


class SwitchedChainFactor(ChainFactor, SwitchedFactor):
    """The factor q(s) q(z, t | s) of a chain s, further labels z of its steps and the variables t that they gate.

    Parameters
    ----------
    gates
        The chain, then the other labels.
    others, evidence, data_axis, certain, sets
        As of :class:`~caviar.engine.local.gated.SwitchedFactor`.
    bound
        The model with its data.
    """

    def __init__(
        self,
        gates: Sequence[Variable],
        others: Sequence[Variable],
        evidence: Sequence[Evidence],
        data_axis: Axis,
        bound: BoundModel,
        certain: Mapping[Variable, ExponentialFamily] | None = None,
        sets: Iterable[Collection[Variable]] = (),
    ) -> None:
        super().__init__(gates, others, evidence, data_axis, bound.size, certain, sets)
        self._is_along(bound)
        self._states = chain_of_states(gates[0], evidence[0], data_axis, bound)  # type: ignore[arg-type]
        self._rest = tuple(range(1, len(gates)))

    @property
    def values(self) -> Array | None:
        return None

    def _emission(self, natural: Array) -> _Emission:
        table, conditionals = self.gathered(natural.copy())
        logits = np.asarray(logsumexp(table, axis=self._rest)) if self._rest else table.copy()
        possible = np.isfinite(logits)
        shift = np.where(possible, logits, 0.0).reshape(len(logits), *(1,) * len(self._rest), -1)
        return _Emission(logits, np.exp(table - shift), conditionals)

    def _over_rest(self, states: Array) -> Array:
        """Return numbers of the states (K, B) with axes of length one for the other labels."""
        return states.reshape(len(states), *(1,) * len(self._rest), -1)

    def smoothing(self, said: Said, scratch: Scratch) -> SwitchedSmoothing:
        """Return the moments of all; those of the states lie in the scratch."""
        emission, weights = self._emission(said.natural), said.steps.weights
        states = self._states.smoothing(replace(said, natural=emission.logits), scratch)
        table = self._over_rest(states.marginals.T) * emission.given
        inside = self.entropy_of(table, emission.conditionals) - entr(states.marginals).sum(axis=1)
        if weights is not None:
            # as in the entropy of the states, each step counts as often as its sequence
            inside *= weights
        return SwitchedSmoothing(states, table, emission.conditionals, states.entropy + float(inside.sum()))

    def path(self, said: Said) -> SwitchedPath:
        logits = self._emission(said.natural).logits
        return SwitchedPath(self, self._states.path(replace(said, natural=logits)), said.natural)

    def continued(self, path: SwitchedPath, ahead: Ahead) -> SwitchedPath:
        """Return the chain with a forecast; the other labels of these steps are as their states say."""
        return SwitchedPath(self, self._states.continued(path.states, ahead), ahead.natural)

    def moves(self, path: SwitchedPath) -> Array | None:
        return self._states.moves(path.states)

    def distributions_of_path(self, path: SwitchedPath) -> dict[Variable, Any]:
        """Return the path of the states, and the factors of the other variables of all rows."""
        table = self._over_rest(path.states.probabilities.T) * self._emission(path.natural).given
        chain = self.labels[0]
        return {**self.distributions_given(table, path.natural), chain: path.states}

    def expected(self, smoothing: SwitchedSmoothing) -> Array:
        """Return the expected statistics of all, (E, B)."""
        return self._expected_at(smoothing.table, smoothing.conditionals)

    def _expected_at(self, table: Array, conditionals: Mapping[Variable, Any]) -> Array:
        expected = np.empty((self.n_rows, table.shape[-1]))
        self.table(expected)[...] = table
        self.write_expected(expected, conditionals)
        return expected

    def expected_of_path(self, path: SwitchedPath) -> Array:
        emission = self._emission(path.natural)
        return self._expected_at(
            self._over_rest(path.states.probabilities.T) * emission.given, emission.conditionals
        )

    def response_of_sequences(
        self, said: Said, changes: Array, of_sums: Sequence[Arrays]
    ) -> SequenceResponse:
        """Return how all respond: the states to what is said of them on average, the rest given them as well."""
        emission = self._emission(said.natural)
        each = [self.said(change, emission.conditionals) for change in changes]
        of_states = [(emission.given * self.table(own)).sum(axis=self._rest) for own, _ in each]
        states = replace(said, natural=emission.logits)
        found = self._states.response_of_sequences(states, np.stack(of_states), of_sums)
        table = self._over_rest(found.expected) * emission.given
        expected = self._expected_at(table, emission.conditionals)
        moved = []
        for (own, inside), average, change in zip(each, of_states, found.changes, strict=True):
            told = self.table(own)
            told[...] = table * (told - self._over_rest(average)) + self._over_rest(change) * emission.given
            moved.append(self.write_change(own, inside, table))
        return SequenceResponse(expected, np.stack(moved), found.sums)

    def sums(self, smoothing: SwitchedSmoothing, steps: Steps) -> Arrays:
        """Return first states and pairs by key."""
        return self._states.sums(smoothing.states, steps)

    def sums_given(self, expected: Array, steps: Steps) -> Arrays:
        """Return the sums over the rows, states independent with these marginals."""
        return self._states.sums_given(self.view(expected, StatisticKey(self.labels[0].name, "x")), steps)

    def drawn(self, natural: Array, rng: np.random.Generator) -> Array:
        """Return random probabilities of the combinations of labels for each distinct row."""
        table = self.table(natural)
        shares = rng.dirichlet(np.ones(table[..., 0].size), natural.shape[1]).T
        return self._expected_at(shares.reshape(table.shape), self.gathered(natural.copy())[1])
