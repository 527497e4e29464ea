r"""Mean and variance of log-odds, at which the expected logarithm of a logistic function is expanded.

Expectations of the logistic function, its derivatives and its integral at a Normal number.

The logistic function is a mixture of Normal distribution functions,

.. math:: \sigma(x) = \int_0^\infty \Phi\!\left(\frac{x}{2k}\right) p(k)\, dk,

with the density p of the Kolmogorov distribution (Andrews and Mallows, 1974). The trapezoidal rule in log k gives it by
22 nodes to 3e-13, so that expectations under a Normal are closed forms, and each the derivative of another one exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from caviar._typing import Array
from caviar.families.approximations.normal_moments import NormalMoments


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LogitMoments(NormalMoments):
    r"""Means m and variances v of Normal log-odds (not random variables): :math:`f(\eta) = \log(1 + e^\eta)`.

    Natural parameters are :math:`(b m, -\tfrac12 b (m^2 + v), -b)`, and the log-partition is
    :math:`-b \langle \log(1 + e^\eta) \rangle`, which is not convex. The expected statistics are those of the
    quadratic function of :math:`\eta` whose expectation changes with m and v as the log-partition does:

    .. math:: t_1 = m \langle \sigma' \rangle - \langle \sigma \rangle, \quad t_2 = \langle \sigma' \rangle, \quad
              t_3 = \langle f \rangle + m t_1 - \tfrac12 (m^2 + v) t_2,

    with the logistic function :math:`\sigma`. The entropy is zero.

    Parameters
    ----------
    mean, variance
        Of the log-odds.
    weight
        b, the number of answers; 0 where nothing depends on the log-odds.

    Raises
    ------
    ParameterError
        If a variance or weight is negative.

    Notes
    -----
    An update with these statistics is a step of length one along the natural gradient (Khan and Lin, 2017,
    "Conjugate-computation variational inference"), and shorter where the objective would rise by less.

    Examples
    --------
    >>> print(LogitMoments(0.0, 0.0).expected_statistics[1].round(10))
    0.25
    """

    @staticmethod
    def expectations(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        return softplus_and_slopes(mean, variance)

    @staticmethod
    def higher(mean: Array, variance: Array) -> tuple[Array, Array]:
        return higher_slopes(mean, variance)


_STEP, _LOWEST, _HIGHEST = 0.15, 0.14, 4.6
_SMALLEST = 1e-16
_ROOT_2PI = float(np.sqrt(2.0 * np.pi))


def _kolmogorov(k: Array) -> Array:
    """Return the density of the Kolmogorov distribution, by the series that converges fast on either side of 1."""
    n = np.arange(1.0, 40.0)[:, None]
    large = 8.0 * k * ((-1.0) ** (n + 1) * n * n * np.exp(-2.0 * (n * k) ** 2)).sum(axis=0)
    a = ((2.0 * n - 1.0) * np.pi) ** 2 / 8.0
    small = (_ROOT_2PI * np.exp(-a / k**2) * (2.0 * a / k**4 - 1.0 / k**2)).sum(axis=0)
    return np.where(k < 1.0, small, large)


def _mixture() -> tuple[Array, Array]:
    """Return the weights and the variances of the Normal distributions that a logistic one is a mixture of."""
    k = np.exp(np.arange(np.log(_LOWEST), np.log(_HIGHEST) + 0.5 * _STEP, _STEP))
    weights = _kolmogorov(k) * k * _STEP
    kept = weights > _SMALLEST
    return weights[kept], np.square(2.0 * k[kept])


_WEIGHTS, _VARIANCES = _mixture()


def softplus_and_slopes(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    r"""Return the expectations of :math:`\log(1 + e^\eta)` and of its first two derivatives under Normals.

    Parameters
    ----------
    mean, variance
        Of the Normals; the latter at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> [round(float(own), 10) for own in softplus_and_slopes(np.zeros(()), np.zeros(()))]
    [0.6931471806, 0.5, 0.25]
    """
    total, sigma, slope = (
        np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(variance))) for _ in range(3)
    )
    for weight, own in zip(_WEIGHTS, _VARIANCES, strict=True):
        variances = variance + own
        inverse = 1.0 / np.sqrt(variances)
        z = mean * inverse
        sigma += weight * ndtr(z)
        z *= z
        z *= -0.5
        density = np.exp(z)
        density *= inverse
        density *= weight / _ROOT_2PI
        slope += density
        density *= variances
        total += density
    return total + mean * sigma, sigma, slope


def higher_slopes(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Return the expectations of the second and third derivatives of the logistic function under Normals."""
    second, third = (np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(variance))) for _ in range(2))
    for weight, own in zip(_WEIGHTS, _VARIANCES, strict=True):
        inverse = 1.0 / np.sqrt(variance + own)
        z = mean * inverse
        density = (weight / _ROOT_2PI) * np.exp(-0.5 * z * z) * inverse * inverse
        second -= density * z
        third += density * inverse * (z * z - 1.0)
    return second, third
