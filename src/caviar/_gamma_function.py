r"""The log-gamma function where differences of it matter.

Log-partitions, entropies and divergences of the Gamma, Wishart and Dirichlet families are differences of
log-gammas that are many orders of magnitude larger than their result. Here each is written with Stirling's series,

.. math:: \log\Gamma(x) = x \log x - x + s(x), \qquad
          s(x) = -\tfrac12 \log x + \tfrac12 \log 2\pi + R(x), \qquad R(x) = \frac{1}{12x} - \frac{1}{360x^3} + \dots

so that a family can combine the large parts :math:`x \log x - x` by hand and add up what is left.
"""

import math

import numpy as np
from scipy.special import digamma, gammaln, rel_entr

from caviar._typing import Array

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)

_SERIES_FROM = 20.0
"""From here on five terms of Stirling's series are exact to the last digit."""

_STIRLING = ((1, 1 / 12), (3, -1 / 360), (5, 1 / 1260), (7, -1 / 1680), (9, 1 / 1188))
"""Powers n and coefficients of R(x) = sum of coefficient * x^-n."""

_TINIEST, _HUGEST = np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).max
"""Where the ratio of two floats overflows, its logarithm is negligible beside it."""

_LARGE = 1e4
"""Up to here log-gammas can be subtracted without losing more than twelve digits after the point."""


def ratio_excess(numerator: Array, denominator: Array, difference: Array | None = None) -> Array:
    r"""Return :math:`\rho - 1 - \log\rho \ge 0` for the ratio :math:`\rho` of two positive numbers.

    Accurate relative to itself, also where the ratio is 1 up to a few units in the last place.

    Parameters
    ----------
    numerator, denominator
        Positive, any shapes that broadcast.
    difference
        ``numerator - denominator`` if it is known more accurately than by subtraction.

    Examples
    --------
    >>> float(ratio_excess(np.array(1.0 + 2.0**-40), np.array(1.0)) / 2.0**-81)
    0.9999999999993937
    """
    if difference is None:
        difference = numerator - denominator
    with np.errstate(over="ignore"):
        r = difference / denominator
        ratio = numerator / denominator
    near = np.abs(r) < 0.3
    r_near = np.where(near, r, 0.0)
    s = r_near / (2.0 + r_near)
    square = s * s
    # log(1 + r) = 2 atanh(s), hence r - log(1 + r) = r s - 2 s^3 (1/3 + s^2/5 + ...)
    tail = np.zeros_like(s)
    for odd in range(23, 1, -2):
        tail = tail * square + 1.0 / odd
    far = r - np.log(np.clip(ratio, _TINIEST, _HUGEST))
    return np.where(near, s * (r_near - 2.0 * square * tail), far)


def relative_entropy(x: Array, y: Array, difference: Array | None = None) -> Array:
    r"""Return :math:`x \log(x/y) - x + y \ge 0`, elementwise.

    Zero where ``x == y``, also at 0; ``y`` where ``x`` is 0; infinite where only ``y`` is 0.

    Parameters
    ----------
    x, y
        Not negative, any shapes that broadcast.
    difference
        ``y - x`` if it is known more accurately than by subtraction.

    Examples
    --------
    >>> relative_entropy(np.array([0.0, 0.5, 0.5]), np.array([0.25, 0.5, 0.0]))
    array([0.25, 0.  ,  inf])
    """
    if difference is None:
        difference = y - x
    near = np.abs(difference) < 0.3 * x
    ratio = ratio_excess(np.where(near, y, 1.0), np.where(near, x, 1.0), np.where(near, difference, 0.0))
    return np.where(near, x * ratio, rel_entr(x, y) + (y - x))


def stirling_remainder(x: Array) -> Array:
    r"""Return :math:`s(x) = \log\Gamma(x) - x \log x + x` for positive ``x``.

    Examples
    --------
    >>> stirling_remainder(np.array([1.0, 1e8])).round(6)
    array([ 1.      , -8.291402])
    """
    large = x >= _SERIES_FROM
    small_x = np.where(large, 1.0, x)
    large_x = np.where(large, x, _SERIES_FROM)
    small = gammaln(small_x) - small_x * np.log(small_x) + small_x
    series = sum(c * large_x**-n for n, c in reversed(_STIRLING))
    return np.where(large, _HALF_LOG_TWO_PI - 0.5 * np.log(large_x) + series, small)


def entropy_remainder(x: Array) -> Array:
    r"""Return :math:`\log\Gamma(x) - x \psi(x) + x` for positive ``x``.

    It grows like a logarithm although its terms grow like :math:`x \log x`.

    Examples
    --------
    >>> entropy_remainder(np.array([1.0, 1e8])).round(6)
    array([ 1.577216, -7.791402])
    """
    large = x >= _SERIES_FROM
    small_x = np.where(large, 1.0, x)
    large_x = np.where(large, x, _SERIES_FROM)
    small = gammaln(small_x) - small_x * digamma(small_x) + small_x
    series = sum(c * (n + 1) * large_x**-n for n, c in reversed(_STIRLING))
    return np.where(large, _HALF_LOG_TWO_PI + 0.5 - 0.5 * np.log(large_x) + series, small)


def bregman_remainder(a: Array, b: Array) -> Array:
    r"""Return the Bregman divergence of :math:`s(x)`, the part of log-gamma beyond :math:`x \log x - x`.

    .. math:: \log\Gamma(b) - \log\Gamma(a) - (b - a) \psi(a) - [b \log(b/a) - b + a] \ge 0

    Accurate relative to itself for any positive arguments, close or far apart.

    Parameters
    ----------
    a, b
        Positive, of one shape.

    Notes
    -----
    Arguments below 20 are first moved up by the recurrence :math:`\log\Gamma(x) = \log\Gamma(x + 1) - \log x`; each
    step gives the non-negative :func:`ratio_excess` of its arguments.

    Examples
    --------
    >>> bregman_remainder(np.array([1e8, 0.5]), np.array([1e8, 0.25])).round(6)
    array([0.      , 0.148067])
    """
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    small = np.minimum(a, b) < _SERIES_FROM
    shift = np.where(small, _SERIES_FROM, 0.0)
    total = _series_remainder(a + shift, b + shift, b - a)
    if small.any():
        total = np.array(total)
        total[small] += _recurrence_terms(a[small], b[small])
    return total


def _series_remainder(a: Array, b: Array, difference: Array) -> Array:
    """Return :func:`bregman_remainder` for arguments of at least 20, from Stirling's series."""
    p, q = 1.0 / a, 1.0 / b
    total = np.zeros_like(p)
    for n, coefficient in reversed(_STIRLING[:4]):
        # b^-n - a^-n + n (b - a) a^-(n+1) = (b - a)^2 p q sum_j (n - j) p^(n-j) q^j, every term positive
        total = total + coefficient * sum((n - j) * p ** (n - j) * q**j for j in range(n))
    return 0.5 * ratio_excess(b, a, difference) + difference**2 * p * q * total


def _recurrence_terms(a: Array, b: Array) -> Array:
    """Return what 20 steps of the recurrence add to :func:`bregman_remainder`; ``a`` and ``b`` have shape (n,)."""
    steps = np.arange(_SERIES_FROM)[:, np.newaxis]
    terms = ratio_excess(b + steps, a + steps, np.broadcast_to(b - a, (steps.size, a.size))).sum(axis=0)
    m = _SERIES_FROM
    # [(b+m) log((b+m)/(a+m))] - [b log(b/a)]: by difference of small numbers, or with the large a taken out
    near = relative_entropy(b + m, a + m, a - b) - relative_entropy(b, a, a - b)
    far = b * (np.log1p(m / b) - np.log1p(m / a)) + m * np.log((b + m) / (a + m))
    return terms + np.where(a > 4.0 * b, far, near)


def log_beta(concentration: Array, total: Array) -> Array:
    r"""Return :math:`\sum_k \log\Gamma(\alpha_k) - \log\Gamma(\sum_k \alpha_k)` over the last axis.

    Parameters
    ----------
    concentration
        Positive, shape (..., K).
    total
        Its sum over the last axis, shape (...).

    Examples
    --------
    >>> float(log_beta(np.array([1e8, 1.0]), np.array(1e8 + 1.0)))  # the Beta function of (n, 1) is 1/n
    -18.420680743952367
    """
    if (total < _LARGE).all():
        return np.add.reduce(gammaln(concentration), axis=-1) - gammaln(total)
    total_ = total[..., np.newaxis]
    dominant = concentration > 0.5 * total_
    others = np.add.reduce(np.where(dominant, 0.0, concentration), axis=-1)[..., np.newaxis]
    log_share = np.where(
        dominant, np.log1p(-np.where(dominant, others / total_, 0.0)), np.log(concentration / total_)
    )
    terms = concentration * log_share + stirling_remainder(concentration)
    return np.add.reduce(terms, axis=-1) - stirling_remainder(total)
