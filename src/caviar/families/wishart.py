"""The Wishart distribution of a positive definite matrix."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaincinv, gammaln, polygamma

from caviar._errors import ImproperError, ParameterError
from caviar._typing import AnyArray, Array, Statistics
from caviar.families.base.factored import Factored
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.marginals import Ends, Marginals, matched_gamma, normal_marginals, on_the_diagonal
from caviar.families.base.parameters import (
    all_finite,
    all_positive,
    read_parameters,
    refuse_improper,
    require,
    require_positive_definite,
)
from caviar.families.base.roots import MatrixRoots
from caviar.families.base.transforms import LogCholesky, Transform
from caviar.numerics.cached import cached_property
from caviar.numerics.gamma_function import (
    bregman_remainder,
    entropy_remainder,
    ratio_excess,
    relative_entropy,
    stirling_remainder,
    trigamma_remainder,
)
from caviar.numerics.linalg import (
    MANY,
    are_many,
    cholesky,
    have_eigenvalues_above,
    inverse,
    inverse_from_factor,
    inverse_of_positive,
    log_determinant,
    log_size,
    positive_definite,
    relative_spectrum,
    singular_values,
)

_LOG_TWO = math.log(2.0)
_LOG_PI = math.log(math.pi)
_LOG_SMALLEST = float(np.log(np.finfo(np.float64).smallest_subnormal))
_TINY = float(np.finfo(np.float64).tiny)


@functools.lru_cache(maxsize=64)
def _steps(size: int) -> Array:
    """Return 0, 1, ..., D - 1."""
    return np.arange(float(size))


@functools.lru_cache(maxsize=64)
def _below_diagonal(size: int) -> AnyArray:
    """Return which entries of a matrix lie below its diagonal, (D, D)."""
    return np.tri(size, k=-1, dtype=bool)


@dataclass(frozen=True, eq=False, repr=False)
class Wishart(Factored, ExponentialFamily):
    r"""Wishart distributions of a positive definite D x D matrix, usually a precision.

    .. math:: p(X) \propto |X|^{(\nu - D - 1)/2}\; e^{-\mathrm{tr}(B X)/2}, \qquad
              t = (\log|X|,\, X), \quad \eta = (\nu/2,\, -B/2), \quad c = (-(D + 1)/2,\, 0)

    Parameters
    ----------
    df
        Degrees of freedom :math:`\nu > D - 1`.
    inverse_scale
        Inverse scale B, shape (..., D, D), positive definite; the mean is :math:`\nu B^{-1}`.

    Raises
    ------
    ParameterError
        If there are too few degrees of freedom, or an inverse scale is not symmetric and positive definite.

    Examples
    --------
    >>> q = Wishart(5.0, [[2.0, 0.0], [0.0, 4.0]])
    >>> q.mean
    array([[2.5 , 0.  ],
           [0.  , 1.25]])
    >>> q.mode(smallest_variance=1.5)
    array([[0.66666667, 0.        ],
           [0.        , 0.5       ]])
    """

    df: Array
    inverse_scale: Array

    factored: ClassVar[str] = "inverse_scale"
    statistics: ClassVar[tuple[str, ...]] = ("log_det", "x")
    transforms: ClassVar[tuple[Transform, ...]] = (LogCholesky(),)
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "dd")

    def __init__(self, df: ArrayLike, inverse_scale: ArrayLike) -> None:
        parameters = read_parameters("Wishart", {"df": df, "inverse_scale": inverse_scale}, (0, 2))
        matrix = require_positive_definite("Wishart", "inverse_scale", parameters["inverse_scale"])
        size = matrix.shape[-1]
        expectation = f"Wishart: df must be greater than D - 1 = {size - 1} for {size} x {size} matrices"
        require(parameters["df"] > size - 1, parameters["df"], expectation)
        vars(self).update(df=parameters["df"], inverse_scale=matrix)

    @classmethod
    def statistic_shapes(cls, event_shape: tuple[int, ...] = ()) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of log|X| and X: () and (D, D)."""
        return (), event_shape

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (df / 2, -inverse_scale / 2)."""
        return cls._checked(2.0 * natural[0], -2.0 * natural[1], "Wishart", natural=natural)

    @classmethod
    def _checked(cls, df: Array, inverse_scale: Array, owner: str, **cached: Statistics) -> Self:
        """Return the distributions with these parameters, or refuse them in the name of ``owner``."""
        size = inverse_scale.shape[-1]
        try:
            lower = cholesky(inverse_scale)
        except np.linalg.LinAlgError:
            refuse_improper(
                owner, positive_definite(inverse_scale), "the inverse scale must be positive definite"
            )
        log_det = log_determinant(lower)
        if not (all_positive(df - (size - 1)) and all_finite(log_det)):
            good = (df > size - 1) & (df < np.inf) & np.isfinite(log_det)
            expectation = f"df must be greater than {size - 1} and finite, and the inverse scale finite"
            refuse_improper(owner, good, expectation)
        if df.shape != log_det.shape:
            df, log_det = np.broadcast_arrays(df, log_det)
            inverse_scale, lower = (
                np.broadcast_to(m, (*df.shape, size, size)) for m in (inverse_scale, lower)
            )
        return cls._trusted(
            df=df, inverse_scale=inverse_scale, _lower=lower, _log_determinant=log_det, **cached
        )

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return log|X| and X; no eigenvalue counts as less than the smallest positive number."""
        x = as_value(value)
        lowest = x.shape[-1] * _LOG_SMALLEST
        return np.maximum(log_size(x), lowest), x

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(D, D)."""
        return self.inverse_scale.shape[-2:]

    @property
    def base_measure(self) -> tuple[float, ...]:
        """|X|^(-(D + 1) / 2)."""
        return (-0.5 * (self.inverse_scale.shape[-1] + 1), 0.0)

    @cached_property
    def natural(self) -> Statistics:
        """(df / 2, -inverse_scale / 2)."""
        return 0.5 * self.df, -0.5 * self.inverse_scale

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(sum of digammas + D log 2 - log|B|, df B^-1)."""
        # a fit asks for all that these are made of: one property after the other takes longer than the arithmetic
        own, df, size = vars(self), self.df, self.inverse_scale.shape[-1]
        halves = own["_halves"] = 0.5 * (df[..., np.newaxis] - _steps(size))
        digammas = own["_digammas"] = digamma(halves)
        inverse_lower = own["_inverse_lower"] = inverse(self._lower, is_lower=True)
        scale = own["_scale"] = inverse_from_factor(inverse_lower)
        mean = own["mean"] = df[..., np.newaxis, np.newaxis] * scale
        return np.add.reduce(digammas, axis=-1) + (size * _LOG_TWO - self._log_determinant), mean

    def response(self, change: Statistics) -> Statistics:
        half_df, half_scale = change
        product = self._scale @ half_scale
        df = half_df[..., np.newaxis, np.newaxis]
        log_det = polygamma(1, self._halves).sum(axis=-1) * half_df
        log_det = log_det + 2.0 * np.trace(product, axis1=-2, axis2=-1)
        return log_det, 2.0 * (
            df * self._scale + self.df[..., np.newaxis, np.newaxis] * product @ self._scale
        )

    def roots(self) -> MatrixRoots:
        r"""Return square roots of the covariances of log|X| and X in closed form.

        With :math:`X = F W F'` and :math:`F F' = B^{-1}` the entries of W on and above its diagonal are uncorrelated,
        with variances :math:`2 \nu` and :math:`\nu`, and :math:`\mathrm{Cov}(\log|X|, W_{ii}) = 2`.
        """
        size, df = self.inverse_scale.shape[-1], self.df[:, None]
        i, j = np.triu_indices(size)
        lower = self._inverse_lower
        products = lower[:, i, :, None] * lower[:, j, None, :]
        is_square = i == j
        scales = np.where(is_square, np.sqrt(0.5 * df), np.sqrt(df))[..., None, None]
        of_entries = (scales * (products + products.swapaxes(-1, -2))).reshape(len(df), len(i), size * size)
        roots = np.zeros((len(df), 1 + size * size, len(i) + 1))
        roots[:, 1:, :-1] = of_entries.swapaxes(1, 2)
        roots[:, 0, :-1] = np.where(is_square, np.sqrt(2.0 / df), 0.0)
        # what is left of the variance of log|X|: each term is positive
        rest = trigamma_remainder(self._halves) + 2.0 * _steps(size) / (df * (df - _steps(size)))
        roots[:, 0, -1] = np.sqrt(rest.sum(axis=1))
        of_values = np.concatenate([of_entries, np.zeros((len(df), 1, size * size))], axis=1)
        return MatrixRoots(list(roots), list(of_values))

    def covariance_of_value(self) -> Array:
        scale, entries = self._scale, self.inverse_scale.shape[-1] ** 2
        paired = scale[..., :, None, :, None] * scale[..., None, :, None, :]
        both = paired + paired.swapaxes(-1, -2)
        return (self.df[..., None, None, None, None] * both).reshape(*self.batch_shape, entries, entries)

    @cached_property
    def log_partition(self) -> Array:
        """Log of the multivariate gamma function of df / 2, minus df / 2 times log|B / 2|."""
        size = self.inverse_scale.shape[-1]
        gammas = np.add.reduce(gammaln(self._halves), axis=-1) + 0.25 * size * (size - 1) * _LOG_PI
        return gammas - 0.5 * self.df * (self._log_determinant - size * _LOG_TWO)

    @cached_property
    def mean(self) -> Array:
        """Mean df B^-1, shape (..., D, D)."""
        return self.df[..., np.newaxis, np.newaxis] * self._scale

    @property
    def variance(self) -> Array:
        """Variance of each entry, shape (..., D, D)."""
        scale = self._scale
        diagonal = np.diagonal(scale, axis1=-2, axis2=-1)
        products = diagonal[..., :, np.newaxis] * diagonal[..., np.newaxis, :]
        return self.df[..., np.newaxis, np.newaxis] * (scale**2 + products)

    @cached_property
    def _halves(self) -> Array:
        """(df - j) / 2 for j = 0, ..., D - 1: the arguments of the gamma functions."""
        return 0.5 * (self.df[..., np.newaxis] - _steps(self.inverse_scale.shape[-1]))

    @cached_property
    def _digammas(self) -> Array:
        return digamma(self._halves)

    @cached_property
    def _scale(self) -> Array:
        return inverse_from_factor(self._inverse_lower)

    def inverse_moments(self) -> tuple[Array, Array]:
        surplus = (self.df - self.inverse_scale.shape[-1] - 1)[..., np.newaxis]
        with np.errstate(divide="ignore"):
            variances = np.diagonal(self.inverse_scale, axis1=-2, axis2=-1) / np.maximum(surplus, 0.0)
        return variances, variances

    def log_moments(self) -> tuple[Array, Array]:
        # 1 / (X^-1)_ii is Gamma
        shape = 0.5 * (self.df - self.inverse_scale.shape[-1] + 1)[..., np.newaxis]
        rate = 0.5 * np.diagonal(self.inverse_scale, axis1=-2, axis2=-1)
        return digamma(shape) - np.log(rate), np.broadcast_to(polygamma(1, shape), rate.shape)

    @classmethod
    def inverse_of(cls, value: ArrayLike) -> tuple[Array, Array]:
        variances = np.array(np.diagonal(inverse(as_value(value)), axis1=-2, axis2=-1))
        return variances, variances

    def entry_marginals(self, ends: Ends) -> list[Marginals]:
        # on the diagonal X_ii / (B^-1)_ii is chi-squared with df degrees of freedom
        diagonal, df = np.eye(self.mean.shape[-1], dtype=bool), self.df[..., None, None]
        scale = self.mean / df
        lower, upper = (np.where(diagonal, 2 * gammaincinv(df / 2, end) * scale, np.nan) for end in ends)
        return [Marginals(self.mean, np.sqrt(self.variance), lower, upper)]

    @classmethod
    def matched_marginals(cls, own: Marginals, sd: Array, ends: Ends) -> Marginals:
        of_size = matched_gamma(np.abs(own.mean), sd, ends)
        return on_the_diagonal(of_size, normal_marginals(own.mean, sd, ends))

    @classmethod
    def of_spread(cls, mean: Array, covariance: Array) -> Self | None:
        size = mean.shape[-1]
        variances = np.diagonal(covariance, axis1=-2, axis2=-1)[..., :: size + 1]
        with np.errstate(divide="ignore"):
            df = 2.0 * (np.diagonal(mean, axis1=-2, axis2=-1) ** 2).sum(axis=-1) / variances.sum(axis=-1)
        is_one = (df > size - 1) & np.isfinite(df)
        return cls(df, df[..., None, None] * inverse(mean)) if is_one.all() else None

    def log_density(self, value: ArrayLike) -> Array:
        """Return the log-density at X of shape (..., D, D); minus infinity where X is not positive definite."""
        x = as_value(value)
        inside = positive_definite(x)
        lower_x = cholesky(np.where(inside[..., np.newaxis, np.newaxis], x, np.eye(x.shape[-1])))
        # Half the eigenvalues of B X, each completed with one gamma function so that nothing large is subtracted.
        halves, size = self._halves, x.shape[-1]
        spectrum = 0.5 * singular_values(self._lower.swapaxes(-1, -2) @ lower_x) ** 2
        terms = (
            0.5 * _steps(size) * np.log(spectrum)
            - relative_entropy(halves, spectrum)
            - stirling_remainder(halves)
        )
        constant = 0.5 * (size + 1) * log_determinant(lower_x) + 0.25 * size * (size - 1) * _LOG_PI
        return np.where(inside, terms.sum(axis=-1) - constant, -np.inf)

    def entropy_about_base(self) -> Array:
        """Return the entropy with respect to the base measure, which depends on the degrees of freedom alone."""
        size = self.inverse_scale.shape[-1]
        halves, steps = self._halves, _steps(size)
        terms = entropy_remainder(halves) - 0.5 * steps * (self._digammas - 1.0)
        return np.add.reduce(terms, axis=-1) + 0.25 * size * (size - 1) * _LOG_PI

    def _divergence(self, other: Self) -> Array:
        # Each pair of gamma functions is completed with one eigenvalue of B^-1 B'; what is left of the powers of the
        # determinants is j/2 (lambda - 1 - log lambda). Every term is non-negative.
        spectrum, excess = relative_spectrum(
            self.inverse_scale, self._inverse_lower, other.inverse_scale, other._lower
        )
        a, b = np.broadcast_arrays(self._halves, other._halves)
        half_gap = 0.5 * (self.df - other.df)[..., np.newaxis]
        matched = relative_entropy(b, a * spectrum, half_gap + a * excess)
        rest = 0.5 * _steps(a.shape[-1]) * ratio_excess(spectrum, np.ones_like(spectrum), excess)
        return (bregman_remainder(a, b) + matched + rest).sum(axis=-1)

    def mode(self, smallest_variance: ArrayLike | None = None) -> Array:
        r"""Return the matrix of largest density, :math:`(\nu - D - 1) B^{-1}`.

        Parameters
        ----------
        smallest_variance
            If given, the density is maximised over matrices with :math:`X^{-1} \succeq` this multiple of the
            identity; of the batch shape or scalar. In the eigenbasis of B,
            :math:`\lambda_i = \min((\nu - D - 1) / b_i,\, 1 / \text{smallest variance})`, the exact maximum.

        Raises
        ------
        ImproperError
            If df < D + 1: the density is unbounded at singular matrices.
        """
        size = self.inverse_scale.shape[-1]
        surplus = self.df - (size + 1)
        if (surplus < 0).any():
            raise ImproperError(
                f"A Wishart distribution of {size} x {size} matrices has a mode if df is at least {size + 1}, "
                f"got {self.df.min()}. Use the mean, or a prior with more degrees of freedom.",
                surplus >= 0,
            )
        if smallest_variance is None:
            return surplus[..., np.newaxis, np.newaxis] * self._scale
        smallest = as_value(smallest_variance)
        if not (smallest >= 0).all():
            raise ParameterError(f"smallest_variance must not be negative, got {smallest_variance}.")
        return self.mode_of_natural(self.natural, smallest)

    @staticmethod
    def mode_of_natural(natural: Statistics, smallest_variance: Array) -> Array:
        """Return the mode among matrices whose inverse has no eigenvalue below ``smallest_variance``.

        In the eigenbasis of the inverse scale each eigenvalue is the smaller of its unrestricted value and the bound.
        With such a bound there is a mode for a singular inverse scale too, so this takes natural parameters.
        """
        inverse_scale = -2.0 * natural[1]
        surplus = 2.0 * natural[0] - (inverse_scale.shape[-1] + 1)
        if inverse_scale.size < MANY or inverse_scale.shape[-1] == 1 or not are_many(inverse_scale):
            return _mode_with_bound(inverse_scale, surplus, smallest_variance)
        # where the bound is not reached an inverse is enough
        free = have_eigenvalues_above(inverse_scale, smallest_variance * surplus)
        if not free.all():
            found = np.empty(inverse_scale.shape)
            bounds = np.broadcast_to(smallest_variance, free.shape)[~free]
            found[~free] = _mode_with_bound(inverse_scale[~free], surplus[~free], bounds)
            found[free] = surplus[free][:, None, None] * inverse_of_positive(inverse_scale[free])
            return found
        return surplus[..., None, None] * inverse_of_positive(inverse_scale)

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch + (D, D)."""
        factor = self._sample_factor(draw_shape(size, self.batch_shape), np.random.default_rng(seed))
        return factor @ factor.swapaxes(-1, -2)

    def _sample_factor(self, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
        """Return square roots F of draws F F' by Bartlett's decomposition."""
        size = self.inverse_scale.shape[-1]
        triangle = np.where(_below_diagonal(size), generator.standard_normal((*shape, size, size)), 0.0)
        chi_square = 2.0 * generator.standard_gamma(self._halves, (*shape, size))
        diagonal = np.sqrt(np.maximum(chi_square, np.finfo(np.float64).tiny))
        triangle[..., np.arange(size), np.arange(size)] = diagonal
        return self._inverse_lower.swapaxes(-1, -2) @ triangle


def _mode_with_bound(inverse_scale: Array, surplus: Array, smallest_variance: Array) -> Array:
    """Return the mode by the eigenvalues of the inverse scale."""
    values, vectors = np.linalg.eigh(inverse_scale)
    clipped = np.maximum(values, (smallest_variance * surplus)[..., np.newaxis])
    if 0.0 in clipped:
        # no data and no bound reached: every value is as good, the largest allowed is finite
        unbounded = clipped == 0
        largest = 1.0 / np.maximum(smallest_variance, _TINY)[..., np.newaxis]
        ratio = np.where(unbounded, largest, surplus[..., np.newaxis] / np.where(unbounded, 1.0, clipped))
    else:
        ratio = surplus[..., np.newaxis] / clipped
    scaled = vectors * ratio[..., np.newaxis, :]
    return scaled @ vectors.swapaxes(-1, -2)
