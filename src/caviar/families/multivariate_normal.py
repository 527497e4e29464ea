"""The Normal distribution of a vector."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families.base.factored import Factored
from caviar.families.base.family import LOG_TWO_PI, ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.marginals import Ends, Marginals, normal_marginals
from caviar.families.base.parameters import all_finite, precision_of_vector, read_parameters, refuse_improper
from caviar.families.base.roots import NormalRoots
from caviar.families.base.transforms import Transform, Unconstrained
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import ratio_excess
from caviar.numerics.linalg import (
    cholesky,
    inverse,
    inverse_from_factor,
    outer,
    positive_definite,
    relative_spectrum,
    times_vector,
)


@dataclass(frozen=True, eq=False, repr=False)
class MultivariateNormal(Factored, ExponentialFamily):
    r"""Normal distributions of a vector in :math:`R^D`.

    .. math:: p(x) = |P / 2\pi|^{1/2}\; e^{-(x - m)' P (x - m) / 2}, \qquad
              t = (x,\, x x'), \quad \eta = (P m,\, -P/2), \quad c = (0, 0)

    Parameters
    ----------
    mean
        Mean m, shape (..., D).
    precision
        Precision matrix P, the inverse covariance, shape (..., D, D), positive definite.

    Raises
    ------
    ParameterError
        If a precision is not symmetric and positive definite, or the shapes do not fit.

    Examples
    --------
    >>> q = MultivariateNormal([0.0, 1.0], [[2.0, 0.0], [0.0, 4.0]])
    >>> q.expected_statistics[1]
    array([[0.5 , 0.  ],
           [0.  , 1.25]])
    """

    mean: Array
    precision: Array

    factored: ClassVar[str] = "precision"
    statistics: ClassVar[tuple[str, ...]] = ("x", "xx")
    transforms: ClassVar[tuple[Transform, ...]] = (Unconstrained(),)
    parameter_letters: ClassVar[tuple[str, ...]] = ("d", "dd")

    def __init__(self, mean: ArrayLike, precision: ArrayLike) -> None:
        parameters = read_parameters("MultivariateNormal", {"mean": mean, "precision": precision}, (1, 2))
        matrix = precision_of_vector("MultivariateNormal", "precision", parameters)
        vars(self).update(mean=parameters["mean"], precision=matrix)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of x and xx': (D,) and (D, D)."""
        return event_shape, event_shape * 2

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (P m, -P / 2)."""
        linear, quadratic = natural
        precision = -2.0 * quadratic
        try:
            lower = cholesky(precision)
        except np.linalg.LinAlgError:
            refuse_improper(
                "MultivariateNormal", positive_definite(precision), "the precision must be positive definite"
            )
        inverse_lower = inverse(lower, is_lower=True)
        with np.errstate(over="ignore", invalid="ignore"):  # a precision next to 0: refused below
            covariance = inverse_from_factor(inverse_lower)
            mean = times_vector(covariance, linear)
        if not all_finite(mean):
            good = positive_definite(precision) & np.isfinite(mean).all(axis=-1)
            refuse_improper("MultivariateNormal", good, "the precision and the mean must be finite")
        if precision.ndim != mean.ndim + 1 or precision.shape[:-1] != mean.shape:
            batch = mean.shape + mean.shape[-1:]
            precision, covariance, lower, inverse_lower = (
                np.broadcast_to(m, batch) for m in (precision, covariance, lower, inverse_lower)
            )
        return cls._trusted(
            mean=mean,
            precision=precision,
            natural=natural,
            covariance=covariance,
            _lower=lower,
            _inverse_lower=inverse_lower,
        )

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return x and xx'."""
        x = as_value(value)
        return x, outer(x)

    @classmethod
    def statistic_of(cls, name: str, value: ArrayLike) -> Array:
        """Return x or xx'."""
        x = as_value(value)
        return x if name == "x" else outer(x)

    @cached_property
    def natural(self) -> Statistics:
        """(P m, -P / 2)."""
        return times_vector(self.precision, self.mean), -0.5 * self.precision

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(mean, covariance + mean mean')."""
        return self.mean, self.covariance + outer(self.mean)

    def expected_statistic(self, name: str) -> Array:
        """Return the mean, or covariance + mean mean'."""
        return self.mean if name == "x" else self.expected_statistics[1]

    def summed_statistic(self, name: str, weights: Array | None) -> Array:
        """Return a sum over the first batch axis; of second moments one matrix product, where the covariance is one."""
        is_shared = self.mean.ndim == 2 and self.precision.strides[0] == 0
        if name == "x" or not is_shared:
            return super().summed_statistic(name, weights)
        n_rows = len(self.mean)
        weighted = self.mean if weights is None else self.mean * weights[:, np.newaxis]
        total = float(n_rows) if weights is None else weights.sum()
        return (
            total * self.covariance[0] + weighted.T @ self.mean if n_rows else np.zeros(self.event_shape * 2)
        )

    def response(self, change: Statistics) -> Statistics:
        linear, quadratic = change
        mean = times_vector(self.covariance, linear + 2.0 * times_vector(quadratic, self.mean))
        products = mean[..., :, np.newaxis] * self.mean[..., np.newaxis, :]
        spread = 2.0 * self.covariance @ quadratic @ self.covariance
        return mean, spread + products + products.swapaxes(-1, -2)

    def roots(self) -> NormalRoots:
        return NormalRoots(self.mean, self._inverse_lower.swapaxes(-1, -2))

    def covariance_of_value(self) -> Array:
        return np.broadcast_to(self.covariance, self.mean.shape + self.mean.shape[-1:])

    @cached_property
    def log_partition(self) -> Array:
        """Half of m' P m - log|P / 2 pi|."""
        constant = self.mean.shape[-1] * LOG_TWO_PI
        return 0.5 * (np.add.reduce(self.natural[0] * self.mean, axis=-1) - self._log_determinant + constant)

    @cached_property
    def covariance(self) -> Array:
        """Inverse of the precision, shape (..., D, D)."""
        return inverse_from_factor(self._inverse_lower)

    def _whiten(self, deviation: Array) -> Array:
        """Return L' d, whose squared length is d' P d."""
        return times_vector(self._lower.swapaxes(-1, -2), deviation)

    def location_moments(self) -> tuple[Array, Array]:
        return self.mean, self.covariance

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        sd = np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))
        return [normal_marginals(self.mean, sd, ends)]

    @classmethod
    def of_spread(cls, mean: Array, covariance: Array) -> Self | None:
        return cls(mean, inverse(covariance)) if positive_definite(covariance).all() else None

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at x of shape (..., D)."""
        distance = (self._whiten(as_value(value) - self.mean) ** 2).sum(axis=-1)
        return 0.5 * (self._log_determinant - self.mean.shape[-1] * LOG_TWO_PI - distance)

    def entropy_about_base(self) -> Array:
        """Return half of log|2 pi e covariance|."""
        return 0.5 * (self.mean.shape[-1] * (1.0 + LOG_TWO_PI) - self._log_determinant)

    def _divergence(self, other: Self) -> Array:
        spectrum, excess = relative_spectrum(
            self.precision, self._inverse_lower, other.precision, other._lower
        )
        distance = (other._whiten(self.mean - other.mean) ** 2).sum(axis=-1)
        return 0.5 * (ratio_excess(spectrum, np.ones_like(spectrum), excess).sum(axis=-1) + distance)

    def mode(self) -> Array:
        """Return the mean."""
        return self.mean

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch + (D,)."""
        noise = np.random.default_rng(seed).standard_normal(draw_shape(size, self.mean.shape))
        return self.mean + times_vector(self._inverse_lower.swapaxes(-1, -2), noise)

    def translate(self, delta: ArrayLike) -> Self:
        """Return the distribution of x + delta."""
        return self._at(self.mean + as_value(delta))
