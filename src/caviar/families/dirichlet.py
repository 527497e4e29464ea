"""The Dirichlet distribution of weights that sum to one."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import polygamma, xlogy

from caviar._errors import ImproperError, ParameterError
from caviar._typing import Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape, safe_log
from caviar.families.base.marginals import Ends, Marginals, beta_marginals, matched_beta
from caviar.families.base.parameters import all_positive, read_parameters, refuse_improper, require
from caviar.families.base.transforms import LogRatios, Transform
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import (
    bregman_remainder,
    bregman_remainder_step,
    entropy_remainder,
    expected_log_weights,
    log_beta,
    log_rising_factorial,
    relative_entropy,
    stirling_remainder,
)


@dataclass(frozen=True, eq=False, repr=False)
class Dirichlet(ExponentialFamily):
    r"""Dirichlet distributions of K weights that are not negative and sum to one.

    .. math:: p(x) = \frac{\Gamma(\sum_k \alpha_k)}{\prod_k \Gamma(\alpha_k)} \prod_k x_k^{\alpha_k - 1}, \qquad
              t = (\log x,), \quad \eta = (\alpha,), \quad c = (-1,)

    Parameters
    ----------
    concentration
        Concentrations :math:`\alpha_k > 0`, shape (..., K).

    Raises
    ------
    ParameterError
        If a concentration is not positive, or there is no axis of categories.

    Notes
    -----
    The density is with respect to Lebesgue measure of the first K - 1 weights.

    Examples
    --------
    >>> q = Dirichlet([1.0, 2.0, 5.0])
    >>> q.mean
    array([0.125, 0.25 , 0.625])
    >>> q.mode()
    array([0. , 0.2, 0.8])
    """

    concentration: Array

    statistics: ClassVar[tuple[str, ...]] = ("log_x",)
    transforms: ClassVar[tuple[Transform, ...]] = (LogRatios(),)
    parameter_letters: ClassVar[tuple[str, ...]] = ("k",)

    def __init__(self, concentration: ArrayLike) -> None:
        parameters = read_parameters("Dirichlet", {"concentration": concentration}, (1,))
        array = parameters["concentration"]
        if array.shape[-1] == 0:
            raise ParameterError(
                f"Dirichlet: concentration must have at least one category, got shape {array.shape}."
            )
        require(array > 0, array, "Dirichlet: concentration must be positive")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameter (concentration,)."""
        (concentration,) = natural
        if not all_positive(concentration):
            good = (concentration > 0) & (concentration < np.inf)
            refuse_improper(
                "Dirichlet",
                np.all(good, axis=-1, keepdims=True)[..., 0],
                "every concentration must be positive and finite",
            )
        return cls._trusted(concentration=concentration, natural=natural)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return log x; the logarithm of 0 is taken as that of the smallest positive number."""
        return (safe_log(as_value(value)),)

    @property
    def base_measure(self) -> tuple[float, ...]:
        """Inverse product of the weights."""
        return (-1.0,)

    @cached_property
    def natural(self) -> Statistics:
        """(concentration,)."""
        return (self.concentration,)

    @cached_property
    def total(self) -> Array:
        """Sum of the concentrations, of the batch shape."""
        return np.add.reduce(self.concentration, axis=-1)

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(digamma(concentration) - digamma(total),)."""
        return (expected_log_weights(self.concentration, self.total),)

    def response(self, change: Statistics) -> Statistics:
        (concentration,) = change
        shared = polygamma(1, self.total) * concentration.sum(axis=-1)
        return (polygamma(1, self.concentration) * concentration - shared[..., np.newaxis],)

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        (concentration,) = change
        surplus = concentration - self.mean * concentration.sum(axis=-1, keepdims=True)
        return (surplus / self.total[..., np.newaxis],)

    def covariance_of_value(self) -> Array:
        return self.covariance

    @cached_property
    def log_partition(self) -> Array:
        """Sum of log-gamma(concentration), minus log-gamma(total)."""
        return log_beta(self.concentration, self.total)

    def gain_of_counts(self, counts: Any) -> Array:
        r"""Return what counts add to the log-partition, :math:`A(\alpha + x_n) - A(\alpha)` for each row of them.

        Parameters
        ----------
        counts
            A SciPy sparse array by rows, shape (N, K), in canonical format, for concentrations of shape (K,).

        Notes
        -----
        The cost is that of the entries which are not zero.
        """
        own = log_rising_factorial(self.concentration[counts.indices], counts.data)
        gains = csr_array((own, counts.indices, counts.indptr), shape=counts.shape)
        return gains.sum(axis=1) - log_rising_factorial(self.total, counts.sum(axis=1))

    @property
    def mean(self) -> Array:
        """Concentration over total, shape (..., K)."""
        return self.concentration / self.total[..., np.newaxis]

    @property
    def variance(self) -> Array:
        """Variance of each weight, shape (..., K)."""
        mean = self.mean
        return mean * (1.0 - mean) / (1.0 + self.total[..., np.newaxis])

    @property
    def covariance(self) -> Array:
        """Covariance of the weights, shape (..., K, K)."""
        mean = self.mean
        diagonal = mean[..., np.newaxis] * np.eye(mean.shape[-1])
        products = mean[..., :, np.newaxis] * mean[..., np.newaxis, :]
        return (diagonal - products) / (1.0 + self.total[..., np.newaxis, np.newaxis])

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        others = self.concentration.sum(axis=-1, keepdims=True) - self.concentration
        if others.shape[-1] == 1:
            return [Marginals(self.mean, np.zeros_like(self.mean), self.mean, self.mean)]
        return [beta_marginals(self.concentration, others, self.mean, np.sqrt(self.variance), ends)]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        return matched_beta(own.mean, sd, ends)

    @classmethod
    def of_spread(cls, mean: Array, covariance: Array) -> Self | None:
        if mean.shape[-1] == 1:
            # one share is 1, for any concentration
            return cls(np.ones(mean.shape))
        with np.errstate(divide="ignore"):
            total = (mean * (1.0 - mean)).sum(axis=-1) / np.trace(covariance, axis1=-2, axis2=-1) - 1.0
        is_one = (total > 0) & np.isfinite(total)
        return cls(mean * total[..., None]) if is_one.all() else None

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at weights of shape (..., K); minus infinity where they do not sum to one."""
        x, concentration = np.broadcast_arrays(as_value(value), self.concentration)
        inside = (x >= 0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1.0) < 1e-8)
        positive = x > 0
        weight = np.where(positive, x, 1.0)
        total = self.total[..., np.newaxis]
        interior = -relative_entropy(concentration, total * weight) - np.log(weight)
        edge = xlogy(concentration - 1.0, 0.0) + concentration * (1.0 + np.log(total / concentration))
        terms = np.where(positive, interior, edge) - stirling_remainder(concentration)
        return np.where(inside, terms.sum(axis=-1) + stirling_remainder(self.total), -np.inf)

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure: logarithms that grow, without what cancels."""
        return np.add.reduce(entropy_remainder(self.concentration), axis=-1) - entropy_remainder(self.total)

    def _divergence(self, other: Self) -> Array:
        return dirichlet_divergence(self.concentration, other.concentration)

    def mode(self) -> Array:
        """Return the weights of largest density; the uniform weights where every point has the same.

        Raises
        ------
        ImproperError
            If a concentration is below 1: the density is unbounded at the edge.
        """
        surplus = self.concentration - 1.0
        if (surplus < 0).any():
            raise ImproperError(
                "A Dirichlet distribution has a mode if every concentration is at least 1, "
                f"got {self.concentration.min()}. Use the mean, or a prior with larger concentrations.",
                (surplus >= 0).all(axis=-1),
            )
        total = surplus.sum(axis=-1, keepdims=True)
        if total.all():
            return surplus / total
        flat = total == 0
        return np.where(flat, 1.0 / surplus.shape[-1], surplus / np.where(flat, 1.0, total))

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch + (K,)."""
        shape = draw_shape(size, self.batch_shape) + self.event_shape
        return dirichlet_draws(self.concentration, shape, np.random.default_rng(seed))


def dirichlet_divergence(a: Array, b: Array) -> Array:
    r"""Return the divergence between Dirichlet distributions of concentrations ``a`` and ``b``, shape (..., K).

    .. math:: \sum_k [\log\Gamma(b_k) - \log\Gamma(a_k) - (b_k - a_k)\psi(a_k)] - [\text{same of the totals}]

    The parts :math:`x \log x - x` of the log-gammas make up :math:`b_+ \mathrm{KL}(b/b_+ \,\|\, a/a_+)`, whose terms
    are non-negative; the rest is of the size of the result.
    """
    a, b = np.broadcast_arrays(a, b)
    difference = b - a
    total_a, total_b = a.sum(axis=-1, keepdims=True), b.sum(axis=-1, keepdims=True)
    mismatch = a * (difference.sum(axis=-1, keepdims=True) / total_a) - difference
    shares = relative_entropy(b, a * (total_b / total_a), mismatch)
    # The largest entry and the total are nearly equal when the others are tiny: that difference is taken first.
    leading = np.arange(a.shape[-1]) == a.argmax(axis=-1)[..., np.newaxis]
    remainders = np.where(leading, 0.0, bregman_remainder(a, b))
    difference_of_largest = bregman_remainder_step(
        a[leading].reshape(total_a.shape),
        b[leading].reshape(total_a.shape),
        np.where(leading, 0.0, a).sum(axis=-1, keepdims=True),
        np.where(leading, 0.0, b).sum(axis=-1, keepdims=True),
    )
    return (shares + remainders).sum(axis=-1) + difference_of_largest[..., 0]


def dirichlet_draws(concentration: Array, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Return weights drawn through the logarithms of Gamma variables, which do not underflow at tiny concentrations.

    A weight below the smallest normal number is that: a density is evaluated at the draw, and at 0 it has a pole.
    """
    # Gamma(a) = Gamma(a + 1) U^(1/a)
    log_draws = np.log(generator.standard_gamma(concentration + 1.0, shape))
    log_draws -= generator.standard_exponential(shape) / concentration
    log_draws -= log_draws.max(axis=-1, keepdims=True)
    weights = np.exp(log_draws)
    return np.maximum(weights / weights.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny)
