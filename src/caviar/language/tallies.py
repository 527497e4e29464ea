"""Tallies: the distribution of multinomial counts given their probabilities, to be drawn from and evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlogy

from .._typing import AnyArray, Array
from ..families._base import draw_shape
from .batches import Batch


@dataclass(frozen=True)
class Tallies(Batch):
    """Counts of n draws from each of a batch of probabilities.

    Attributes
    ----------
    trials
        n, of the batch shape.
    probabilities
        Shape (batch..., K).
    """

    trials: AnyArray
    probabilities: Array

    def sample(self, size: int | tuple[int, ...] | None, seed: int | np.random.Generator | None) -> AnyArray:
        """Return counts of shape size + batch + (K,)."""
        generator = np.random.default_rng(seed)
        return generator.multinomial(self.trials, self.probabilities, size=draw_shape(size, self.batch_shape))

    def log_density(self, value: AnyArray) -> Array:
        """Return the log-probability of counts (..., K); minus infinity where they do not sum to n."""
        counts = np.asarray(value, dtype=np.float64)
        terms = xlogy(counts, self.probabilities) - gammaln(counts + 1)
        right = counts.sum(axis=-1) == self.trials
        return np.where(right, gammaln(np.asarray(self.trials) + 1.0) + terms.sum(axis=-1), -np.inf)
