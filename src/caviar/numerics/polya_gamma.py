r"""The Polya-Gamma distribution PG(1, c): its variance, and exact draws.

Draws follow Devroye (2009), "On exact simulation algorithms for some distributions related to Jacobi theta functions",
as in Polson, Scott and Windle (2013), "Bayesian inference for logistic models using Polya-Gamma latent variables". With
z = c / 2, four times a PG(1, c) number has the density :math:`\cosh(z) e^{-z^2 x / 2} \sum_n (-1)^n a_n(x)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.special import expit, log_ndtr

from .._typing import AnyArray, Array

_CUT = 0.64
"""Where the two forms of the coefficients a_n meet; with it a proposal is kept with probability 0.9992 or more."""

_N_GAMMAS = 48
"""Gamma variables that a sum is drawn from, before the one with the moments of all others."""

_SERIES_BELOW = 0.5
_N_TERMS = 22
_HUGE = 1e100
"""Numbers whose cube is still one; beyond, the quotient is zero."""


def _tanh_coefficients(n_terms: int) -> tuple[float, ...]:
    """Return the coefficients of u^(2k - 1) in tanh u, each the number next to it: tanh' is 1 - tanh^2."""
    found = [Fraction(1)]
    for k in range(1, n_terms):
        square = sum((found[i] * found[k - 1 - i] for i in range(k)), Fraction(0))
        found.append(-square / (2 * k + 1))
    return tuple(map(float, found))


_TANH = _tanh_coefficients(_N_TERMS)
"""Coefficients of u^(2k - 1) in tanh u, k = 1, 2, ..."""
_EXCESS = tuple(-(2 * k - 2) * own for k, own in enumerate(_TANH, start=1))
"""Those in tanh u - u / cosh^2 u: each times 1 - (2k - 1)."""
_DIVERGENCE = tuple((1 / (2 * k) - 1 / 2) * own for k, own in enumerate(_TANH, start=1))
"""Those of u^(2k) in log cosh u - (u / 2) tanh u: the integral of tanh, less half of it."""


def tanh_excess(u: Array) -> Array:
    r"""Return :math:`(\tanh u - u / \cosh^2 u) / u^3` of numbers that are not negative; 2/3 at zero.

    A sixteenth of it is the variance of PG(1, 2u).

    Examples
    --------
    >>> tanh_excess(np.array([0.0, 1e-9, 2.0])).round(6)
    array([0.666667, 0.666667, 0.102841])
    """
    square = np.minimum(u, _SERIES_BELOW) ** 2
    series = _sum_of(_EXCESS[1:], square)
    large = np.clip(u, _SERIES_BELOW, _HUGE)
    # 1 / cosh^2 u without overflow
    decay = np.exp(-2.0 * large)
    direct = (np.tanh(large) - 4.0 * large * decay / (1.0 + decay) ** 2) / large**3
    return np.where(u < _SERIES_BELOW, series, direct)


def small_divergence(u: Array) -> Array:
    r"""Return :math:`\log\cosh u - \tfrac u2 \tanh u`, the divergence of PG(1, 2u) from PG(1, 0), of u up to 1/2.

    Examples
    --------
    >>> small_divergence(np.array([0.0, 1e-3, 0.5])) * [1, 12e12, 1]
    array([0.        , 0.99999947, 0.00458522])
    """
    square = u * u
    return square * square * _sum_of(_DIVERGENCE[1:], square)


def _sum_of(coefficients: Sequence[float], x: Array) -> Array:
    """Return a power series."""
    total = np.full(np.shape(x), coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= x
        total += coefficient
    return total


def draw_polya_gamma(tilt: Array, rng: np.random.Generator) -> Array:
    """Return a draw of PG(1, c) for each tilt c >= 0, of the shape of these."""
    z = 0.5 * np.ravel(tilt)
    draws = np.empty(z.shape)
    todo = np.arange(z.size)
    while todo.size:
        proposed = _propose(z[todo], rng)
        kept = _is_kept(proposed, rng)
        draws[todo[kept]] = proposed[kept]
        todo = todo[~kept]
    return 0.25 * draws.reshape(np.shape(tilt))


def draw_polya_gamma_sum(shape: Array, tilt: Array, rng: np.random.Generator) -> Array:
    r"""Return a draw of PG(b, c) for each shape b >= 0 and tilt c >= 0, of the same shape as these.

    It is the sum :math:`\tfrac{1}{2 \pi^2} \sum_k g_k / ((k - 1/2)^2 + c^2 / 4 \pi^2)` with gamma variables of shape
    b. Instead of those after the first 48 there is one gamma variable with the mean and variance of their sum.
    """
    square = np.square(tilt) / (4.0 * np.pi**2)
    total, mean, variance = (
        np.zeros(np.shape(shape)),
        0.25 * tanh_ratio(0.5 * tilt),
        tanh_excess(0.5 * tilt) / 16.0,
    )
    for k in range(_N_GAMMAS):
        weight = 1.0 / (2.0 * np.pi**2 * ((k + 0.5) ** 2 + square))
        total += weight * rng.standard_gamma(shape)
        mean, variance = mean - weight, variance - weight * weight
    # rounding may leave nothing of the rest where the tilt is huge
    mean, variance = np.maximum(mean, 0.0), np.maximum(variance, 0.0)
    scale = np.divide(variance, mean, out=np.zeros_like(total), where=mean > 0)
    rest = np.divide(mean, scale, out=np.zeros_like(total), where=scale > 0)
    return total + np.where(scale > 0, scale * rng.standard_gamma(shape * rest), shape * mean)


def tanh_ratio(u: Array) -> Array:
    """Return tanh(u) / u of numbers that are not negative; 1 at zero."""
    return np.divide(np.tanh(u), u, out=np.ones(np.shape(u)), where=np.asarray(u) > 0)


def _propose(z: Array, rng: np.random.Generator) -> Array:
    """Return draws with a density in proportion to a_0(x) exp(-z^2 x / 2): a tail and a truncated inverse Gaussian."""
    rate = 0.125 * np.pi**2 + 0.5 * z * z
    log_tail = math.log(0.5 * np.pi) - np.log(rate) - rate * _CUT
    root = 1.0 / math.sqrt(_CUT)
    log_body = math.log(2.0) + np.logaddexp(
        -z + log_ndtr(root * (_CUT * z - 1.0)), z + log_ndtr(-root * (_CUT * z + 1.0))
    )
    in_tail = rng.random(z.shape) < expit(log_tail - log_body)
    proposed = np.empty(z.shape)
    proposed[in_tail] = _CUT + rng.standard_exponential(int(in_tail.sum())) / rate[in_tail]
    proposed[~in_tail] = _truncated_inverse_gaussian(z[~in_tail], rng)
    return proposed


def _truncated_inverse_gaussian(z: Array, rng: np.random.Generator) -> Array:
    """Return draws of an inverse Gaussian with mean 1 / z and shape 1, restricted to (0, cut]."""
    draws = np.empty(z.shape)
    todo = np.arange(z.size)
    while todo.size:
        tilt = z[todo]
        is_flat = tilt * _CUT < 1.0
        proposed = np.empty(tilt.shape)
        proposed[is_flat], kept = _truncated_levy(tilt[is_flat], rng)
        proposed[~is_flat] = rng.wald(1.0 / tilt[~is_flat], 1.0)
        good = proposed <= _CUT
        good[is_flat] = kept
        draws[todo[good]] = proposed[good]
        todo = todo[~good]
    return draws


def _truncated_levy(z: Array, rng: np.random.Generator) -> tuple[Array, AnyArray]:
    """Return draws for z = 0, and which to keep so that they are tilted by exp(-z^2 x / 2)."""
    normal = rng.standard_exponential(z.shape)
    bound = rng.standard_exponential(z.shape)
    x = _CUT / (1.0 + _CUT * normal) ** 2
    kept = normal**2 <= 2.0 * bound / _CUT
    return x, kept & (rng.random(z.shape) <= np.exp(-0.5 * z * z * x))


def _is_kept(x: Array, rng: np.random.Generator) -> AnyArray:
    """Return whether a uniform below a_0 lies below the alternating series, whose partial sums enclose it."""
    uniform = rng.random(x.shape)
    kept = np.zeros(x.shape, dtype=bool)
    total = np.ones(x.shape)
    undecided = np.arange(x.size)
    n = 0
    while undecided.size:
        n += 1
        at = x[undecided]
        step = (2 * n + 1) * np.exp(-n * (n + 1) * np.where(at <= _CUT, 2.0 / at, 0.5 * np.pi**2 * at))
        total[undecided] += step if n % 2 == 0 else -step
        below = uniform[undecided] <= total[undecided]
        if n % 2:
            kept[undecided[below]] = True
            undecided = undecided[~below]
        else:
            undecided = undecided[below]
    return kept
