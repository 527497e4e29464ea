r"""A Normal restricted to the half line x >= 0, in units of its standard deviation, without cancellation in the tails.

The location l is the mean before the restriction. Far below zero the restricted density is nearly exponential with rate
-l, and everything that is written with :math:`l + \varphi(l)/\Phi(l)` has lost its digits; ratios of successive moments
have a continued fraction there (Gautschi 1977, of the iterated integrals of the error function).
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, log_ndtr

from .._typing import Array

_FRACTION_BELOW = -2.0
"""Location below which the continued fraction is used; above it at most a digit cancels."""

_FRACTION_DEPTH = 120
"""Levels of the continued fraction that give all digits at that location."""

_LOG_ROOT_HALF_PI = 0.5 * float(np.log(0.5 * np.pi))
_LOG_ROOT_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


def hazard(location: Array) -> Array:
    r"""Return :math:`\varphi(l) / \Phi(l)`, the density of the restricted distribution at zero; 0 far above zero.

    Examples
    --------
    >>> hazard(np.array([-1e6, 0.0, 1e6])).round(6)
    array([1.00000e+06, 7.97885e-01, 0.00000e+00])
    """
    return np.sqrt(2.0 / np.pi) / erfcx(-location / np.sqrt(2.0))


def log_tail_ratio(location: Array) -> Array:
    r"""Return :math:`\log [\Phi(l) / \varphi(l)]`, minus the logarithm of :func:`hazard`; finite also far above zero.

    Examples
    --------
    >>> log_tail_ratio(np.array([-1e6, 0.0, 10.0])).round(6)
    array([-13.815511,   0.225791,  50.918939])
    """
    below = np.minimum(location, 0.0)
    above = np.maximum(location, 0.0)
    lower = _LOG_ROOT_HALF_PI + np.log(erfcx(-below / np.sqrt(2.0)))
    upper = log_ndtr(above) + 0.5 * above * above + _LOG_ROOT_TWO_PI
    return np.where(location < 0, lower, upper)


def log_between(lower: Array, upper: Array) -> Array:
    r"""Return :math:`\log [\Phi(u) - \Phi(l)]`, the log-probability that a standard Normal lies between two ends.

    Examples
    --------
    >>> log_between(np.array([0.0, 40.0]), np.array([np.inf, 41.0])).round(4).tolist()
    [-0.6931, -804.6084]
    """
    flipped = lower > 0
    low, high = np.where(flipped, -upper, lower), np.where(flipped, -lower, upper)
    top = log_ndtr(high)
    with np.errstate(divide="ignore"):
        return top + np.log(-np.expm1(np.minimum(log_ndtr(low) - top, 0.0)))


def moment_ratios(location: Array) -> tuple[Array, ...]:
    r"""Return :math:`\mathrm{E} x^k / \mathrm{E} x^{k-1}` for k = 1 to 4, each accurate relative to itself.

    .. math:: c_k = \frac{k}{-l + c_{k+1}}, \qquad \mathrm{E} x^{k+1} = k\, \mathrm{E} x^{k-1} + l\, \mathrm{E} x^k

    Parameters
    ----------
    location
        Any shape.

    Examples
    --------
    >>> [float(ratio.round(9)) for ratio in moment_ratios(np.array(-1e6))]
    [1e-06, 2e-06, 3e-06, 4e-06]
    """
    far = location < _FRACTION_BELOW
    near = np.where(far, 0.0, location)
    first = near + hazard(near)
    second = 1.0 + near * first
    third = 2.0 * first + near * second
    fourth = 3.0 * second + near * third
    ratios = tuple(map(np.asarray, (first, second / first, third / second, fourth / third)))
    if not far.any():
        return ratios
    # only of the entries that need it: a hundred levels cost more than everything above
    distance = -np.asarray(location)[far]
    fraction = np.zeros(distance.shape)
    for k in range(_FRACTION_DEPTH, 0, -1):
        fraction = k / (distance + fraction)
        if k <= len(ratios):
            ratios[k - 1][far] = fraction
    return ratios
