"""The distribution of a vector each of whose entries is zero or Normal."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, expit, logit, rel_entr

from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import LOG_TWO_PI, Seed, Size, as_value, draw_shape
from caviar.families.base.parameters import require
from caviar.families.base.sparse_vectors import SparseVector, slab_divergence, slab_entropy
from caviar.numerics.cached import cached_property


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SpikeSlab(SparseVector):
    r"""Distributions of a vector b in :math:`R^D` of independent entries, each zero or Normal.

    .. math:: \gamma_j \sim \mathrm{Bernoulli}(p_j), \quad b_j \mid \gamma_j = 1 \sim N(m_j, P_j^{-1}), \qquad
              t = (\gamma_j,\, b_j,\, b_j^2), \quad
              \eta = (\mathrm{logit}\, p_j + \tfrac12 \log P_j - \tfrac12 P_j m_j^2,\; P_j m_j,\; -\tfrac12 P_j)

    Parameters
    ----------
    inclusion
        Probability p that an entry is not zero, shape (..., D), between 0 and 1.
    slab_mean, slab_precision
        Mean and precision of each entry if it is not zero, shape (..., D).

    Raises
    ------
    ParameterError
        If a probability is outside [0, 1], or a precision is not positive.

    Notes
    -----
    Source: Carbonetto and Stephens, "Scalable variational inference for Bayesian variable selection in regression"
    (Bayesian Analysis 2012), section 3.

    Examples
    --------
    >>> q = SpikeSlab([0.9, 0.1], [2.0, 1.0], [4.0, 4.0])
    >>> q.variance.round(3)
    array([0.585, 0.115])
    """

    @staticmethod
    def _checked(inclusion: Array) -> Array:
        require(
            (inclusion >= 0) & (inclusion <= 1), inclusion, "SpikeSlab: inclusion must lie between 0 and 1"
        )
        return inclusion

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with these natural parameters."""
        mean, precision, log_odds = cls.slab_of(natural)
        return cls._trusted(
            inclusion=expit(log_odds),
            slab_mean=np.broadcast_to(mean, log_odds.shape),
            slab_precision=np.broadcast_to(precision, log_odds.shape),
            natural=natural,
            _log_odds=log_odds,
        )

    @cached_property
    def _log_odds(self) -> Array:
        return logit(self.inclusion)

    @staticmethod
    def _total(changes: Array) -> Array:
        return changes

    @cached_property
    def log_partition(self) -> Array:
        """Sum over entries of log(1 + the weight of an entry that is not zero)."""
        return np.logaddexp(0.0, self._log_odds).sum(axis=-1)

    @property
    def covariance(self) -> Array:
        """Covariance of the entries, shape (..., D, D), a diagonal matrix."""
        return self.variance[..., None] * np.eye(self.slab_mean.shape[-1])

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at vectors of shape (..., D)."""
        x = as_value(value)
        normal = self._slab_log_density(x)
        one, zero = -np.logaddexp(0.0, -self._log_odds), -np.logaddexp(0.0, self._log_odds)
        return np.where(x != 0, one + normal, zero).sum(axis=-1)

    def entropy_about_base(self) -> Array:
        """Return the entropy of which entries are zero plus the expected entropy of the others."""
        of_inclusion = entr(self.inclusion) + entr(expit(-self._log_odds))
        entropy = (of_inclusion + self.inclusion * slab_entropy(self.slab_precision)).sum(axis=-1)
        return entropy - 0.5 * LOG_TWO_PI * self.inclusion.sum(axis=-1)

    def _divergence(self, other: Self) -> Array:
        p, complement = self.inclusion, expit(-self._log_odds)
        labels = rel_entr(p, other.inclusion) + rel_entr(complement, expit(-other._log_odds))
        return (labels + np.where(p > 0, p * slab_divergence(self, other), 0.0)).sum(axis=-1)

    def mode(self) -> Array:
        """Return the vector of largest density, each entry zero or at its mean."""
        normal = 0.5 * (np.log(self.slab_precision) - LOG_TWO_PI)
        return np.where(self._log_odds + normal > 0, self.slab_mean, 0.0)

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return draws of shape size + batch + (D,)."""
        rng = np.random.default_rng(seed)
        shape = draw_shape(size, self.slab_mean.shape)
        values = self.slab_mean + rng.standard_normal(shape) / np.sqrt(self.slab_precision)
        return np.where(rng.random(shape) < self.inclusion, values, 0.0)
