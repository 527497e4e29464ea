"""The factor of a Markov chain: states of whole sequences, from a log-likelihood a row."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from .... import families
from ...._typing import Array
from ....families.chains.markov_chain import Smoothing, smooth
from ....families.chains.markov_response import response_of_smoothing
from ....language import Axis, MarkovChain
from ...binding.bound_model import BoundModel
from ...binding.evidence import Evidence
from ...design.scratch import Scratch
from ..categorical import CategoricalFactor
from ..statistics import Arrays
from .chain import Ahead, ChainFactor, Said, SequenceResponse
from .steps import Steps


class MarkovChainFactor(ChainFactor, CategoricalFactor):
    """The factor of a Markov chain; what rows say of their states is a Categorical a row."""

    def __init__(
        self,
        variable: MarkovChain,
        evidence: Evidence,
        data_axis: Axis,
        bound: BoundModel,
    ) -> None:
        super().__init__(variable, evidence, data_axis, bound.size)
        self._is_along(bound)

    def path(self, said: Said) -> Any:
        """Return the distribution of the states of whole sequences, from log-likelihoods (K, B)."""
        return families.MarkovChain(said.natural.T, said.steps.starts, *self._logs(said.sums))

    def continued(self, path: Any, ahead: Ahead) -> Any:
        """Return the chain with a forecast: its states move by the expected transition."""
        initial, transition = ahead.means["initial"], ahead.means["transition"]
        return families.ForecastMarkovChain(path, ahead.is_counted, ahead.steps.starts, initial, transition)

    def moves(self, path: Any) -> Array | None:
        return path.transition if isinstance(path, families.ForecastMarkovChain) else None

    def smoothing(self, said: Said, scratch: Scratch) -> Smoothing:
        """Return the probabilities of the states, first states and pairs; they lie in the scratch."""
        return smooth(
            said.natural.T,
            said.steps.starts,
            *self._logs(said.sums),
            lambda name, shape: scratch.array((self, name), shape),
            said.steps.weights,
        )

    def response_of_sequences(
        self, said: Said, changes: Array, of_sums: Sequence[Arrays]
    ) -> SequenceResponse:
        """Return how the probabilities of the states, first states and pairs respond to changes of log-likelihoods."""
        of_initial, of_transition = (
            np.stack([np.broadcast_to(own.get(key, 0.0), np.shape(said.sums[key])) for own in of_sums])
            for key in self._summed
        )
        found = response_of_smoothing(
            said.natural.T,
            said.steps.starts,
            *self._logs(said.sums),
            changes.swapaxes(1, 2),
            of_initial,
            of_transition,
            said.steps.weights,
        )
        return SequenceResponse(
            found.marginals.T,
            found.changes.swapaxes(1, 2),
            self._keyed({"first": found.first, "pairs": found.pairs}),
        )

    def _logs(self, sums: Mapping[Hashable, Array]) -> tuple[Array, Array]:
        """Return the logarithms of the initial and the transition probabilities."""
        initial, transition = (sums[key] for key in self._summed)
        return initial, transition

    def expected(self, smoothing: Smoothing) -> Array:
        """Return the probabilities of the states, (K, B)."""
        return smoothing.marginals.T

    def expected_of_path(self, path: Any) -> Array:
        """Return the probabilities of the states, (K, N)."""
        return path.probabilities.T

    def sums(self, smoothing: Smoothing, steps: Steps) -> Arrays:
        """Return first states and pairs by key."""
        return self._keyed({"first": smoothing.first, "pairs": smoothing.pairs})

    def sums_given(self, expected: Array, steps: Steps) -> Arrays:
        """Return the sums over the rows, states independent with these marginals (K, B)."""
        after = steps.after
        counted = expected if steps.weights is None else expected * steps.weights
        first = counted[:, steps.starts].sum(axis=1)
        return self._keyed({"first": first, "pairs": expected[:, after - 1] @ counted[:, after].T})

    def drawn(self, natural: Array, rng: np.random.Generator) -> Array:
        """Return random probabilities of the states for each distinct row.

        Labels would tell few distinct rows, such as categories, apart without overlap; then the states' order in time,
        which is what a chain sees, says nothing that the rows do not.
        """
        return np.ascontiguousarray(rng.dirichlet(np.ones(self.n_rows), natural.shape[1]).T)
