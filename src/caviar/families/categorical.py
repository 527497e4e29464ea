"""The Categorical distribution of a label."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from caviar._errors import ParameterError
from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, draw_shape
from caviar.families.base.marginals import Ends, Marginals
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import relative_entropy

_NONE = -800.0
"""Logarithm of a number that is zero."""

_LOWEST = -690.0
"""Logarithm below which a share of the largest probability is zero: exp and matrix products are slow below 1e-308."""

_SMALL = 1e-3
"""Entropy below which its digits are those of the small probabilities alone."""


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(ExponentialFamily):
    r"""Categorical distributions of a label 0, ..., K - 1.

    .. math:: P(x = k) = p_k, \qquad
              t = (\text{one-hot } x,), \quad \eta = (\log p,), \quad c = (0,), \quad A = \log \sum_k e^{\eta_k}

    Parameters
    ----------
    probabilities
        Probabilities, shape (..., K), not negative. They must sum to one up to rounding, and are normalised.

    Raises
    ------
    ParameterError
        If a probability is negative, or they do not sum to one.

    Notes
    -----
    A value is an integer label without an axis; ``event_shape`` is (K,), the shape of its one-hot
    statistic. Natural parameters may be minus infinity (probability zero) and need not be normalised.

    Examples
    --------
    >>> q = Categorical([0.5, 0.5, 0.0])
    >>> q.entropy().round(6)
    np.float64(0.693147)
    >>> q.sample(4, seed=0)
    array([1, 0, 0, 0])
    """

    probabilities: Array

    statistics: ClassVar[tuple[str, ...]] = ("x",)
    parameter_letters: ClassVar[tuple[str, ...]] = ("k",)

    def __init__(self, probabilities: ArrayLike) -> None:
        parameters = read_parameters("Categorical", {"probabilities": probabilities}, (1,))
        array = parameters["probabilities"]
        if array.shape[-1] == 0:
            raise ParameterError(
                f"Categorical: probabilities must have at least one category, got shape {array.shape}."
            )
        require(array >= 0, array, "Categorical: probabilities must not be negative")
        total = array.sum(axis=-1, keepdims=True)
        remedy = "Divide them by their sum."
        require(np.abs(total - 1.0) < 1e-6, total, "Categorical: probabilities must sum to one", remedy)
        vars(self).update(probabilities=array / total)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameter (log-probabilities up to a constant,)."""
        (logits,) = natural
        largest = np.maximum.reduce(logits, axis=-1, keepdims=True)
        if not np.logical_and.reduce(np.isfinite(largest), axis=None):
            expectation = "log-probabilities must not be NaN or plus infinity, nor all minus infinity"
            refuse_improper("Categorical", np.isfinite(largest[..., 0]), expectation)
        shifted = logits - largest
        is_unseen = shifted <= _LOWEST
        # in place: memory that is new takes longer than what is done with it
        weights = np.maximum(shifted, _LOWEST, out=shifted)
        np.exp(weights, out=weights)
        np.copyto(weights, 0.0, where=is_unseen)
        total = np.add.reduce(weights, axis=-1, keepdims=True)
        log_total = np.log(total)
        log_partition = (log_total + largest)[..., 0]
        weights /= total
        own = {"natural": natural, "log_partition": log_partition, "_largest": (largest, log_total)}
        return cls._trusted(probabilities=weights, **own)

    @classmethod
    def statistics_of(cls, value: ArrayLike, n_categories: int | None = None) -> Statistics:
        """Return one-hot vectors of shape (..., n_categories); without a number, of as many as the largest label.

        Raises
        ------
        ParameterError
            If a label is not an integer from 0 to n_categories - 1.
        """
        labels = np.asarray(value)
        if n_categories is None:
            n_categories = int(labels.max(initial=0)) + 1
        return (
            (_checked_labels(labels, n_categories)[..., np.newaxis] == np.arange(n_categories)).astype(float),
        )

    @cached_property
    def natural(self) -> Statistics:
        """(log-probabilities,); minus infinity for a probability of zero."""
        with np.errstate(divide="ignore"):
            return (np.log(self.probabilities),)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(probabilities,)."""
        return (self.probabilities,)

    def response(self, change: Statistics) -> Statistics:
        (logits,) = change
        weighted = self.probabilities * logits
        return (weighted - self.probabilities * weighted.sum(axis=-1, keepdims=True),)

    @cached_property
    def log_partition(self) -> Array:
        """Log of the sum of the exponentials of the natural parameters."""
        (logits,) = self.natural
        largest = logits.max(axis=-1, keepdims=True)
        return np.log(np.exp(logits - largest).sum(axis=-1)) + largest[..., 0]

    @cached_property
    def _largest(self) -> tuple[Array, Array]:
        """The largest natural parameter, and minus the logarithm of the largest probability, (..., 1) both."""
        (logits,) = self.natural
        largest = np.maximum.reduce(logits, axis=-1, keepdims=True)
        return largest, -np.log(np.maximum.reduce(self.probabilities, axis=-1, keepdims=True))

    @property
    def mean(self) -> Array:
        """Mean of the one-hot vector: the probabilities."""
        return self.probabilities

    @property
    def variance(self) -> Array:
        """Variance of each entry of the one-hot vector."""
        return self.probabilities * (1.0 - self.probabilities)

    @property
    def covariance(self) -> Array:
        """Covariance of the one-hot vector, shape (..., K, K)."""
        p = self.probabilities
        return p[..., np.newaxis] * np.eye(p.shape[-1]) - p[..., :, np.newaxis] * p[..., np.newaxis, :]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return Marginals(own.mean, sd)

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-probability of integer labels, which broadcast with the batch."""
        (logits,) = self.natural
        labels = np.asarray(value)
        shape = np.broadcast_shapes(labels.shape, self.batch_shape)
        labels = np.broadcast_to(_checked_labels(labels, logits.shape[-1]), shape)[..., np.newaxis]
        logits = np.broadcast_to(logits, shape + logits.shape[-1:])
        return np.take_along_axis(logits, labels, axis=-1)[..., 0] - self.log_partition

    def entropy_about_base(self) -> Array:
        """Return the entropy; a probability of zero adds nothing."""
        if "natural" not in vars(self):
            return _entropy(self.probabilities)
        # no logarithm is taken but that of the largest probability of each
        p, (logits,), (largest, of_largest) = self.probabilities, self.natural, self._largest
        shifted = logits - largest
        np.maximum(shifted, _NONE, out=shifted)
        entropy = of_largest[..., 0] - np.einsum("...k,...k->...", p, shifted)
        is_small = entropy < _SMALL
        if is_small.any():
            entropy = np.array(entropy)
            entropy[is_small] = _entropy(p[is_small])
        return entropy

    def _divergence(self, other: Self) -> Array:
        return relative_entropy(self.probabilities, other.probabilities).sum(axis=-1)

    def mode(self) -> AnyArray:
        """Return the label of largest probability, the first of several."""
        return self.probabilities.argmax(axis=-1)

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return integer labels of shape size + batch."""
        uniform = np.random.default_rng(seed).random(draw_shape(size, self.batch_shape))
        edges = self.probabilities.cumsum(axis=-1)
        # a label of probability zero has an empty interval, also at the upper end
        return (uniform[..., np.newaxis] * edges[..., -1:] >= edges).sum(axis=-1)


def _entropy(p: Array) -> Array:
    dominant = p > 0.5
    others = np.where(dominant, 0.0, p).sum(axis=-1, keepdims=True)
    # the logarithm of a probability close to one is lost in its last digit, but not in those of the others
    return np.where(dominant, -p * np.log1p(-np.minimum(others, 0.5)), entr(p)).sum(axis=-1)


def _checked_labels(labels: AnyArray, n_categories: int) -> AnyArray:
    """Return labels as integers after checking their range."""
    integers = labels.astype(np.int64)
    require(
        (integers == labels) & (integers >= 0) & (integers < n_categories),
        labels,
        f"Categorical: labels must be integers from 0 to {n_categories - 1}",
    )
    return integers
