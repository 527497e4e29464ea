"""The Polya-Gamma distributions PG(1, c) of a positive number."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caviar._typing import Array, Statistics
from caviar.families.base.bregman import NEAR, near_divergence
from caviar.families.base.family import ExponentialFamily, Seed, Size, as_value, draw_shape
from caviar.families.base.parameters import read_parameters, refuse_improper, require
from caviar.numerics.cached import cached_property
from caviar.numerics.polya_gamma import draw_polya_gamma, small_divergence, tanh_excess

_FAR = 300.0
"""Half tilts from here on have the hyperbolic tangent 1."""
_TINY = 1e-100
"""Tilts below have the mean 1/4; their squares are not normal numbers."""
_NEAR_ZERO = 0.5
"""Half tilts up to here have their entropy from a series."""
_ROUNDING = 1e-3
"""A natural parameter above zero by no more than this is taken for zero that was rounded."""


@dataclass(frozen=True, eq=False, repr=False)
class PolyaGamma(ExponentialFamily):
    r"""Polya-Gamma distributions PG(1, c) of a positive number, measured against PG(1, 0).

    .. math:: \frac{dp}{d\mathrm{PG}(1, 0)}(x) = \cosh(\tfrac c2)\, e^{-c^2 x / 2}, \qquad
              t = (x,), \quad \eta = (-\tfrac12 c^2,), \quad c = (0,), \quad A = -\log\cosh\tfrac c2

    Parameters
    ----------
    tilt
        :math:`c \ge 0`; the larger, the closer to zero. The mean is :math:`\tanh(c/2) / (2c)`, 1/4 at c = 0.

    Raises
    ------
    ParameterError
        If a tilt is negative.

    Notes
    -----
    PG(1, 0) has a density that is an alternating series only. It is the base measure here, so that density, entropy
    and mode are those about PG(1, 0): the entropy is minus the divergence from it, and the mode is 0.
    Polson, Scott and Windle (2013), "Bayesian inference for logistic models using Polya-Gamma latent variables".

    Examples
    --------
    >>> q = PolyaGamma([0.0, 2.0, 1e6])
    >>> q.mean
    array([2.50000000e-01, 1.90398539e-01, 5.00000000e-07])
    >>> q.kl(PolyaGamma(0.0)).round(6)
    array([0.00000000e+00, 5.29840000e-02, 2.49999307e+05])
    """

    tilt: Array

    statistics: ClassVar[tuple[str, ...]] = ("x",)
    parameter_letters: ClassVar[tuple[str, ...]] = ("",)

    def __init__(self, tilt: ArrayLike) -> None:
        parameters = read_parameters("PolyaGamma", {"tilt": tilt}, (0,))
        require(parameters["tilt"] >= 0, parameters["tilt"], "PolyaGamma: tilt must not be negative")
        vars(self).update(parameters)

    @classmethod
    def from_natural(cls, natural: Statistics) -> Self:
        """Return the distributions with natural parameter (-tilt^2 / 2,)."""
        (half_square,) = natural
        largest, smallest = half_square.max(initial=-1.0), half_square.min(initial=0.0)
        if not (largest <= _ROUNDING and smallest > -np.inf):
            good = (half_square <= _ROUNDING) & (half_square > -np.inf)
            refuse_improper(
                "PolyaGamma", good, "minus half the square of the tilt must be finite and at most 0"
            )
        if largest > 0.0:
            half_square = np.minimum(half_square, 0.0)
        half = np.sqrt(-0.5 * half_square)
        return cls._trusted(tilt=2.0 * half, natural=(half_square,), _half=half)

    @classmethod
    def statistics_of(cls, value: ArrayLike) -> Statistics:
        """Return x itself."""
        return (as_value(value),)

    @cached_property
    def natural(self) -> Statistics:
        """(-tilt^2 / 2,); minus infinity where that is not a number."""
        with np.errstate(over="ignore"):
            return (-0.5 * self.tilt * self.tilt,)

    @cached_property
    def _half(self) -> Array:
        return 0.5 * self.tilt

    @cached_property
    def expected_statistics(self) -> Statistics:
        """(mean,)."""
        return (self.mean,)

    @cached_property
    def _is_far(self) -> bool:
        """Whether some tilt is so large that its hyperbolic cosine is not a number."""
        return bool(self._half.max(initial=0.0) >= _FAR)

    @cached_property
    def _excess_and_tanh(self) -> tuple[Array, Array]:
        """Excess cosh u - 1, and tanh u, where u is half the tilt, up to ``_FAR``; to all digits however small u is."""
        growth = np.expm1(np.minimum(self._half, _FAR) if self._is_far else self._half)
        decay = growth / (1.0 + growth)
        # e^u - 1 and 1 - e^-u: their product is 2 cosh u - 2, and their sum 2 sinh u
        product = growth * decay
        growth += decay
        growth /= 2.0 + product
        product *= 0.5
        return product, growth

    def response(self, change: Statistics) -> Statistics:
        return (self.variance * change[0],)

    @cached_property
    def log_partition(self) -> Array:
        """Minus log cosh(tilt / 2)."""
        near = -np.log1p(self._excess_and_tanh[0])
        return np.minimum(near, np.log(2.0) - self._half) if self._is_far else near

    @cached_property
    def mean(self) -> Array:
        """Ratio tanh(tilt / 2) / (2 tilt); 1/4 at tilt 0."""
        tanh = self._excess_and_tanh[1]
        if self.tilt.min(initial=1.0) > _TINY:
            return tanh / (2.0 * self.tilt)
        return np.divide(tanh, 2.0 * self.tilt, out=np.full_like(tanh, 0.25), where=self.tilt > _TINY)

    @property
    def variance(self) -> Array:
        """Variance (sinh c - c) / (4 c^3 cosh^2(c / 2)); 1/24 at c = 0."""
        return tanh_excess(self._half) / 16.0

    def log_density(self, value: ArrayLike) -> Array:
        """Return the logarithm of the density about PG(1, 0) at x; minus infinity below zero."""
        x = as_value(value)
        return np.where(x >= 0, self.natural[0] * x - self.log_partition, -np.inf)

    def entropy(self) -> Array:
        r"""Return the entropy about PG(1, 0), :math:`\tfrac c4 \tanh\tfrac c2 - \log\cosh\tfrac c2 \le 0`."""
        # the two terms of the first are alike where the tilt is small
        entropy = np.atleast_1d(self.log_partition - self.natural[0] * self.mean)
        near = np.atleast_1d(self._half < _NEAR_ZERO)
        entropy[near] = -small_divergence(np.atleast_1d(self._half)[near])
        # the square of a large tilt may be no number, and its hyperbolic tangent is 1
        far = np.atleast_1d(self._half > _FAR)
        entropy[far] = np.log(2.0) - 0.5 * np.atleast_1d(self._half)[far]
        return entropy.reshape(np.shape(self.tilt))

    def entropy_about_base(self) -> Array:
        """Return the entropy, which is about the base measure, with the digits of the terms that it is added to."""
        return self.log_partition - self.natural[0] * self.mean

    def _divergence(self, other: Self) -> Array:
        mine, theirs = self._half, other._half
        # log cosh u = u + log1p(exp(-2 u)) - log 2, of which the first part meets its like
        by = theirs - mine
        growth = np.where(mine > 0, np.tanh(mine) / np.where(mine > 0, mine, 1.0), 1.0)
        tails = np.log1p(np.exp(-2.0 * mine)) - np.log1p(np.exp(-2.0 * theirs))
        direct = tails + by * (0.5 * growth * (mine + theirs) - 1.0)
        is_near = direct < NEAR
        if not is_near.any():
            return direct
        start = self.natural[0]
        step = np.where(is_near, 2.0 * (mine - theirs) * (mine + theirs), 0.0)

        def curvature(s: float) -> Array:
            return step * step * tanh_excess(np.sqrt(np.maximum(-0.5 * (start + s * step), 0.0))) / 16.0

        return np.where(is_near, near_divergence(curvature), direct)

    def mode(self) -> Array:
        """Return 0, where the density about PG(1, 0) is largest."""
        return np.zeros(self.batch_shape)

    def sample(self, size: Size = None, seed: Seed = None) -> Array:
        """Return draws of shape size + batch, exact for every tilt."""
        rng = np.random.default_rng(seed)
        return draw_polya_gamma(np.broadcast_to(self.tilt, draw_shape(size, self.batch_shape)), rng)
