r"""Markov chains with a forecast: hidden states up to the last observation of each sequence, and those after it.

.. math::
    q(s) = q(s_{\mathrm{observed}}) \prod_{t\ \mathrm{first}} \pi_{s_t} \prod_{t\ \mathrm{not\ first}} A_{s_{t-1} s_t}

with products over the rows after the last observation of their sequence, all rows of a sequence without any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import entr

from caviar._typing import AnyArray, Array
from caviar.families.base.family import Seed, Size
from caviar.families.chains.markov_chain import MarkovChain
from caviar.families.chains.paths import StatePaths
from caviar.numerics.cached import cached_property


@dataclass(frozen=True)
class ForecastMarkovChain(StatePaths):
    """Distribution of the paths of hidden sequences that continue after their last observation.

    Later rows do not affect the states up to the last observation, which are those of the observed chain alone.

    Parameters
    ----------
    observed
        The rows up to the last observation of their sequence.
    is_observed
        Which of all rows these are, shape (N,).
    starts
        Whether a sequence begins at a row, shape (N,); one begins at the first row in any case.
    initial
        Probabilities of the first state, shape (K,).
    transition
        Probabilities of the next state, one row per current state, shape (K, K).

    Notes
    -----
    O(n K^2) for n rows after the last observation.

    Examples
    --------
    >>> A = np.array([[0.9, 0.1], [0.3, 0.7]])
    >>> seen = MarkovChain(np.log([[0.2, 0.7]]), np.array([True]), np.log([0.5, 0.5]), np.log(A))
    >>> ahead = ForecastMarkovChain(
    ...     seen, np.array([True, False, False]), np.array([True, False, False]), np.array([0.5, 0.5]), A
    ... )
    >>> ahead.probabilities.round(4)
    array([[0.2222, 0.7778],
           [0.4333, 0.5667],
           [0.56  , 0.44  ]])
    >>> print(ahead.mode())
    [1 1 1]
    """

    observed: MarkovChain
    is_observed: AnyArray
    starts: AnyArray
    initial: Array
    transition: Array

    @cached_property
    def _ahead(self) -> AnyArray:
        return np.flatnonzero(~np.asarray(self.is_observed))

    @cached_property
    def _logs(self) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return np.log(self.initial), np.log(self.transition)

    @cached_property
    def probabilities(self) -> Array:
        """Probability of each state at each row, shape (N, K)."""
        found = np.empty((len(self.starts), len(self.initial)))
        found[self.is_observed] = self.observed.probabilities
        for t in self._ahead:
            found[t] = self.initial if self._is_first[t] else found[t - 1] @ self.transition
        return found

    @property
    def log_partition(self) -> float:
        """Log of the sum over all paths: that of the observed rows, for the others integrate to one."""
        return self.observed.log_partition

    def entropy(self) -> float:
        """Return the entropy of all paths together, in nats."""
        first = self._is_first[self._ahead]
        before = self.probabilities[self._ahead[~first] - 1].sum(axis=0)
        ahead = first.sum() * entr(self.initial).sum() + before @ entr(self.transition).sum(axis=1)
        return self.observed.entropy() + float(ahead)

    def mode(self) -> AnyArray:
        """Return the most probable path, shape (N,): one joint state for all rows, by the Viterbi recursion."""
        log_initial, log_transition = self._logs
        # log-probability of the best way on from each state
        onward = np.zeros((len(self.starts), len(self.initial)))
        for t in self._ahead[::-1]:
            if not self._is_first[t]:
                onward[t - 1] = (log_transition + onward[t]).max(axis=1)
        path = np.empty(len(self.starts), dtype=np.intp)
        logits = self.observed.logits + onward[self.is_observed]
        path[self.is_observed] = replace(self.observed, logits=logits).mode()
        for t in self._ahead:
            into = log_initial if self._is_first[t] else log_transition[path[t - 1]]
            path[t] = (into + onward[t]).argmax()
        return path

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return paths, shape size + (N,): the observed rows, then each state given the one before it."""
        rng = np.random.default_rng(seed)
        log_initial, log_transition = self._logs
        observed = self.observed.sample(size, rng)
        paths = np.empty((*observed.shape[:-1], len(self.starts)), dtype=np.intp)
        paths[..., self.is_observed] = observed
        for t in self._ahead:
            logits = log_initial if self._is_first[t] else log_transition[paths[..., t - 1]]
            # the largest of logits with Gumbel noise is a draw
            noise = rng.gumbel(size=(*paths.shape[:-1], len(self.initial)))
            paths[..., t] = (logits + noise).argmax(axis=-1)
        return paths

    def log_density(self, value: Any) -> Array:
        """Return the log-probability of paths (..., N), of shape (...)."""
        paths, (log_initial, log_transition) = np.asarray(value, dtype=np.intp), self._logs
        first = self._is_first[self._ahead]
        begins, within = self._ahead[first], self._ahead[~first]
        ahead = log_initial[paths[..., begins]].sum(axis=-1)
        ahead = ahead + log_transition[paths[..., within - 1], paths[..., within]].sum(axis=-1)
        return self.observed.log_density(paths[..., self.is_observed]) + ahead
