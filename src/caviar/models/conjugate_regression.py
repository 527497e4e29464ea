"""Bayesian linear regression with unknown noise, exact: coefficients and noise precision in one factor."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Data, Normal, NormalGamma, Plate, dot
from ._parts import as_matrix, as_vector, sized


@sized
def conjugate_regression(
    n_features: int,
    *,
    prior_mean: ArrayLike = 0.0,
    mean_precision: ArrayLike = 0.01,
    shape: float = 1.0,
    rate: float = 1.0,
) -> Model:
    r"""Return linear regression with unknown noise whose posterior is exact.

    .. math::
        \tau \sim \mathrm{Gamma}(s, r), \qquad w \mid \tau \sim N(m, (\tau K)^{-1}), \qquad
        y_n \sim N(x_n^T w, \tau^{-1})

    One update from any start gives the posterior, and the ELBO is :math:`\log p(y)`, a Student-t density:

    .. math::
        K \leftarrow K + X^T X, \quad m \leftarrow K^{-1} \bigl( K_0 m_0 + X^T y \bigr), \quad
        s \leftarrow s + \tfrac N2, \quad
        r \leftarrow r + \tfrac12 \bigl( y^T y + m_0^T K_0 m_0 - m^T K m \bigr)

    In :func:`linear_regression` coefficients and noise have independent priors, with coefficients in their own units;
    here the prior of the coefficients is in units of the noise.

    Parameters
    ----------
    n_features
        D.
    prior_mean
        :math:`m`, a number or shape (D,).
    mean_precision
        :math:`K`, shape (D, D), in units of :math:`\tau`; a number means that times the identity.
    shape, rate
        Parameters of the prior of the noise precision :math:`\tau`.

    Returns
    -------
    Model
        Variables ``theta`` (a joint factor: ``mean`` and ``precision``) and ``y`` (plate ``obs``); the design matrix
        ``X``, shape (N, D), comes with the data. A column of ones is the intercept.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError, PlateError
        If an argument is invalid or has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(10)
    >>> y = 2 * x + 5 + 2 * np.random.RandomState(42).randn(10)
    >>> model = conjugate_regression(2, mean_precision=1e-6, shape=1e-3, rate=1e-3)
    >>> posterior = model.fit({"X": np.stack([np.ones(10), x], axis=1), "y": y})
    >>> print(round(posterior.elbo, 5))
    -41.30423
    >>> posterior["theta"].mean.round(2)
    array([5.96, 1.99])
    """
    obs = Plate("obs")
    theta = NormalGamma(
        "theta",
        as_vector(prior_mean, n_features),
        as_matrix(mean_precision, n_features),
        shape,
        rate,
    )
    return Model(Normal("y", dot(Data("X", plates=obs), theta.mean), theta.precision, plates=obs))
