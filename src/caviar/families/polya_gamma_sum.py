"""The Polya-Gamma distributions PG(b, c) of any shape b: sums of b numbers PG(1, c)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.families.polya_gamma import PolyaGamma
from caviar.numerics.cached import cached_property
from caviar.numerics.polya_gamma import draw_polya_gamma_sum

_ROUNDING = 1e-3
"""A natural parameter above zero by no more than this is taken for zero that was rounded."""


@dataclass(frozen=True, eq=False, repr=False)
class PolyaGammaSum(ExponentialFamily):
    r"""Polya-Gamma distributions PG(b, c) of a positive number, measured against PG(b, 0).

    .. math:: \eta = (-\tfrac12 b c^2, b), \qquad A = -b \log\cosh\tfrac c2

    The shape b may be the expectation of an unknown number, and the bound of a likelihood is linear in it. So the
    statistics are those of one of the b numbers, PG(1, c): its mean, and minus its divergence from PG(1, 0).

    .. math:: \mathrm{E} t = \left( \tfrac{1}{2c} \tanh\tfrac c2,\; \tfrac c4 \tanh\tfrac c2 - \log\cosh\tfrac c2
              \right), \qquad A = \langle \eta, \mathrm{E} t \rangle

    Parameters
    ----------
    shape
        :math:`b \ge 0`; 0 is the number 0.
    tilt
        :math:`c \ge 0`.

    Raises
    ------
    ParameterError
        If a shape or a tilt is negative.

    Notes
    -----
    The log-partition is homogeneous, so the entropy about the base measure is zero: what a factor adds to an ELBO
    is in the terms, where the second statistic is multiplied by the shape.
    Polson, Scott and Windle (2013), "Bayesian inference for logistic models using Polya-Gamma latent variables".

    Examples
    --------
    >>> q = PolyaGammaSum([1.0, 20.0], [2.0, 2.0])
    >>> q.mean.round(6)
    array([0.190399, 3.807971])
    >>> q.entropy().round(6)
    array([-0.052984, -1.059675])
    """

    shape: Array
    tilt: Array

    statistics: ClassVar[tuple[str, ...]] = ("x", "relative_entropy")
    parameter_letters: ClassVar[tuple[str, ...]] = ("", "")

    def __init__(self, shape: ArrayLike, tilt: ArrayLike) -> None:
        parameters = read_parameters("PolyaGammaSum", {"shape": shape, "tilt": tilt}, (0, 0))
        for name, value in parameters.items():
            require(value >= 0, value, f"PolyaGammaSum: {name} must not be negative")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameters (-shape tilt^2 / 2, shape)."""
        half_square, shape = np.broadcast_arrays(*natural)
        good = (half_square <= _ROUNDING) & (half_square > -np.inf) & (shape >= 0) & (shape < np.inf)
        if not np.all(good):
            rule = "the shape must not be negative, and minus half the square of the tilt at most 0"
            refuse_improper("PolyaGammaSum", good, rule)
        each = -np.divide(np.maximum(-half_square, 0.0), shape, out=np.zeros(shape.shape), where=shape > 0)
        one = PolyaGamma.from_natural((each,))
        return cls._trusted(shape=shape, tilt=one.tilt, one=one)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return x, and 0, because the second statistic does not depend on the value."""
        x = as_value(value)
        return x, np.zeros_like(x)

    @cached_property
    def one(self) -> PolyaGamma:
        """The distribution PG(1, c) of each of the numbers that are added up."""
        return PolyaGamma(self.tilt)

    @cached_property
    def natural(self) -> Statistics:
        """(-shape tilt^2 / 2, shape)."""
        return self.shape * self.one.natural[0], self.shape

    @cached_property
    def expected_statistics(self) -> Statistics:
        """Mean of PG(1, c), and minus its divergence from PG(1, 0)."""
        return self.one.mean, self.one.entropy_about_base()

    def response(self, change: Statistics) -> Statistics:
        shape = np.where(self.shape > 0, self.shape, 1.0)
        slope = np.where(self.shape > 0, self.one.variance / shape, 0.0)
        own = self.one.natural[0]
        moved = slope * (change[0] - own * change[1])
        return moved, -own * moved

    def response_of_value(self, change: Statistics) -> tuple[Array, ...]:
        """Return by how much the mean changes at this shape."""
        return (self.shape * self.response(change)[0],)

    @cached_property
    def log_partition(self) -> Array:
        """Minus shape times log cosh(tilt / 2)."""
        return self.shape * self.one.log_partition

    @property
    def mean(self) -> Array:
        """Product of the shape and the mean of PG(1, tilt)."""
        return self.shape * self.one.mean

    @property
    def variance(self) -> Array:
        """Product of the shape and the variance of PG(1, tilt)."""
        return self.shape * self.one.variance

    def log_density(self, value: ArrayLike) -> Array:
        """Return the logarithm of the density about PG(shape, 0) at x; minus infinity below zero."""
        x = as_value(value)
        return np.where(x >= 0, self.one.natural[0] * x - self.log_partition, -np.inf)

    def entropy(self) -> Array:
        """Return the entropy about PG(shape, 0), which is not positive."""
        return self.shape * self.one.entropy()

    def entropy_about_base(self) -> Array:
        """Return 0: the second statistic is the entropy of one number."""
        return np.zeros(self.batch_shape)

    def _divergence(self, other: Self) -> Array:
        return np.where(self.shape == other.shape, self.shape * self.one.kl(other.one), np.inf)

    def mode(self) -> Array:
        """Return 0, where the density about PG(shape, 0) is largest."""
        return np.zeros(self.batch_shape)

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch: sums of gamma variables, the last of which replaces the tail."""
        shape = draw_shape(size, self.batch_shape)
        shapes, tilts = np.broadcast_to(self.shape, shape), np.broadcast_to(self.tilt, shape)
        return draw_polya_gamma_sum(shapes, tilts, np.random.default_rng(seed))
