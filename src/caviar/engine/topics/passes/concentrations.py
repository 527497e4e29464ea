"""Learnt concentrations: what expected counts say of the prior of labels that are drawn from proportions."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from ...._typing import AnyArray, Array

_RARE = 1e-3
"""Probability that a count is above zero, below which the count is 0 or 1."""


class ExpectedSlopes:
    r"""What is expected of :math:`\psi(a_k + N) - \psi(a_k)`, summed over rows of counts, of any concentrations a.

    A count N of tokens whose probabilities are :math:`\gamma_i` is above zero with probability
    :math:`P = 1 - \prod_i (1 - \gamma_i)`, and the expectation is about :math:`P\,(\psi(a + N / P) - \psi(a))`, or
    :math:`P / a` where P is small. Without P, counts near zero would count as ones.

    Source: Teh, Newman and Welling, "A collapsed variational Bayesian inference algorithm for latent Dirichlet
    allocation" (NeurIPS 2006).

    Parameters
    ----------
    counts
        Expected counts, (R, K).
    met
        Probabilities that they are above zero, (R, K).
    weights
        How often each row counts, (R,).
    """

    def __init__(self, counts: AnyArray, met: Array, weights: Array) -> None:
        often = met > _RARE
        rows, self._topics = np.nonzero(often)
        own = met[often]
        self._means, self._weighted = counts[often] / own, own * weights[rows]
        self._rarely = weights @ np.where(often, 0.0, met)

    def at(self, prior: Array) -> Array:
        """Return the sums for concentrations, both of shape (K,)."""
        each = digamma(prior[self._topics] + self._means) - digamma(prior)[self._topics]
        often = np.bincount(self._topics, self._weighted * each, len(prior))
        return np.asarray(often + self._rarely / prior)
