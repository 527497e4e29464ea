"""A Normal distribution with unknown mean and precision, independent under the posterior."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Gamma, Normal, Plate


def normal_factorised(
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.01,
    shape: ArrayLike = 1.0,
    rate: ArrayLike = 1.0,
) -> Model:
    r"""Return the model of Normal rows with independent priors of their mean and precision.

    .. math:: \mu \sim N(m_0, s_0^2), \qquad \tau \sim \mathrm{Gamma}(a, b), \qquad x_n \sim N(\mu, \tau^{-1})

    Under the exact posterior they depend on each other; the best :math:`q(\mu)\, q(\tau)` solves

    .. math::
        s^2 = \frac{1}{1/s_0^2 + N \langle\tau\rangle}, \quad
        m = s^2 \Bigl( \frac{m_0}{s_0^2} + \langle\tau\rangle \sum_n x_n \Bigr), \quad
        a_N = a + \frac N2, \quad b_N = b + \frac12 \sum_n \bigl[ (x_n - m)^2 + s^2 \bigr]

    with :math:`\langle\tau\rangle = a_N / b_N`. It is the smallest model that needs more than one update.

    Parameters
    ----------
    prior_mean, prior_precision
        :math:`m_0` and :math:`1/s_0^2`.
    shape, rate
        a > 0 and b > 0.

    Returns
    -------
    Model
        Variables ``mean``, ``precision`` and ``x`` (plate ``obs``).

    Notes
    -----
    Section 1 of ``docs/mathematics.md``; the one-component, one-dimensional case of section 5.

    Examples
    --------
    >>> posterior = normal_factorised().fit({"x": [1.0, 2.0, 3.0]})
    >>> print(posterior["precision"].shape, posterior["mean"].mean.round(3))
    2.5 1.993
    """
    mean = Normal("mean", prior_mean, prior_precision)
    precision = Gamma("precision", shape, rate)
    return Model(Normal("x", mean, precision, plates=Plate("obs")))
