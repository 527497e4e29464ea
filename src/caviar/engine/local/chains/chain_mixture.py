"""The factor of a mixture of Markov chains: the kind of each sequence and its states, exact together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from .... import families
from ...._typing import AnyArray, Array
from ....families.chains.chain_mixture import pairs_of_kinds
from ....families.chains.markov_chain import Smoothing, smooth
from ....families.chains.markov_response import response_of_smoothing
from ....language import Axis, MarkovChain, MarkovChainMixture
from ...binding.bound_model import BoundModel
from ...binding.evidence import Evidence
from ...design.scratch import Scratch
from ..statistics import Arrays
from .chain import Ahead, Said, SequenceResponse
from .markov_chain import MarkovChainFactor
from .steps import Steps

_ROUNDS = 10
"""Rounds of k-means among sequences."""


class ChainMixtureFactor(MarkovChainFactor):
    """The factor of a mixture of chains: a chain of the pairs of kind and state, of which rows know the state."""

    def __init__(
        self, variable: MarkovChainMixture, evidence: Evidence, data_axis: Axis, bound: BoundModel
    ) -> None:
        super().__init__(variable, evidence, data_axis, bound)
        self.n_kinds = variable.n_kinds

    def _tiled(self, of_states: Array) -> Array:
        """Return a figure of states, (..., K), repeated for the pairs of kind and state, (..., G K)."""
        return np.concatenate([of_states] * self.n_kinds, axis=-1)

    def _states(self, of_pairs: Array) -> Array:
        """Return sums over the kinds, (..., K), from pairs of kind and state, (..., G K)."""
        return of_pairs.reshape(*of_pairs.shape[:-1], self.n_kinds, -1).sum(axis=-2)

    def _logs(self, sums: Mapping[Hashable, Array]) -> tuple[Array, Array]:
        """Return the logarithms of the initial and the transition probabilities of the pairs."""
        initial, transition = (sums[key] for key in self._summed)
        size = initial.shape[-1]
        whole = np.broadcast_to(initial, (self.n_kinds, size))
        each = np.broadcast_to(transition, (self.n_kinds, size, size))
        return whole.ravel(), pairs_of_kinds(each, -np.inf)

    def _by_kind(self, first: Array, pairs: Array) -> tuple[Array, Array]:
        """Return first states (..., G, K) and pairs within each kind (..., G, K, K), from those of the pairs."""
        shape = (self.n_kinds, first.shape[-1] // self.n_kinds)
        kinds = np.arange(self.n_kinds)
        square = pairs.reshape(*pairs.shape[:-2], *shape, *shape)
        within = np.moveaxis(square, (-4, -2), (0, 1))[kinds, kinds]
        return first.reshape(*first.shape[:-1], *shape), np.moveaxis(within, 0, -3)

    def path(self, said: Said) -> families.ChainMixture:
        """Return the distribution of kinds and states of whole sequences, from log-likelihoods (K, B)."""
        chain = families.MarkovChain(self._tiled(said.natural.T), said.steps.starts, *self._logs(said.sums))
        return families.ChainMixture(chain, self.n_kinds)

    def continued(self, path: families.ChainMixture, ahead: Ahead) -> families.ChainMixture:
        """Return the chain with a forecast: the states of each kind move by its expected transition."""
        size, means = len(ahead.natural), ahead.means
        initial = np.reshape(means["weights"], (self.n_kinds, 1)) * np.reshape(means["initial"], (-1, size))
        transition = pairs_of_kinds(np.reshape(means["transition"], (self.n_kinds, size, size)), 0.0)
        assert isinstance(path.pairs, families.MarkovChain)
        forecast = families.ForecastMarkovChain(
            path.pairs, ahead.is_counted, ahead.steps.starts, initial.ravel(), transition
        )
        return families.ChainMixture(forecast, self.n_kinds)

    def smoothing(self, said: Said, scratch: Scratch) -> Smoothing:
        """Return the probabilities of the states, and first states and pairs of each kind."""
        found = smooth(
            self._tiled(said.natural.T),
            said.steps.starts,
            *self._logs(said.sums),
            lambda name, shape: scratch.array((self, name), shape),
            said.steps.weights,
        )
        first, pairs = self._by_kind(found.first, found.pairs)
        return replace(found, marginals=self._states(found.marginals), first=first, pairs=pairs)

    def response_of_sequences(
        self, said: Said, changes: Array, of_sums: Sequence[Arrays]
    ) -> SequenceResponse:
        """Return how the states, and first states and pairs of each kind, respond to changes of log-likelihoods."""
        size = len(said.natural)
        shapes = [(self.n_kinds, size), (self.n_kinds, size, size)]
        of_initial, of_transition = (
            [np.broadcast_to(own.get(key, 0.0), shape) for own in of_sums]
            for key, shape in zip(self._summed, shapes, strict=True)
        )
        found = response_of_smoothing(
            self._tiled(said.natural.T),
            said.steps.starts,
            *self._logs(said.sums),
            self._tiled(changes.swapaxes(1, 2)),
            np.stack([own.ravel() for own in of_initial]),
            np.stack([pairs_of_kinds(own, 0.0) for own in of_transition]),
            said.steps.weights,
        )
        first, pairs = self._by_kind(found.first, found.pairs)
        return SequenceResponse(
            self._states(found.marginals).T,
            self._states(found.changes).swapaxes(1, 2),
            self._keyed({"first": first, "pairs": pairs}),
        )

    def sums_given(self, expected: Array, steps: Steps) -> Arrays:
        """Return the sums over the rows, states independent with these marginals (K, B).

        Sequences are of the kind of those that go from state to state as they do: with all kinds alike none would ever
        differ.
        """
        size, after = len(expected), steps.after
        begins = np.union1d([0], np.flatnonzero(steps.starts)) if expected.shape[1] else np.zeros(0, np.intp)
        sequence = np.searchsorted(begins, np.arange(expected.shape[1]), side="right") - 1
        moves = np.zeros((len(begins), size, size))
        np.add.at(
            moves, sequence[after], expected[:, after - 1].T[:, :, None] * expected[:, after].T[:, None, :]
        )
        kinds = _alike(moves.reshape(len(begins), size * size), self.n_kinds)
        weights = np.ones(expected.shape[1]) if steps.weights is None else steps.weights
        first, pairs = np.zeros((self.n_kinds, size)), np.zeros((self.n_kinds, size, size))
        np.add.at(first, kinds, (weights[begins] * expected[:, begins]).T)
        np.add.at(pairs, kinds, weights[begins][:, None, None] * moves)
        return self._keyed({"first": first, "pairs": pairs})


def chain_of_states(
    variable: MarkovChain, evidence: Evidence, data_axis: Axis, bound: BoundModel
) -> MarkovChainFactor:
    """Return the factor of a chain of labels, which may be a mixture."""
    if isinstance(variable, MarkovChainMixture):
        return ChainMixtureFactor(variable, evidence, data_axis, bound)
    return MarkovChainFactor(variable, evidence, data_axis, bound)


def _alike(moves: Array, n_kinds: int) -> AnyArray:
    """Return the kind of each sequence, by k-means on the shares of its moves from the farthest sequences on."""
    if not len(moves):
        return np.zeros(0, dtype=np.intp)
    points = moves / np.maximum(moves.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    centres = points[:1]
    for _ in range(n_kinds - 1):
        farthest = ((points[:, None] - centres) ** 2).sum(axis=2).min(axis=1).argmax()
        centres = np.concatenate([centres, points[farthest : farthest + 1]])
    kinds = np.zeros(len(points), dtype=np.intp)
    for _ in range(_ROUNDS):
        kinds = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for kind in np.unique(kinds):
            centres[kind] = points[kinds == kind].mean(axis=0)
    return kinds
