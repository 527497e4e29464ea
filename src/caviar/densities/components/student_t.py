"""The Student-t distribution with location 0 and scale 1: kernels and tails that stay right far out."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtr, stdtrit

from ..._typing import Array
from ...numerics.gamma_function import log_rising_factorial

_POWER_LAW_FROM = 1e150
"""From here on the tail is a power of the distance, to the last digit, and squares leave the range."""


def log_normaliser(df: Array, size: Array) -> Array:
    r"""Return :math:`\log \Gamma((\nu + D)/2) - \log \Gamma(\nu/2) - \tfrac D2 \log(\pi\nu)`.

    Parameters
    ----------
    df
        :math:`\nu`, positive.
    size
        D, not negative; it broadcasts with ``df``.

    Examples
    --------
    >>> (np.exp(log_normaliser(np.array([1.0]), np.array(1.0))) * np.pi).round(9)  # the Cauchy density at 0
    array([1.])
    """
    half = 0.5 * size
    return log_rising_factorial(0.5 * df, half) - half * np.log(np.pi * df)


def log_kernel(distances: Array, df: Array, size: Array) -> Array:
    r"""Return :math:`-\tfrac{\nu + D}2 \log(1 + r^2/\nu)` for distances r, whose squares may be out of range.

    Examples
    --------
    >>> log_kernel(np.array([1.0, 1e200]), np.array(1.0), np.array(1.0)).round()
    array([  -1., -921.])
    """
    with np.errstate(over="ignore", divide="ignore"):
        ratio = np.square(distances) / df
        far = 2 * np.log(distances) - np.log(df)
    return -0.5 * (df + size) * np.where(ratio < 1e300, np.log1p(np.minimum(ratio, 1e300)), far)


def conditional_stretch(distances: Array, df: Array, size: int) -> Array:
    r"""Return :math:`\sqrt{(\nu + r^2)/(\nu + o)}`: what o columns observed at distance r do to the scale of others.

    Examples
    --------
    >>> conditional_stretch(np.array([0.0, 1e200]), np.array(3.0), 1).round(4)
    array([8.66e-001, 5.00e+199])
    """
    return np.hypot(np.sqrt(df), distances) / np.sqrt(df + size)


def random_stretch(df: Array, rng: np.random.Generator) -> Array:
    r"""Return draws of :math:`\sqrt{\nu / \chi^2_\nu}`, one for each df: they make Normal draws Student-t.

    Examples
    --------
    >>> bool(np.isfinite(random_stretch(np.full(1000, 1e-3), np.random.default_rng(0))).all())
    True
    """
    half = 0.5 * df
    few = half < 1.0
    # G(a) = G(a + 1) U^(1/a): what a small shape draws may underflow, its logarithm does not
    draws = rng.standard_gamma(np.where(few, half + 1.0, half))
    if not few.any():
        return np.sqrt(half / draws)
    logarithms = np.log(half) - np.log(draws)
    logarithms[few] -= np.log1p(-rng.random(int(few.sum()))) / half[few]
    return np.exp(np.minimum(0.5 * logarithms, math.log(np.finfo(np.float64).max) - 1.0))


def lower_tail(t: Array, df: Array) -> Array:
    r"""Return :math:`P(T \le t)`, accurate relative to itself in the lower tail; infinite t too.

    Examples
    --------
    >>> lower_tail(np.array([-1e200, 0.0, np.inf]), np.array(1.0))
    array([3.18309886e-201, 5.00000000e-001, 1.00000000e+000])
    """
    with np.errstate(over="ignore", under="ignore"):
        beyond = np.maximum(-t / _POWER_LAW_FROM, 1.0)
        return stdtr(df, np.maximum(t, -_POWER_LAW_FROM)) * beyond**-df


def lower_tail_quantile(mass: Array, df: Array) -> Array:
    """Return about the t below which this mass lies: a place to start from, which may be infinite or NaN.

    Examples
    --------
    >>> lower_tail_quantile(np.array([0.25]), np.array(1.0)).round(6)
    array([-1.])
    """
    return stdtrit(df, mass)
