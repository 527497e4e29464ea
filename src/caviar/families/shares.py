"""Shares of a count: the Multinomial distributions of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp, xlogy

from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False, repr=False)
class Shares(ExponentialFamily):
    r"""Multinomial distributions of the parts of a count n, each unit of which comes from one of K sources.

    .. math:: \eta = (n \log \phi + \text{const}, n), \qquad A = n \log \sum_k e^{\eta_k / n}

    The statistics are those of one unit: the probability :math:`\phi_k` that it comes from source k, and the entropy of
    these, both times n in the terms.

    Parameters
    ----------
    total
        :math:`n \ge 0`.
    probabilities
        :math:`\phi`, shape (..., K).

    Raises
    ------
    ParameterError
        If a total is negative, or probabilities are invalid.

    Notes
    -----
    The log-partition is homogeneous, so the entropy about the base measure is zero: what a factor adds to an ELBO
    is in the terms. Cemgil (2009), "Bayesian inference for nonnegative matrix factorisation models".

    Examples
    --------
    >>> Shares(10.0, [0.2, 0.8]).mean
    array([2., 8.])
    """

    total: Array
    probabilities: Array

    statistics: ClassVar[tuple[str, ...]] = ("x", "entropy")
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "k")

    def __init__(self, total: ArrayLike, probabilities: ArrayLike) -> None:
        given = {"total": total, "probabilities": probabilities}
        parameters = read_parameters("Shares", given, (0, 1))
        require(parameters["total"] >= 0, parameters["total"], "Shares: total must not be negative")
        own = parameters["probabilities"]
        good = np.all(own >= 0, axis=-1) & (np.abs(own.sum(axis=-1) - 1.0) < 1e-9)
        require(good, own.sum(axis=-1), "Shares: probabilities must not be negative and must sum to one")
        vars(self).update(parameters)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the probabilities and of their entropy."""
        return event_shape, ()

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with these natural parameters."""
        weighted, total = natural
        good = np.isfinite(weighted).all(axis=-1) & (total >= 0) & (total < np.inf)
        if not np.all(good):
            refuse_improper("Shares", good, "natural parameters must be finite, and the total not negative")
        own = total[..., None]
        logits = np.divide(weighted, own, out=np.zeros(weighted.shape), where=own > 0)
        logits = logits - logsumexp(logits, axis=-1, keepdims=True)
        return cls._trusted(
            total=np.broadcast_to(total, weighted.shape[:-1]),
            probabilities=np.exp(logits),
            _logits=logits,
            natural=natural,
        )

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return the counts, and 0, because the second statistic does not depend on the value."""
        x = as_value(value)
        return x, np.zeros(x.shape[:-1])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(K,)."""
        return self.probabilities.shape[-1:]

    @cached_property
    def _logits(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self.probabilities), -745.0)

    @cached_property
    def natural(self) -> Statistics:
        """(total log probabilities, total)."""
        return self.total[..., None] * self._logits, self.total

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Probabilities and their entropy."""
        return self.probabilities, -(self.probabilities * self._logits).sum(axis=-1)

    def response(self, change: Statistics) -> Statistics:
        own = self.total[..., None]
        slope = np.divide(1.0, own, out=np.zeros(own.shape), where=own > 0)
        logits = slope * (change[0] - self._logits * np.asarray(change[1])[..., None])
        about = logits - (self.probabilities * logits).sum(axis=-1, keepdims=True)
        moved = self.probabilities * about
        return moved, -(self._logits * moved).sum(axis=-1)

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        """Return by how much the expected parts change at this total."""
        return (self.total[..., None] * self.response(change)[0],)

    @cached_property
    def log_partition(self) -> Array:
        """Total times the logarithm of the sum of the exponentials of each unit's logits."""
        weighted, total = self.natural
        own = total[..., None]
        logits = np.divide(weighted, own, out=np.zeros(weighted.shape), where=own > 0)
        return total * logsumexp(logits, axis=-1)

    @property
    def mean(self) -> Array:
        """Expected parts, total times probabilities."""
        return self.total[..., None] * self.probabilities

    @property
    def variance(self) -> Array:
        """Variance of each part."""
        return self.mean * (1.0 - self.probabilities)

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-probability of parts; minus infinity if they are not counts that sum to the total."""
        x = as_value(value)
        whole = np.all((x >= 0) & (x == np.floor(x)), axis=-1) & (x.sum(axis=-1) == self.total)
        safe = np.where(whole[..., None], x, 0.0)
        terms = xlogy(safe, self.probabilities) - gammaln(safe + 1.0)
        return np.where(whole, gammaln(safe.sum(axis=-1) + 1.0) + terms.sum(axis=-1), -np.inf)

    def entropy(self) -> Array:
        """Return total times the entropy of one unit: that of the sources of all units, in their order."""
        return self.total * self.expected_statistics[1]

    def entropy_about_base(self) -> Array:
        """Return 0: the second statistic is the entropy of one unit."""
        return np.zeros(self.batch_shape)

    def _divergence(self, other: Self) -> Array:
        each = (self.probabilities * (self._logits - other._logits)).sum(axis=-1)
        return np.where(self.total == other.total, self.total * each, np.inf)

    def mode(self) -> AnyArray:
        """Return parts of large probability: totals times probabilities, rounded down, the rest to the largest."""
        found = np.floor(self.mean)
        best = np.argmax(self.probabilities, axis=-1)[..., None]
        np.put_along_axis(
            found, best, np.take_along_axis(found, best, -1) + (self.total - found.sum(-1))[..., None], -1
        )
        return found.astype(np.int64)

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return parts of shape size + batch + (K,)."""
        shape = draw_shape(size, self.batch_shape)
        totals = np.broadcast_to(np.round(self.total), shape).astype(np.int64)
        own = self.probabilities / self.probabilities.sum(axis=-1, keepdims=True)
        return np.asarray(np.random.default_rng(seed).multinomial(totals, own, size=shape))
