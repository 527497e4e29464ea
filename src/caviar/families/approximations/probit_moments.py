"""Mean and variance of utilities, at which the expected logarithm of a Normal distribution function is expanded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from caviar._typing import Array
from caviar.families.approximations.normal_moments import NormalMoments

_STEP, _FARTHEST = 0.25, 9.0
_NODES = np.arange(-_FARTHEST, _FARTHEST + 0.5 * _STEP, _STEP)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
"""Of the trapezoidal rule, which converges exponentially: to all digits up to a standard deviation of 2."""

_LEAST = 1e-12
"""Variance below which derivatives by it would lose their digits."""

_LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))


def _derivatives(x: Array) -> tuple[Array, Array, Array]:
    """Return -log Phi(x), and its first two derivatives."""
    log_share = log_ndtr(x)
    ratio = np.exp(-0.5 * x * x - _LOG_ROOT_2PI - log_share)
    return -log_share, -ratio, ratio * (x + ratio)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ProbitMoments(NormalMoments):
    r"""Means m and variances v of Normal utilities (not random variables): :math:`f(\eta) = -\log \Phi(\eta)`.

    Natural parameters are :math:`(b m, -\tfrac12 b (m^2 + v), -b)`, and the log-partition is
    :math:`b \langle \log \Phi(\eta) \rangle`, which is not convex. The expected statistics are those of the
    quadratic function of :math:`\eta` whose expectation changes with m and v as the log-partition does. The entropy is
    zero.

    Parameters
    ----------
    mean, variance
        Of the utilities of the answers that were given.
    weight
        b, 1 for an answer; 0 where nothing depends on the utility.

    Raises
    ------
    ParameterError
        If a variance or weight is negative.

    Notes
    -----
    Expectations are sums over 73 nodes, and the derivatives those of these sums. See :class:`LogitMoments`.

    Examples
    --------
    >>> print(ProbitMoments(0.0, 0.0).log_partition.round(6))  # log(1/2)
    -0.693147
    """

    @staticmethod
    def expectations(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        sd = np.sqrt(np.maximum(variance, _LEAST))
        value, first, by_sd = (np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(sd))) for _ in range(3))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            f, slope, _ = _derivatives(mean + sd * node)
            value += weight * f
            first += weight * slope
            by_sd += (weight * node) * slope
        return value, first, by_sd / sd

    @staticmethod
    def higher(mean: Array, variance: Array) -> tuple[Array, Array]:
        sd = np.sqrt(np.maximum(variance, _LEAST))
        third, by_sd, by_sd_twice = (
            np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(sd))) for _ in range(3)
        )
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            _, slope, curvature = _derivatives(mean + sd * node)
            third += (weight * node) * curvature
            by_sd += (weight * node) * slope
            by_sd_twice += (weight * node * node) * curvature
        return third / sd, (by_sd_twice - by_sd / sd) / sd**2
