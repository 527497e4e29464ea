"""A Normal distribution with unknown mean and precision, their posterior joint."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Normal, NormalGamma, Plate


def normal_gamma(
    *,
    prior_mean: ArrayLike = 0.0,
    mean_precision: ArrayLike = 0.01,
    shape: ArrayLike = 1.0,
    rate: ArrayLike = 1.0,
) -> Model:
    r"""Return the model of Normal rows with the joint conjugate prior of their mean and precision.

    .. math::
        \tau \sim \mathrm{Gamma}(a, b), \qquad \mu \mid \tau \sim N(m_0, (\kappa\tau)^{-1}), \qquad
        x_n \sim N(\mu, \tau^{-1})

    There is one factor, so one update gives the exact posterior, and the ELBO is the exact log evidence:

    .. math::
        \kappa_N = \kappa + N, \quad m_N = \frac{\kappa m_0 + N \bar x}{\kappa_N}, \quad a_N = a + \frac N2, \quad
        b_N = b + \frac12 \sum_n (x_n - \bar x)^2 + \frac{\kappa N (\bar x - m_0)^2}{2 \kappa_N}

    Parameters
    ----------
    prior_mean
        :math:`m_0`.
    mean_precision
        :math:`\kappa > 0`: the number of rows that the prior of the mean is worth.
    shape, rate
        a > 0 and b > 0.

    Returns
    -------
    Model
        Variables ``theta`` (mean and precision) and ``x`` (plate ``obs``).

    Notes
    -----
    Sections 1 and 5 (in one dimension) of ``docs/mathematics.md``.

    Examples
    --------
    >>> posterior = normal_gamma(mean_precision=1.0).fit({"x": [1.0, 2.0, 3.0]})
    >>> theta = posterior["theta"]
    >>> print(theta.mean, theta.mean_precision, theta.shape, theta.rate)
    1.5 4.0 2.5 3.5
    """
    theta = NormalGamma("theta", prior_mean, mean_precision, shape, rate)
    return Model(Normal("x", theta, plates=Plate("obs")))
