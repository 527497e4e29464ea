"""Orders: whether points follow each other, and the shares that clusters have in them, of many partitions at once.

Points without an order have weights of clusters; those of sequences have first clusters and steps between them, as the
states of a hidden Markov model. Either have Dirichlet priors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from ...._typing import AnyArray, Array

Counts: TypeAlias = tuple[Array, ...]
"""What Dirichlet factors count, each (m, ..., k) of m partitions."""

_CORE, _MARGIN = 40, 8
"""Points of the pieces that sequences are cut into, and further ones on either side from which messages begin."""


class Order(Protocol):
    """The prior of a point's label, given the order of points."""

    def counts(self, shares: Array) -> Counts:
        """Return what the Dirichlet factors count, given the shares of clusters in points, (n, m, k)."""
        ...

    def inferred(self, logits: AnyArray, logs: Counts) -> tuple[Array, Counts, Array]:
        """Return shares, counts, and the logarithm of the sum over all labels, (m,).

        Parameters
        ----------
        logits
            Log density of each point in each cluster, (n, m, k).
        logs
            Logarithms of the probabilities in the place of the counts.
        """
        ...


@dataclass(frozen=True)
class Unordered:
    """Points by themselves, with weights."""

    weights: Array

    def counts(self, shares: Array) -> Counts:
        return (np.tensordot(self.weights.astype(shares.dtype), shares, 1).astype(np.float64),)

    def inferred(self, logits: AnyArray, logs: Counts) -> tuple[Array, Counts, Array]:
        shares = logits + logs[0].astype(logits.dtype)
        largest = shares.max(axis=2)
        shares -= largest[:, :, None]
        np.exp(shares, out=shares)
        total = _summed(shares)
        shares /= total[:, :, None]
        return shares, self.counts(shares), self.weights @ (largest + np.log(total))


@dataclass(frozen=True, eq=False)
class InSequence:
    """Points of sequences, cut into pieces that are gone through side by side.

    Messages begin a few points before a piece, where they are not known: what they carry further than that is lost.

    Attributes
    ----------
    begins
        Whether a sequence begins at each point, (n,).
    weights
        Of each point, (n,), the same in all of a sequence.
    places
        The points of each piece with its margins, (length, pieces); those that there are not are before the first point
        or behind the last.
    """

    begins: AnyArray
    weights: Array
    places: AnyArray

    @classmethod
    def of(cls, begins: AnyArray, weights: Array) -> InSequence:
        begins = begins.astype(bool)
        begins[0] = True
        core, margin = (_CORE, _MARGIN) if len(begins) > _CORE + 2 * _MARGIN else (len(begins), 0)
        places = np.arange(-margin, core + margin)[:, None] + np.arange(0, len(begins), core)
        return cls(begins, weights, places)

    def counts(self, shares: Array) -> Counts:
        within = np.flatnonzero(~self.begins)
        return self._first(shares), self._pairs(shares[within - 1], shares[within], within)

    def inferred(self, logits: AnyArray, logs: Counts) -> tuple[Array, Counts, Array]:
        largest = logits.max(axis=2)
        likelihood = np.exp(logits - largest[:, :, None])
        initial, step = (np.exp(own).astype(logits.dtype) for own in logs)
        inside = np.clip(self.places, 0, len(self.begins) - 1)
        pieces = likelihood[inside]
        before, scale = self._forward(pieces, inside, initial, step)
        behind = self._backward(pieces, inside, step)
        margin = -int(self.places[0, 0])
        n_points, core = len(self.begins), len(self.places) - 2 * margin
        at, piece = margin + np.arange(n_points) % core, np.arange(n_points) // core
        forward, back = before[at, piece], behind[at, piece]
        shares = forward * back
        shares /= _summed(shares)[:, :, None]
        within = np.flatnonzero(~self.begins)
        earlier, onward = forward[within - 1], likelihood[within] * back[within]
        onward /= _summed(_times(earlier, step) * onward)[:, :, None]
        total = self.weights @ (np.log(scale[at, piece]).astype(np.float64) + largest)
        return shares, (self._first(shares), step * self._pairs(earlier, onward, within)), total

    def _first(self, shares: Array) -> Array:
        return np.tensordot(self.weights[self.begins], shares[self.begins], 1)

    def _pairs(self, earlier: Array, onward: Array, within: AnyArray) -> Array:
        """Return the sums over points of products of clusters, (m, k, k)."""
        onward = onward * self.weights[within, None, None].astype(onward.dtype)
        return (earlier.transpose(1, 2, 0) @ onward.transpose(1, 0, 2)).astype(np.float64)

    def _forward(self, pieces: Array, inside: AnyArray, initial: Array, step: Array) -> tuple[Array, Array]:
        """Return messages forward, (length, pieces, m, k), and what each was divided by, (length, pieces, m)."""
        messages, scale = np.empty_like(pieces), np.empty_like(pieces[..., 0])
        message = np.ones_like(pieces[0])
        for at, is_first in enumerate(self.begins[inside]):
            message = _times(message, step)
            if is_first.any():
                message[is_first] = initial
            np.multiply(message, pieces[at], out=messages[at])
            scale[at] = _summed(messages[at])
            message = messages[at]
            message /= scale[at][:, :, None]
        return messages, scale

    def _backward(self, pieces: Array, inside: AnyArray, step: Array) -> Array:
        """Return messages backward, (length, pieces, m, k)."""
        is_last = np.append(self.begins[1:], True)[inside]
        messages, returning = np.empty_like(pieces), step.transpose(0, 2, 1)
        message = np.ones_like(pieces[0])
        for at in range(len(pieces) - 1, -1, -1):
            message[is_last[at]] = 1.0
            messages[at] = message
            message = _times(pieces[at] * message, returning)
            message /= _summed(message)[:, :, None]
        return messages


def _summed(values: Array) -> Array:
    """Return sums along the last axis: a product of matrices is faster where it is short."""
    return values @ np.ones(values.shape[-1], values.dtype)


def _times(vectors: Array, matrices: Array) -> Array:
    """Return the products of vectors (n, m, k) and matrices (m, k, k), one of each partition."""
    product = np.empty_like(vectors)
    np.matmul(vectors.transpose(1, 0, 2), matrices, out=product.transpose(1, 0, 2))
    return product
