r"""Markov chains whose steps differ: each row has its own transition probabilities.

.. math::
    q(s) \propto \prod_{t\ \mathrm{first}} \pi_{s_t} \prod_{t\ \mathrm{not\ first}} A_{t, s_{t-1} s_t} \prod_t b_{t s_t}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from caviar._typing import AnyArray, Array
from caviar.families.base.family import Seed, Size, draw_shape
from caviar.families.chains.markov_chain import ImpossiblePathError
from caviar.families.chains.markov_response import given_the_data
from caviar.families.chains.paths import StatePaths
from caviar.families.chains.recursions import linear_recursion
from caviar.numerics.cached import cached_property


@dataclass(frozen=True)
class ChangingMarkovChain(StatePaths):
    """Distribution of the paths of one or several hidden sequences whose steps differ.

    Parameters
    ----------
    logits
        Log-likelihood of each row in each state, shape (N, K), up to a constant for each row.
    starts
        Whether a sequence begins at a row, shape (N,); one begins at the first row in any case.
    log_initial
        Log-weight of each first state, shape (K,); minus infinity where it is impossible.
    log_transition
        Log-weight of the step to each row, shape (N, K, K), from the state before to the row's; of first rows it is not
        used.

    Raises
    ------
    ImproperError
        In any method, if no path is possible.

    Notes
    -----
    Given the data the states are a Markov chain again, from which everything here is computed: O(N K^3).

    Examples
    --------
    >>> stay, leave = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.1, 0.9], [0.9, 0.1]])
    >>> seen = np.log([[0.8, 0.2], [0.5, 0.5], [0.5, 0.5]])
    >>> steps = np.stack([stay, stay, leave])
    >>> chain = ChangingMarkovChain(seen, np.array([True, False, False]), np.log([0.5, 0.5]), steps)
    >>> chain.probabilities.round(3)
    array([[0.8  , 0.2  ],
           [0.74 , 0.26 ],
           [0.308, 0.692]])
    """

    logits: Array
    starts: AnyArray
    log_initial: Array
    log_transition: Array

    @cached_property
    def _given(self) -> tuple[Array, Array]:
        """Transitions given the data, (N, K, K), and probabilities of first states, (N, K); zero elsewhere."""
        largest = self.logits.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood = np.exp(self.logits - largest)
            return given_the_data(likelihood, self._is_first, self.log_initial, np.exp(self.log_transition))

    @cached_property
    def probabilities(self) -> Array:
        """Probability of each state at each row, shape (N, K)."""
        steps, first = self._given
        found = linear_recursion(steps.swapaxes(1, 2), first[:, :, None])[:, :, 0]
        lost = np.flatnonzero(~(np.abs(found.sum(axis=1) - 1.0) < 1e-6))
        if len(lost):
            begins = np.flatnonzero(self._is_first)
            row = int(lost[0])
            raise ImpossiblePathError(int(begins[np.searchsorted(begins, row, side="right") - 1]), row)
        return found

    @cached_property
    def pairs(self) -> Array:
        """Probability of the state before and of the state of each row together, (N, K, K); zero for first rows."""
        before = np.roll(self.probabilities, 1, axis=0)
        return before[:, :, None] * self._given[0]

    @cached_property
    def entropies(self) -> Array:
        """Entropy of the state of each row given the one before it, nats, (N,)."""
        before = np.roll(self.probabilities, 1, axis=0)
        of_steps = (before * entr(self._given[0]).sum(axis=2)).sum(axis=1)
        return np.where(self._is_first, entr(self.probabilities).sum(axis=1), of_steps)

    def entropy(self) -> float:
        """Return the entropy of all paths together, in nats."""
        return float(self.entropies.sum())

    @cached_property
    def log_partition(self) -> float:
        """Log of the sum over all paths."""
        after = ~self._is_first
        told = _dot(self.probabilities, self.logits) + _dot(
            self.probabilities[self._is_first].sum(axis=0), self.log_initial
        )
        return told + _dot(self.pairs[after], self.log_transition[after]) + self.entropy()

    def mode(self) -> AnyArray:
        """Return the most probable path, shape (N,): one joint state for all rows, by the Viterbi recursion."""
        best, origin = np.empty(self.logits.shape), np.zeros(self.logits.shape, dtype=np.intp)
        for t, is_first in enumerate(self._is_first):
            reached = self.log_initial[None] if is_first else best[t - 1][:, None] + self.log_transition[t]
            origin[t], best[t] = reached.argmax(axis=0), reached.max(axis=0) + self.logits[t]
        path = np.empty(len(best), dtype=np.intp)
        for t in reversed(range(len(best))):
            is_last = t + 1 == len(best) or self._is_first[t + 1]
            path[t] = best[t].argmax() if is_last else origin[t + 1, path[t + 1]]
        return path

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return paths, shape size + (N,): each state given the one before it, and the data."""
        rng = np.random.default_rng(seed)
        steps, first = self._given
        paths = np.empty(draw_shape(size, (len(first),)), dtype=np.intp)
        for t, is_first in enumerate(self._is_first):
            chances = first[t] if is_first else steps[t][paths[..., t - 1]]
            threshold = rng.random((*paths.shape[:-1], 1))
            paths[..., t] = (chances.cumsum(axis=-1) <= threshold * chances.sum(axis=-1, keepdims=True)).sum(
                axis=-1
            )
        return paths

    def log_density(self, value: Any) -> Array:
        """Return the log-probability of paths (..., N), of shape (...)."""
        paths, after = np.asarray(value, dtype=np.intp), np.flatnonzero(~self._is_first)
        total = self.log_initial[paths[..., self._is_first]].sum(axis=-1)
        total = total + self.log_transition[after, paths[..., after - 1], paths[..., after]].sum(axis=-1)
        return total + self.logits[np.arange(paths.shape[-1]), paths].sum(axis=-1) - self.log_partition


def _dot(weights: Array, logarithms: Array) -> float:
    """Return the sum of products; zero times minus infinity is zero."""
    return float(np.multiply(weights, logarithms, out=np.zeros_like(weights), where=weights > 0).sum())
