r"""The log-gamma function where differences of it matter.

Log-partitions, entropies and divergences of the Gamma, Wishart and Dirichlet families are differences of
log-gammas that are many orders of magnitude larger than their result. Here each is written with Stirling's series,

.. math:: \log\Gamma(x) = x \log x - x + s(x), \qquad
          s(x) = -\tfrac12 \log x + \tfrac12 \log 2\pi + R(x), \qquad R(x) = \frac{1}{12x} - \frac{1}{360x^3} + \dots

so that a family can combine the large parts :math:`x \log x - x` by hand and add up what is left.
"""

import math

import numpy as np
from scipy.special import digamma, gammaln, polygamma, rel_entr

from caviar._typing import AnyArray, Array

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)

_SERIES_FROM = 20.0
"""From here on five terms of Stirling's series are exact to the last digit."""

_STIRLING = ((1, 1 / 12), (3, -1 / 360), (5, 1 / 1260), (7, -1 / 1680), (9, 1 / 1188))
"""Powers n and coefficients of R(x) = sum of coefficient * x^-n."""

_TINIEST, _HUGEST = np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).max

_SMALLEST_NORMAL = np.finfo(np.float64).tiny

_SQUARES_TO = 2.0**500
"""Numbers up to the square of this are brought below it before they are multiplied by each other."""

_NEAR = 0.1
"""Relative difference below which a ratio counts as close to one, and series are used."""

_SMALL = 1e3
"""Up to here log-gammas can be subtracted at the cost of the thirteenth digit after the point, and less time."""

_LARGE = 1e4
"""Up to here log-gammas can be subtracted without losing more than twelve digits after the point."""

_HUGE = 1e8
"""From here on the digits that two digammas lose are those of nats, where counts as large multiply them."""


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
    near = np.abs(r) < _NEAR
    any_near = near.any()
    if any_near and near.all():
        return _ratio_excess_series(r)
    # where the ratio overflows, its logarithm is negligible beside it
    far = r - np.log(np.clip(ratio, _TINIEST, _HUGEST))
    return np.where(near, _ratio_excess_series(np.where(near, r, 0.0)), far) if any_near else far


def _ratio_excess_series(r: Array) -> Array:
    """Return r - log(1 + r) for small r, as log(1 + r) = 2 atanh(s) = 2 s + 2 s^3 (1/3 + s^2/5 + ...)."""
    s = r / (2.0 + r)
    square = s * s
    tail = square * (1.0 / 13.0) + 1.0 / 11.0
    for odd in (9, 7, 5, 3):
        tail = tail * square + 1.0 / odd
    return s * (r - 2.0 * square * tail)


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
    near = np.abs(difference) < _NEAR * x
    far = rel_entr(x, y) + (y - x)
    if not near.any():
        return far
    r = np.where(near, difference, 0.0) / np.where(near, x, 1.0)
    return np.where(near, x * _ratio_excess_series(r), far)


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
    series = _stirling_series(large_x)
    return np.where(large, _HALF_LOG_TWO_PI - 0.5 * np.log(large_x) + series, small)


def _stirling_series(x: Array) -> Array:
    """Return R(x) by Horner's rule in 1/x^2: powers of arrays cost more than all else."""
    inverse = 1.0 / x
    square, series = inverse * inverse, np.zeros_like(inverse)
    for _, coefficient in reversed(_STIRLING):
        series = series * square + coefficient
    return series * inverse


def trigamma_remainder(x: Array) -> Array:
    r"""Return :math:`\psi'(x) - 1 / x` for positive ``x``, which falls like :math:`1 / (2 x^2)`.

    Examples
    --------
    >>> print(trigamma_remainder(np.array([1.0, 1e8])))
    [6.44934067e-01 5.00000002e-17]
    """
    large = x >= _SERIES_FROM
    small_x = np.where(large, 1.0, x)
    inverse = 1.0 / np.where(large, x, _SERIES_FROM)
    square, series = inverse * inverse, np.zeros_like(inverse)
    for n, coefficient in reversed(_STIRLING):
        series = series * square + coefficient * n * (n + 1)
    return np.where(large, square * (0.5 + series * inverse), polygamma(1, small_x) - 1.0 / small_x)


def entropy_remainder(x: Array) -> Array:
    r"""Return :math:`\log\Gamma(x) - x \psi(x) + x` for positive ``x``.

    It grows like a logarithm although its terms grow like :math:`x \log x`.

    Examples
    --------
    >>> entropy_remainder(np.array([1.0, 1e8])).round(6)
    array([ 1.577216, -7.791402])
    """
    largest = np.maximum.reduce(x, None, initial=0.0) if np.ndim(x) else float(x)
    if largest < _SMALL:
        return gammaln(x) - x * (digamma(x) - 1.0)
    is_small = x < _SERIES_FROM
    large_x = np.where(is_small, _SERIES_FROM, x)
    inverse = 1.0 / large_x
    square, series = inverse * inverse, np.zeros_like(inverse)
    for n, coefficient in reversed(_STIRLING):
        series *= square
        series += coefficient * (n + 1)
    found = np.asarray(_HALF_LOG_TWO_PI + 0.5 - 0.5 * np.log(large_x) + series * inverse)
    # mostly few are small, and their gamma functions take longer than all else
    small_x = np.asarray(x)[is_small]
    found[is_small] = gammaln(small_x) - small_x * digamma(small_x) + small_x
    return found


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
    difference, a_up, b_up = b - a, a + shift, b + shift
    total = 0.5 * ratio_excess(b_up, a_up, difference) + _series_remainder(a_up, b_up, difference)
    if small.any():
        total = np.array(total)
        total[small] += _recurrence_terms(a[small], b[small])
    return total


def bregman_remainder_step(a: Array, b: Array, u: Array, v: Array) -> Array:
    r"""Return ``bregman_remainder(a, b) - bregman_remainder(a + u, b + v)``, also where u and v are tiny.

    Parameters
    ----------
    a, b
        Positive, of one shape.
    u, v
        Not negative, of the same shape.

    Examples
    --------
    >>> a, b, tiny = np.array([1e8]), np.array([2e8]), np.array([1e-8])
    >>> (bregman_remainder_step(a, b, tiny, tiny) / 1e-17).round(3)  # derivative: (b - a)^2 / (2 a^2 b)
    array([2.5])
    """
    total_a, total_b = a + u, b + v
    small = np.minimum(a, b) < _SERIES_FROM
    if small.all():
        return bregman_remainder(a, b) - bregman_remainder(total_a, total_b)
    # half of h(b/a) - h(B/A) for h(x) = x - 1 - log x; the relative difference of the two ratios is w
    series = _series_remainder(a, b, b - a) - _series_remainder(total_a, total_b, total_b - total_a)
    if total_a.max() > _SQUARES_TO or total_b.max() > _SQUARES_TO:
        # only ratios matter from here on
        a, b, u, v, total_a, total_b = (part / _SQUARES_TO for part in (a, b, u, v, total_a, total_b))
    w = (b * u - a * v) / (a * total_b)
    step = (total_b - total_a) / total_a * w + ratio_excess(b * total_a, a * total_b, b * u - a * v)
    if not small.any():
        return 0.5 * step + series
    direct = bregman_remainder(a, b) - bregman_remainder(total_a, total_b)
    return np.where(small, direct, 0.5 * step + series)


def _series_remainder(a: Array, b: Array, difference: Array) -> Array:
    r"""Return the Bregman divergence of R(x), for arguments of at least 20, from Stirling's series."""
    p, q = 1.0 / a, 1.0 / b
    # b^-n - a^-n + n (b - a) a^-(n+1) = (b - a)^2 p q S_n  with  S_n = sum_i i p^i q^(n-i), every term positive
    power, polynomial, total = p, p, _STIRLING[0][1] * p
    coefficients = dict(_STIRLING[1:4])
    for n in range(2, 8):
        power = power * p
        polynomial = polynomial * q + n * power
        if n in coefficients:
            total = total + coefficients[n] * polynomial
    return difference * p * (difference * q) * total


def _recurrence_terms(a: Array, b: Array) -> Array:
    """Return what 20 steps of the recurrence add to :func:`bregman_remainder`; ``a`` and ``b`` have shape (n,)."""
    steps = np.arange(_SERIES_FROM)[:, np.newaxis]
    terms = ratio_excess(b + steps, a + steps, b - a).sum(axis=0)
    # [phi(b + m, a + m) - phi(b, a)] for phi(x, y) = x log(x/y) - x + y: as it is, or with a large a taken out
    m = _SERIES_FROM
    apart = a > 4.0 * b
    if apart.all():
        return terms + b * (np.log1p(m / b) - np.log1p(m / a)) + m * np.log((b + m) / (a + m))
    if apart.any():
        terms[apart] = _recurrence_terms(a[apart], b[apart])
        terms[~apart] = _recurrence_terms(a[~apart], b[~apart])
        return terms
    return terms + (relative_entropy(b + m, a + m, a - b) - relative_entropy(b, a, a - b))


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
    if np.maximum.reduce(total, None, initial=0.0) < _LARGE:
        return np.add.reduce(gammaln(concentration), axis=-1) - gammaln(total)
    log_share = _log_shares(concentration, total)[-1]
    terms = concentration * log_share + stirling_remainder(concentration)
    return np.add.reduce(terms, axis=-1) - stirling_remainder(total)


def log_rising_factorial(x: Array, n: Array) -> Array:
    r"""Return :math:`\log\Gamma(x + n) - \log\Gamma(x)` for positive ``x`` and ``n`` not negative, elementwise.

    No digits are lost where ``x`` is large: with Stirling's remainder s it is
    :math:`x \log(1 + n/x) + n \log(x + n) - n + s(x + n) - s(x)`.

    Examples
    --------
    >>> log_rising_factorial(np.array([2.0, 1e12]), np.array([3.0, 1.0])).round(6)
    array([ 3.178054, 27.631021])
    """
    after = x + n
    return x * np.log1p(n / x) + n * np.log(after) - n + stirling_remainder(after) - stirling_remainder(x)


def expected_log_weights(concentration: Array, total: Array) -> Array:
    r"""Return :math:`\psi(\alpha_k) - \psi(\sum_j \alpha_j)`, also where it is a small difference of large numbers.

    So it is where one concentration makes up nearly the total, and where counts multiply it that are as large as the
    concentrations.

    Parameters
    ----------
    concentration
        Positive, shape (..., K).
    total
        Its sum over the last axis, shape (...).

    Examples
    --------
    >>> expected_log_weights(np.array([1e8, 1.0]), np.array(1e8 + 1.0))  # of the first, -1/n
    array([-1.00000000e-08, -1.89978964e+01])
    """
    plain = digamma(concentration)
    plain -= digamma(total)[..., np.newaxis]
    if np.maximum.reduce(total, None, initial=0.0) < _LARGE:
        return plain
    is_huge = concentration >= _HUGE
    if not (is_huge | (concentration > 0.5 * total[..., np.newaxis])).any():
        return plain
    others, dominant, log_share = _log_shares(concentration, total)
    total = total[..., np.newaxis]
    dominant &= total >= _LARGE
    by_series = dominant | is_huge
    a = np.where(by_series, concentration, total)
    # psi(x) = log x - 1/(2x) - 1/(12 x^2) + ..., the difference taken term by term
    gap = np.where(dominant, others, total - concentration) / (a * total)
    return np.where(by_series, log_share - gap * (0.5 + (1.0 / a + 1.0 / total) / 12.0), plain)


def _log_shares(concentration: Array, total: Array) -> tuple[Array, AnyArray, Array]:
    """Return the sum of the lesser entries, which entries exceed half of the total, and log(entry / total)."""
    total = total[..., np.newaxis]
    dominant = concentration > 0.5 * total
    others = np.add.reduce(np.where(dominant, 0.0, concentration), axis=-1, keepdims=True)
    near = np.log1p(-np.where(dominant, others / total, 0.0))
    share = concentration / total
    # a share below the normal numbers has the digits of its two logarithms
    apart = np.log(concentration) - np.log(total)
    far = np.where(share > _SMALLEST_NORMAL, np.log(np.maximum(share, _SMALLEST_NORMAL)), apart)
    return others, dominant, np.where(dominant, near, far)
