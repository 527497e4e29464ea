r"""Mixtures of Markov chains: a kind for each sequence, and the states of its steps given the kind.

.. math::
    q(g, s) \propto w_g \pi_{g s_1} \prod_{t > 1} A_{g, s_{t-1} s_t} \prod_t b_{t s_t}

It is a Markov chain of the pairs (kind, state) whose kind never changes, so everything is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from caviar._typing import AnyArray, Array
from caviar.families.base.family import Seed, Size
from caviar.families.categorical import Categorical
from caviar.families.chains.forecast_markov_chain import ForecastMarkovChain
from caviar.families.chains.markov_chain import MarkovChain
from caviar.families.chains.paths import StatePaths
from caviar.numerics.cached import cached_property


def pairs_of_kinds(transition: Array, elsewhere: float) -> Array:
    """Return a matrix for each kind, (G, K, K), as one of the pairs of kind and state, (G K, G K).

    Parameters
    ----------
    elsewhere
        The entry between pairs of different kinds.
    """
    n_kinds, size = transition.shape[:2]
    found = np.full((n_kinds, size, n_kinds, size), elsewhere)
    found[np.arange(n_kinds), :, np.arange(n_kinds)] = transition
    return found.reshape(n_kinds * size, n_kinds * size)


@dataclass(frozen=True)
class ChainMixture(StatePaths):
    """Distribution of the kinds of one or several hidden sequences, and of their states.

    Parameters
    ----------
    pairs
        The Markov chain of the pairs (kind, state), the state fastest.
    n_kinds
        Number of kinds G.

    Notes
    -----
    The time is that of a chain of G K states.

    Examples
    --------
    Two sequences of two steps; chains of the first kind stay in a state, those of the second change:

    >>> likely = np.log([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.2, 0.8]])
    >>> stays = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])
    >>> with np.errstate(divide="ignore"):
    ...     log_transition = np.log(pairs_of_kinds(stays, 0.0))
    >>> starts = np.array([True, False, True, False])
    >>> q = ChainMixture(MarkovChain(np.tile(likely, 2), starts, np.log(np.full(4, 0.25)), log_transition), 2)
    >>> q.kinds.probabilities.round(3)
    array([[0.692, 0.308],
           [0.308, 0.692]])
    >>> q.mode()
    array([0, 0, 0, 1])
    """

    pairs: MarkovChain | ForecastMarkovChain
    n_kinds: int

    @property
    def starts(self) -> AnyArray:
        """Whether a sequence begins at a row, shape (N,)."""
        return self.pairs.starts

    @cached_property
    def _begins(self) -> AnyArray:
        return np.flatnonzero(self._is_first)

    @cached_property
    def _apart(self) -> Array:
        """Probabilities of the pairs, (N, G, K)."""
        found = self.pairs.probabilities
        return found.reshape(len(found), self.n_kinds, -1)

    @property
    def probabilities(self) -> Array:
        """Probability of each state at each row, shape (N, K)."""
        return self._apart.sum(axis=1)

    @property
    def kinds(self) -> Categorical:
        """The distribution of the kind of each sequence, a batch over the sequences."""
        found = self._apart[self._begins].sum(axis=2)
        return Categorical(found / found.sum(axis=1, keepdims=True))

    @property
    def log_partition(self) -> float:
        """Log of the sum over all kinds and paths."""
        return self.pairs.log_partition

    def entropy(self) -> float:
        """Return the entropy of all kinds and paths together, in nats."""
        return self.pairs.entropy()

    def mode(self) -> AnyArray:
        """Return the states of the most probable kinds and paths together, shape (N,)."""
        return self.pairs.mode() % self._apart.shape[2]

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return paths of states, shape size + (N,)."""
        return self.pairs.sample(size, seed) % self._apart.shape[2]

    def log_density(self, value: Any) -> Array:
        """Return the log-probability of paths of states (..., N), of shape (...); the kinds are summed over."""
        paths, size = np.asarray(value, dtype=np.intp), self._apart.shape[2]
        ends = np.append(self._begins[1:], len(self.starts))
        total = np.zeros(paths.shape[:-1])
        # sequences are independent: each in turn, with the kinds of the others at their first
        for begin, end in zip(self._begins, ends, strict=True):
            own = self._of(begin, end)
            each = [own.log_density(paths[..., begin:end] + kind * size) for kind in range(self.n_kinds)]
            total = total + logsumexp(each, axis=0)
        return total

    def _of(self, begin: int, end: int) -> MarkovChain | ForecastMarkovChain:
        """Return one sequence."""
        pairs, rows = self.pairs, slice(begin, end)
        if isinstance(pairs, MarkovChain):
            return MarkovChain(
                pairs.logits[rows], pairs.starts[rows], pairs.log_initial, pairs.log_transition
            )
        seen = pairs.is_observed
        before, inside = np.count_nonzero(seen[:begin]), np.count_nonzero(seen[rows])
        own = slice(before, before + inside)
        observed = MarkovChain(
            pairs.observed.logits[own],
            pairs.observed.starts[own],
            pairs.observed.log_initial,
            pairs.observed.log_transition,
        )
        return ForecastMarkovChain(observed, seen[rows], pairs.starts[rows], pairs.initial, pairs.transition)
