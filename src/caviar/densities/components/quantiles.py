"""Distribution functions of one-dimensional mixtures, and their inverses, for many mixtures at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ..._typing import AnyArray, Array
from .student_t import log_kernel, log_normaliser, lower_tail, lower_tail_quantile

_ROUNDING = 4 * float(np.finfo(np.float64).eps)
_MOST_STEPS = 8 * 66
"""Every eighth step halves the bracket in the order of floating-point numbers, of which there are 2^64."""

_FARTHEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Univariate:
    """A batch of mixtures in one dimension; components are the first axis.

    Attributes
    ----------
    weights, locations, scales
        Shape (K, B) each, or what broadcasts to it.
    df
        Degrees of freedom, the same; None for Normal components.

    Examples
    --------
    >>> half = np.array([[0.5], [0.5]])
    >>> Univariate(half, np.array([[-9.0], [9.0]]), np.ones((2, 1)), None).quantile(np.array([0.25])).round(6)
    array([-9.])
    """

    weights: Array
    locations: Array
    scales: Array
    df: Array | None

    def cdf(self, x: Array) -> Array:
        """Return the probability of values up to x, (B,) -> (B,); accurate relative to itself in the lower tail."""
        return np.minimum((self.weights * self._tails(x)).sum(axis=0), 1.0)

    def quantile(self, probability: Array) -> Array:
        """Return the x below which a probability lies, (B,) -> (B,); infinite for 0 and 1."""
        above = probability > 0.5
        return np.where(
            above,
            self.upper_quantile(np.where(above, 1.0 - probability, 0.5)),
            self.lower_quantile(np.where(above, 0.5, probability)),
        )

    def upper_quantile(self, mass: Array) -> Array:
        """Return the x above which a mass of at most 1/2 lies, (B,) -> (B,)."""
        return -Univariate(self.weights, -self.locations, self.scales, self.df).lower_quantile(mass)

    def lower_quantile(self, mass: Array) -> Array:
        """Return the x below which a mass of at most 1/2 lies, (B,) -> (B,).

        Newton's method on the logarithm of the tail, kept inside a bracket. Where its steps do not shrink, the bracket
        is halved, every other time in the order of floating-point numbers: that takes 64 steps from any scale to any
        other.
        """
        low, high = self._bracket(mass)
        beyond = low == -_FARTHEST
        if beyond.any():
            # very few degrees of freedom: the quantile may lie farther out than any number
            beyond &= self.cdf(low) > mass
        x, stride = 0.5 * low + 0.5 * high, np.full(mass.shape, np.inf)
        active = np.flatnonzero((mass > 0) & (low < high) & ~beyond)
        for step in range(_MOST_STEPS):
            if not len(active):
                break
            own, at = self._of(active), x[active]
            tail = own.cdf(at)
            below = tail < mass[active]
            low[active[below]], high[active[~below]] = at[below], at[~below]
            with np.errstate(all="ignore"):
                newton = at - tail * np.log(tail / mass[active]) / own._density(at)
            narrow, wide = low[active], high[active]
            length = np.abs(newton - at)
            bisect = ~((newton > narrow) & (newton < wide) & (length < 0.5 * stride[active])) | (
                step % 8 == 7
            )
            middle = 0.5 * narrow + 0.5 * wide if step % 8 in (1, 4) else _between(narrow, wide)
            x[active] = np.where(bisect, middle, newton)
            stride[active] = np.where(bisect, np.inf, length)
            close = length <= _ROUNDING * np.abs(at)
            exact = np.abs(tail - mass[active]) <= _ROUNDING * mass[active]
            x[active[exact | close]] = at[exact | close]
            active = active[~(exact | close | (_between(narrow, wide) == narrow))]
        return np.where((mass > 0) & ~beyond, x, -np.inf)

    def _of(self, chosen: AnyArray) -> Univariate:
        """Return some mixtures of the batch."""

        def take(array: Array) -> Array:
            return array[:, chosen] if array.shape[1] > 1 else array

        df = None if self.df is None else take(self.df)
        return Univariate(take(self.weights), take(self.locations), take(self.scales), df)

    def _tails(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            t = (x - self.locations) / self.scales
        return ndtr(t) if self.df is None else lower_tail(t, self.df)

    def _density(self, x: Array) -> Array:
        t = (x - self.locations) / self.scales
        if self.df is None:
            kernels = np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi)
        else:
            one = np.array(1.0)
            kernels = np.exp(log_normaliser(self.df, one) + log_kernel(np.abs(t), self.df, one))
        return (self.weights / self.scales * kernels).sum(axis=0)

    def _bracket(self, mass: Array) -> tuple[Array, Array]:
        """Return bounds of the quantiles: the least and largest of the components' own."""
        unit = ndtri(mass) if self.df is None else lower_tail_quantile(mass, self.df)
        margin = 1e-8 * (1.0 + np.abs(unit))
        used = self.weights > 0
        with np.errstate(over="ignore", invalid="ignore"):
            lowest = self.locations + self.scales * (unit - margin)
            highest = self.locations + self.scales * (unit + margin)
            low = np.where(used, lowest, np.inf).min(axis=0)
            high = np.where(used, highest, -np.inf).max(axis=0)
            low, high = np.clip(low, -_FARTHEST, _FARTHEST), np.clip(high, -_FARTHEST, _FARTHEST)
            # what a library says of extreme tails is checked before it is relied on
            low = np.where(self.cdf(low) <= mass, low, -_FARTHEST)
            high = np.where(self.cdf(high) >= mass, high, _FARTHEST)
        return low, high


def _keys(x: Array) -> AnyArray:
    """Return whole numbers in the order of floating-point numbers, neighbours one apart."""
    bits = (x + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & np.int64(2**63 - 1)))


def _between(low: Array, high: Array) -> Array:
    """Return the number halfway in the order of floating-point numbers, of two finite ones; ``low`` if adjacent."""
    a, b = _keys(low), _keys(high)
    middle = (a >> 1) + (b >> 1) + (a & b & 1)
    return np.copysign(np.abs(middle).view(np.float64), middle)
