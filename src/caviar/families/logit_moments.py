"""Mean and variance of log-odds, at which the expected logarithm of a logistic function is expanded."""

from __future__ import annotations

from dataclasses import dataclass

from caviar._typing import Array
from caviar.families._normal_logits import higher_slopes, softplus_and_slopes
from caviar.families._normal_moments import NormalMoments


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
