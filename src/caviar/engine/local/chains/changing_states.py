"""The factor of a Markov chain whose steps differ: what is known or hidden of a step chooses its transitions.

The pairs of a step's state and the one before are statistics of the step, which terms of the rows meet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .... import families
from ...._typing import AnyArray, Array
from ....families.chains.markov_response import response_of_smoothing
from ....language import Variable
from ...design.inferred import Inferred
from ...design.keys import ColumnKey, StatisticKey
from ...design.scratch import Scratch
from ..categorical import softmax_inplace
from ..statistics import Arrays
from .chain import Ahead, Said, SequenceResponse
from .markov_chain import MarkovChainFactor
from .steps import Steps

_MEETS = 1e-9
"""Expected number of known probabilities of zero of a step above which the step is impossible."""


@dataclass(frozen=True)
class _Smoothing:
    """The distribution of the states, and how often each step counts."""

    path: families.ChangingMarkovChain
    weights: Array | float

    @property
    def entropy(self) -> float:
        return float((self.weights * self.path.entropies).sum())


class ChangingStatesFactor(MarkovChainFactor):
    """The factor of a Markov chain whose steps differ; rows say something of states, and of pairs of them."""

    @property
    def one_hots(self) -> Collection[StatisticKey]:
        return {StatisticKey(self.variables[0].name, "x")}

    @property
    def _n_states(self) -> int:
        return self.variables[0].dimension or 1

    def _pairs(self, values: Array) -> Array:
        """Return what values (E, B) have for the pairs of each step, (B, K, K), a view."""
        view = self.view(values, StatisticKey(self.variables[0].name, "pairs"))
        return np.moveaxis(view, -1, 0)

    def restrict(
        self, natural: Array, columns: Mapping[ColumnKey, AnyArray], zeros: Array | None = None
    ) -> None:
        super().restrict(natural, columns, zeros)
        if zeros is not None:
            np.copyto(self._pairs(natural), -np.inf, where=self._pairs(zeros) > _MEETS)

    def path(self, said: Said) -> families.ChangingMarkovChain:
        (initial,) = (said.sums[key] for key in self._summed)
        logits, pairs = said.natural[: self._n_states].T, self._pairs(said.natural)
        return families.ChangingMarkovChain(logits, said.steps.starts, initial, pairs)

    def smoothing(self, said: Said, scratch: Scratch) -> _Smoothing:  # type: ignore[override]
        weights = said.steps.weights
        return _Smoothing(self.path(said), 1.0 if weights is None else weights)

    def continued(self, path: Any, ahead: Ahead) -> Any:
        """Return the chain with a forecast: its states move by the expected transition that is chosen."""
        slot, steps, is_counted = self.variables[0].slots.get("transition"), ahead.steps, ahead.is_counted
        if slot is not None and len(steps.choices) == 1 and len(slot.chosen) == 2:
            (labels,) = steps.choices.values()
            transition = ahead.means["transition"][np.asarray(labels, dtype=np.intp)]
        else:
            transition = np.exp(self._pairs(ahead.natural))
            transition /= np.maximum(transition.sum(axis=2, keepdims=True), np.finfo(float).tiny)
        logits = np.zeros((len(is_counted), self._n_states))
        logits[is_counted] = path.logits
        with np.errstate(divide="ignore"):
            log_transition = np.log(transition)
        log_transition[is_counted] = path.log_transition
        return families.ChangingMarkovChain(logits, steps.starts, path.log_initial, log_transition)

    def expected(self, smoothing: _Smoothing) -> Array:  # type: ignore[override]
        return self.expected_of_path(smoothing.path)

    def expected_of_path(self, path: Any) -> Array:
        expected = np.empty((self.n_rows, len(path.probabilities)))
        expected[: self._n_states] = path.probabilities.T
        self._pairs(expected)[...] = path.pairs
        return expected

    def sums(self, smoothing: _Smoothing, steps: Steps) -> Arrays:  # type: ignore[override]
        return self.sums_given(smoothing.path.probabilities.T, steps)

    def sums_given(self, expected: Array, steps: Steps) -> Arrays:
        states = expected[: self._n_states]
        counted = states if steps.weights is None else states * steps.weights
        begins = steps.starts.copy()
        begins[:1] = True
        return self._keyed({"first": counted[:, begins].sum(axis=1)})

    def beside_others(self, expected: Array, steps: Steps) -> Array:
        states, found = expected[: self._n_states].T, expected.copy()
        pairs = np.roll(states, 1, axis=0)[:, :, None] * states[:, None, :]
        pairs[steps.starts] = 0.0
        pairs[:1] = 0.0
        self._pairs(found)[...] = pairs
        return found

    def response_of_sequences(
        self, said: Said, changes: Array, of_sums: Sequence[Arrays]
    ) -> SequenceResponse:
        (key,) = self._summed
        path = self.path(said)
        of_initial = [np.broadcast_to(own.get(key, 0.0), path.log_initial.shape) for own in of_sums]
        found = response_of_smoothing(
            path.logits,
            said.steps.starts,
            path.log_initial,
            path.log_transition,
            changes[:, : self._n_states].swapaxes(1, 2),
            np.stack(of_initial),
            np.stack([self._pairs(own) for own in changes]),
            said.steps.weights,
        )
        moved = np.empty(changes.shape)
        for own, states, pairs in zip(moved, found.changes, found.pairs, strict=True):
            own[: self._n_states] = states.T
            self._pairs(own)[...] = pairs
        return SequenceResponse(self.expected_of_path(path), moved, self._keyed({"first": found.first}))

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics, each row independent, without a step."""
        natural[self._n_states :] = 0.0
        return Inferred(softmax_inplace(natural[: self._n_states]), None)

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the Categorical of each row alone."""
        states = natural[: self._n_states].copy()
        softmax_inplace(states)
        return {self.variables[0]: families.Categorical(states.T)}

    def drawn(self, natural: Array, rng: np.random.Generator) -> Array:
        found = np.zeros((self.n_rows, natural.shape[1]))
        found[: self._n_states] = rng.dirichlet(np.ones(self._n_states), natural.shape[1]).T
        return found
