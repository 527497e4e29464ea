r"""Integrals of :math:`e^{\eta_1 x + \eta_2 x^2}` over intervals, and the moments of what they normalise.

By Gauss-Legendre quadrature about the mode, over the part of the interval where the integrand is at least e^-40 of its
largest value. There it is smooth: 64 nodes have all digits, also where the interval is narrow or far in a tail,
and differences of distribution functions have none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._typing import AnyArray, Array

UNBOUNDED = 1e30
"""Size from which on an end of an interval is none."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_DEPTH = 40.0
"""Nats below the largest value of the integrand where it ends."""


class IntervalMoments(NamedTuple):
    """The logarithm of an integral, and moments of the density that it normalises.

    Attributes
    ----------
    log_integral
        Of the whole interval.
    mean
        Of the density.
    central
        Its second, third and fourth central moments.
    """

    log_integral: Array
    mean: Array
    central: tuple[Array, Array, Array]


def interval_moments(linear: Array, quadratic: Array, lower: Array, upper: Array) -> IntervalMoments:
    r"""Return the integrals of :math:`e^{\eta_1 x + \eta_2 x^2}`, :math:`\eta_2 < 0`, from lower to upper.

    An interval of one point has the value of the integrand there, and no width.

    Parameters
    ----------
    linear, quadratic
        :math:`\eta_1, \eta_2`.
    lower, upper
        Ends; one of size :data:`UNBOUNDED` or more is no end. All broadcast.

    Examples
    --------
    >>> found = interval_moments(np.zeros(2), np.full(2, -0.5), np.array([-1e30, 3.0]), np.array([1e30, 3.0]))
    >>> found.log_integral.round(6), found.mean.round(6)
    (array([ 0.918939, -4.5     ]), array([0., 3.]))
    """
    linear, quadratic, lower, upper = np.broadcast_arrays(linear, quadratic, lower, upper)
    is_point = lower >= upper
    at_point = (linear + quadratic * lower) * lower
    quadratic = np.where(is_point, -0.5, quadratic)
    unit = 1.0 / np.sqrt(-2.0 * quadratic)
    location = linear * unit**2
    mode = np.clip(location, lower, upper)
    # in units of the width, from the mode: the exponent falls by slope * t + t^2 / 2 on either side
    slope = (mode - location) / unit
    below = _reach(-slope, (mode - lower) / unit)
    above = _reach(slope, (upper - mode) / unit)
    middle, half = 0.5 * (above - below), 0.5 * (above + below)
    t = middle[..., None] + half[..., None] * _NODES
    weights = _WEIGHTS * np.exp(-(slope[..., None] + 0.5 * t) * t)
    total = weights.sum(axis=-1)
    shares = weights / total[..., None]
    mean = (shares * t).sum(axis=-1)
    deviation = t - mean[..., None]
    # products take far less time than powers
    squared = deviation * deviation
    of_two = shares * squared
    moments = [
        own.sum(axis=-1) * unit**k for k, own in ((2, of_two), (3, of_two * deviation), (4, of_two * squared))
    ]
    height = (linear + quadratic * mode) * mode
    with np.errstate(divide="ignore"):
        log_integral = height + np.log(total * half * unit)
    at = np.where(is_point, at_point, log_integral)
    second, third, fourth = (np.where(is_point, 0.0, own) for own in moments)
    return IntervalMoments(at, np.where(is_point, lower, mode + unit * mean), (second, third, fourth))


def _reach(slope: Array, length: AnyArray) -> Array:
    """Return how far an interval of a length goes, until slope * t + t^2 / 2 is as large as the depth."""
    slope = np.maximum(slope, 0.0)
    return np.minimum(length, 2.0 * _DEPTH / (slope + np.sqrt(slope**2 + 2.0 * _DEPTH)))
