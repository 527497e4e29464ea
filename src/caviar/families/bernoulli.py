"""The Bernoulli distribution of a binary value."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, expit, logit

from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.marginals import Ends, Marginals
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import relative_entropy


@dataclass(frozen=True, eq=False, repr=False)
class Bernoulli(ExponentialFamily):
    r"""Bernoulli distributions of a value 0 or 1.

    .. math:: P(x = 1) = p, \qquad
              t = (x,), \quad \eta = (\log\tfrac{p}{1 - p},), \quad c = (0,), \quad A = \log(1 + e^\eta)

    Parameters
    ----------
    probability
        Probability p of a one, from 0 to 1.

    Raises
    ------
    ParameterError
        If a probability is outside [0, 1].

    Notes
    -----
    The natural parameter is infinite at a probability of exactly 0 or 1; density, entropy and divergence are right
    there too.

    Examples
    --------
    >>> q = Bernoulli([0.25, 1.0])
    >>> q.entropy().round(6)
    array([0.562335, 0.      ])
    >>> q.mode()
    array([0, 1])
    """

    probability: Array

    statistics: ClassVar[tuple[str, ...]] = ("x",)
    parameter_letters: ClassVar[tuple[str, ...]] = ("",)

    def __init__(self, probability: ArrayLike) -> None:
        parameters = read_parameters("Bernoulli", {"probability": probability}, (0,))
        value = parameters["probability"]
        require((value >= 0) & (value <= 1), value, "Bernoulli: probability must lie between 0 and 1")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameter (log-odds,)."""
        (log_odds,) = natural
        probability = expit(log_odds)
        if np.logical_or.reduce(np.isnan(probability), axis=None):
            refuse_improper("Bernoulli", ~np.isnan(probability), "the log-odds must not be NaN")
        return cls._trusted(probability=probability, natural=natural, complement=expit(-log_odds))

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return x itself."""
        return (as_value(value),)

    @cached_property
    def complement(self) -> Array:
        """Probability of a zero."""
        return 1.0 - self.probability

    @cached_property
    def natural(self) -> Statistics:
        """(log-odds,); infinite at probabilities 0 and 1."""
        return (logit(self.probability),)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(probability,)."""
        return (self.probability,)

    def response(self, change: Statistics) -> Statistics:
        return (self.variance * change[0],)

    @cached_property
    def log_partition(self) -> Array:
        """Minus the log-probability of a zero: log(1 + e^eta)."""
        return np.logaddexp(0.0, self.natural[0])

    def __getitem__(self, index: Any) -> Self:
        """Return the part of the batch at ``index``; log-odds that the probability has rounded away are kept."""
        part = super().__getitem__(index)
        for name in ("natural", "complement"):
            if name in vars(self):
                whole = self.natural[0] if name == "natural" else self.complement
                rows = np.arange(whole.size).reshape(whole.shape)[index]
                kept = whole.ravel()[rows]
                vars(part)[name] = (kept,) if name == "natural" else kept
        return part

    @property
    def mean(self) -> Array:
        """Probability of a one."""
        return self.probability

    @property
    def variance(self) -> Array:
        """Variance p (1 - p)."""
        return self.probability * self.complement

    def location_moments(self) -> tuple[Array, Array]:
        return self.mean, self.variance

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return Marginals(own.mean, sd)

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-probability of 0 or 1; minus infinity for any other value."""
        x = as_value(value)
        (log_odds,) = self.natural
        ones, zeros = -np.logaddexp(0.0, -log_odds), -np.logaddexp(0.0, log_odds)
        return np.where(x == 1, ones, np.where(x == 0, zeros, -np.inf))

    def entropy(self) -> Array:
        """Return the entropy; 0 at probabilities 0 and 1."""
        lesser = np.minimum(self.probability, self.complement)
        return entr(lesser) - (1.0 - lesser) * np.log1p(-lesser)

    def _divergence(self, other: Self) -> Array:
        ones = relative_entropy(self.probability, other.probability)
        return ones + relative_entropy(self.complement, other.complement)

    def mode(self) -> AnyArray:
        """Return the likelier of 0 and 1; 0 if they are equally likely."""
        return (self.probability > 0.5).astype(np.int64)

    def sample(self, size: Size = None, seed: Seed = None) -> AnyArray:
        """Return zeros and ones of shape size + batch."""
        uniform = np.random.default_rng(seed).random(draw_shape(size, self.batch_shape))
        return (uniform < self.probability).astype(np.int64)
