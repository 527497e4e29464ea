"""The distribution of a vector with exactly one entry that is not zero."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import LOG_TWO_PI, Seed, Size, as_value, draw_shape
from caviar.families.base.parameters import refuse_improper, require
from caviar.families.base.sparse_vectors import SparseVector, slab_divergence, slab_entropy
from caviar.numerics.cached import cached_property

_LEAST = float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SingleEffect(SparseVector):
    r"""Distributions of a vector b in :math:`R^D` with one entry that is not zero, at an unknown place.

    .. math:: \gamma \sim \mathrm{Categorical}(\alpha), \quad b_\gamma \sim N(m_\gamma, P_\gamma^{-1}), \qquad
              t = (\gamma_j,\, b_j,\, b_j^2), \quad
              \eta = (\log \alpha_j + \tfrac12 \log P_j - \tfrac12 P_j m_j^2,\; P_j m_j,\; -\tfrac12 P_j)

    Products of two different entries are zero.

    Parameters
    ----------
    inclusion
        :math:`\alpha`, the probability that the effect is at each entry, shape (..., D), summing to one.
    slab_mean, slab_precision
        Mean and precision of each entry if the effect is there, shape (..., D).

    Raises
    ------
    ParameterError
        If probabilities are negative or do not sum to one, or a precision is not positive.

    Notes
    -----
    Source: Wang, Sarkar, Carbonetto and Stephens, "A simple new approach to variable selection in regression, with
    application to genetic fine mapping" (JRSS B 2020), section 3.

    Examples
    --------
    >>> q = SingleEffect([0.9, 0.1], [2.0, 1.0], [4.0, 4.0])
    >>> q.mean
    array([1.8, 0.1])
    """

    @staticmethod
    def _checked(inclusion: Array) -> Array:
        require(inclusion >= 0, inclusion, "SingleEffect: inclusion must not be negative")
        total = inclusion.sum(axis=-1, keepdims=True)
        require(np.abs(total - 1.0) < 1e-6, total, "SingleEffect: inclusion must sum to one", "Divide by it.")
        return inclusion / total

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with these natural parameters; those of inclusion up to a constant."""
        mean, precision, log_weight = cls.slab_of(natural)
        largest = log_weight.max(axis=-1, keepdims=True)
        if not np.isfinite(largest).all():
            refuse_improper("SingleEffect", np.isfinite(largest[..., 0]), "one entry must be possible")
        weights = np.exp(log_weight - largest)
        total = weights.sum(axis=-1, keepdims=True)
        return cls._trusted(
            inclusion=weights / total,
            slab_mean=np.broadcast_to(mean, weights.shape),
            slab_precision=np.broadcast_to(precision, weights.shape),
            natural=natural,
            log_partition=(np.log(total) + largest)[..., 0],
        )

    @cached_property
    def log_partition(self) -> Array:
        """Logarithm of the sum over entries of their weights."""
        log_weight = self.slab_of(self.natural).log_weight
        largest = log_weight.max(axis=-1, keepdims=True)
        return (np.log(np.exp(log_weight - largest).sum(axis=-1, keepdims=True)) + largest)[..., 0]

    @property
    def covariance(self) -> Array:
        """Covariance of the entries, shape (..., D, D)."""
        _, x, squares = self.expected_statistics
        return squares[..., None] * np.eye(x.shape[-1]) - x[..., :, None] * x[..., None, :]

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at vectors of shape (..., D); minus infinity unless one entry is not zero."""
        x = as_value(value)
        included = x != 0
        each = np.where(included, self._log_odds + self._slab_log_density(x), 0.0)
        return np.where(included.sum(axis=-1) == 1, each.sum(axis=-1), -np.inf)

    def entropy_about_base(self) -> Array:
        """Return the entropy of the place of the effect plus that of its size; a probability of zero adds nothing."""
        p = self.inclusion
        return (p * slab_entropy(self.slab_precision) - xlogy(p, p)).sum(axis=-1) - 0.5 * LOG_TWO_PI

    def _divergence(self, other: Self) -> Array:
        p = self.inclusion
        with np.errstate(invalid="ignore"):
            labels = np.where(p > 0, p * (self._log_odds - other._log_odds), 0.0)
        return (labels + np.where(p > 0, p * slab_divergence(self, other), 0.0)).sum(axis=-1)

    def mode(self) -> Array:
        """Return the vector of largest density: one entry at its mean."""
        best = (self._log_odds + 0.5 * np.log(self.slab_precision)).argmax(axis=-1)
        chosen = best[..., None] == np.arange(self.slab_mean.shape[-1])
        # the entry differs from the others even if its mean is zero
        return np.where(chosen, np.where(self.slab_mean == 0, _LEAST, self.slab_mean), 0.0)

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return draws of shape size + batch + (D,)."""
        rng = np.random.default_rng(seed)
        shape = draw_shape(size, self.batch_shape)
        edges = self.inclusion.cumsum(axis=-1)
        label = (rng.random(shape)[..., None] * edges[..., -1:] >= edges).sum(axis=-1)
        values = self.slab_mean + rng.standard_normal((*shape, self.slab_mean.shape[-1])) / np.sqrt(
            self.slab_precision
        )
        return np.where(label[..., None] == np.arange(self.slab_mean.shape[-1]), values, 0.0)
