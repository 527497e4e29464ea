"""Regression whose intercepts and slopes vary by group, and are drawn from a population."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Constant, Data, Gamma, MultivariateNormal, Normal, Plate, diagonal, dot
from ._parts import as_matrix, as_vector, sized


@sized
def varying_coefficients(
    n_features: int,
    n_groups: int,
    *,
    population: ArrayLike | None = None,
    population_precision: ArrayLike = 0.01,
    group_precision: ArrayLike | None = None,
    group_shape: float = 1.0,
    group_rate: float = 1.0,
    noise_precision: float | None = None,
    shape: float = 1.0,
    rate: float = 1.0,
) -> Model:
    r"""Return the regression with a vector of D coefficients for each of K groups.

    .. math::
        \mu \sim N(0, S_0), \quad \lambda_d \sim \mathrm{Gamma}(a_0, b_0), \quad
        w_k \sim N(\mu, \mathrm{diag}(\lambda)^{-1}), \quad \tau \sim \mathrm{Gamma}(a, b), \quad
        y_n \sim N(x_n' w_{k(n)}, \tau^{-1})

    The group k(n) of each row is known. A column of ones in X makes an intercept for each group. The optimal factors,
    with :math:`X_k, y_k` the rows of group k and :math:`\Lambda = \mathrm{diag}\langle\lambda\rangle`:

    .. math::
        S_k &= (\Lambda + \langle\tau\rangle X_k'X_k)^{-1}, \qquad
        m_k = S_k (\Lambda m + \langle\tau\rangle X_k' y_k) \\
        S &= (S_0^{-1} + K \Lambda)^{-1}, \qquad m = S \Lambda \sum_k m_k \\
        \lambda_d &: \; a_0 + \tfrac K2, \quad
        b_0 + \tfrac12 \sum_k \bigl[ (m_{kd} - m_d)^2 + S_{k,dd} + S_{dd} \bigr] \\
        \tau &: \; a + \tfrac N2, \quad
        b + \tfrac12 \sum_k \bigl[ \lVert y_k - X_k m_k \rVert^2 + \mathrm{tr}(X_k'X_k S_k) \bigr]

    With known population, group and noise precisions q is exact, and the ELBO is the log evidence.

    Parameters
    ----------
    n_features, n_groups
        D and K. To predict a new group, use one group more than there are. Its distribution follows from the
        population, including the uncertainty of its mean and spread, and it changes neither the other groups nor the
        ELBO.
    population
        Value of :math:`\mu` if it is known, a number or shape (D,).
    population_precision
        :math:`S_0^{-1}`, shape (D, D), or a number for that times the identity.
    group_precision
        Value of :math:`\lambda` if it is known, a number or shape (D,).
    group_shape, group_rate
        :math:`a_0` and :math:`b_0` of an unknown :math:`\lambda`.
    noise_precision
        Value of :math:`\tau` if it is known.
    shape, rate
        a and b of an unknown :math:`\tau`.

    Returns
    -------
    Model
        Variables ``population``, ``spread`` (:math:`\lambda`, plate ``feature``), ``w`` (plate ``group``), ``tau`` and
        ``y`` (plate ``obs``), except those with known values; known arrays ``X`` (N, D) and ``group`` (N,), whole
        numbers from 0 to K - 1.

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> group = np.repeat([0, 1], 4)
    >>> x = np.tile(np.arange(4.0), 2)
    >>> y = np.where(group == 0, 1 + 2 * x, 3 - x)
    >>> model = varying_coefficients(2, 2, noise_precision=100.0)
    >>> posterior = model.fit({"y": y, "X": np.column_stack([np.ones(8), x]), "group": group})
    >>> posterior["w"].mean.round(1)
    array([[ 1.,  2.],
           [ 3., -1.]])
    """
    obs, group, feature = Plate("obs"), Plate("group", n_groups), Plate("feature", n_features)
    if population is None:
        precision = as_matrix(population_precision, n_features)
        mean = MultivariateNormal("population", as_vector(0.0, n_features), precision)
    else:
        mean = as_vector(population, n_features)
    if group_precision is None:
        spread = Gamma("spread", group_shape, group_rate, plates=feature)
    else:
        spread = Constant("spread", as_vector(group_precision, n_features), plates=feature)
    w = MultivariateNormal("w", mean, diagonal(spread), plates=group)
    tau = Gamma("tau", shape, rate) if noise_precision is None else noise_precision
    own = w[Data("group", plates=obs)]
    return Model(Normal("y", dot(Data("X", plates=obs), own), tau, plates=obs))
