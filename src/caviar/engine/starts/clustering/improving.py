r"""Improving: a few iterations of variational Bayes for many partitions of the same points, side by side.

The sums over points, and the densities, of all partitions are one product of matrices each, so that a hundred of them
cost about as much as one fit of a model.

Source: Bishop, "Pattern recognition and machine learning" (2006), section 10.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

from ...._typing import AnyArray, Array
from .likenesses import Likeness
from .orders import Counts, Order

_DIGITS = np.float32
"""Bounds are compared to a ten thousandth of a nat a point, and half of the time goes with moving numbers."""

_SAME = 1e-5
"""Nats a point by which bounds may differ that count as the same end."""


@dataclass(frozen=True, eq=False)
class Likely:
    """A mixture of Gaussians, or a hidden Markov model, that is like the model of the data.

    Attributes
    ----------
    likeness
        In the place of the components.
    order
        In the place of the labels' prior.
    points
        Shape (n, d), columns in units of their spread.
    weights
        Shape (n,).
    size
        Number of clusters.
    concentration
        Of the Dirichlet priors.
    """

    likeness: Likeness
    order: Order
    points: Array
    weights: Array
    size: int
    concentration: float

    def improved(self, labels: AnyArray, n_iter: int) -> tuple[AnyArray, Array]:
        """Return the most probable labels after some iterations, (m, n), and the bounds, (m,).

        Partitions that come to the same bound are left out but the first; the best are first.
        """
        features = self.likeness.features(self.points)
        weighted = (features * self.weights[:, None]).astype(_DIGITS).T
        features = features.astype(_DIGITS)
        shares = shares_of(labels.T, self.size, _DIGITS)
        shape, counts, bounds = shares.shape, self.order.counts(shares), np.zeros(len(labels))
        for _ in range(n_iter):
            sums = (weighted @ shares.reshape(len(features), -1)).T.reshape(*shape[1:], -1)
            sums = sums.astype(np.float64)
            coefficients, bounds = self.likeness.fitted(sums)
            logs, of_counts = probabilities(counts, self.concentration)
            # the bound once shares are inferred: evidence and log-partition less what both have of the sums
            bounds = bounds + of_counts - _products((sums, *counts), (coefficients, *logs))
            flat = coefficients.reshape(-1, coefficients.shape[-1]).astype(_DIGITS)
            shares, counts, partition = self.order.inferred((features @ flat.T).reshape(shape), logs)
            bounds = bounds + partition
        best = np.argsort(-bounds, kind="stable")
        best = best[np.isfinite(bounds[best])]
        is_new = -np.diff(bounds[best], prepend=np.inf) > _SAME * self.weights.sum()
        return shares[:, best[is_new]].argmax(axis=2).T, bounds[best[is_new]]


def shares_of(labels: AnyArray, size: int, digits: type[np.floating[Any]] = np.float64) -> Array:
    """Return ones in the clusters of points, and zeros elsewhere, (..., size)."""
    return (labels[..., None] == np.arange(size)).astype(digits)


def probabilities(counts: Counts, concentration: float) -> tuple[Counts, Array]:
    """Return expected logarithms of probabilities given their counts, and the log evidence of these, (m,)."""
    logs, evidence = [], np.zeros(len(counts[0]))
    for own in counts:
        alpha = own + concentration
        total = alpha.sum(axis=-1, keepdims=True)
        logs.append(digamma(alpha) - digamma(total))
        of_rows = gammaln(alpha).sum(axis=-1) - gammaln(total[..., 0])
        evidence += of_rows.reshape(len(own), -1).sum(axis=1)
    return tuple(logs), evidence


def _products(several: Counts, others: Counts) -> Array:
    """Return the sum of the products of arrays, (m,)."""
    pairs = zip(several, others, strict=True)
    return sum(((one * other).reshape(len(one), -1).sum(axis=1) for one, other in pairs), np.zeros(1))
