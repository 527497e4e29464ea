"""Linear regression with Student-t noise, as a scale mixture of Normals."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Data, Gamma, Normal, Plate, dot
from ._parts import normal_vector, sized


@sized
def robust_regression(
    n_features: int,
    *,
    df: float = 4.0,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.01,
    shape: float = 1.0,
    rate: float = 1.0,
) -> Model:
    r"""Return the linear regression on D known columns with Student-t noise of known degrees of freedom.

    .. math::
        w \sim N(m_0, S_0), \quad \tau \sim \mathrm{Gamma}(a, b), \quad
        u_n \sim \mathrm{Gamma}\bigl(\tfrac\nu2, \tfrac\nu2\bigr), \quad y_n \sim N(x_n' w, (u_n \tau)^{-1})

    Without :math:`u_n` the rows are Student-t about :math:`x_n' w`. Rows far from the line get a small
    :math:`u_n`, and count little. The optimal factors, with the expected squares
    :math:`e_n = (y_n - x_n' m)^2 + x_n' S x_n`:

    .. math::
        u_n &: \; \tfrac{\nu + 1}2, \quad \tfrac12 (\nu + \langle\tau\rangle e_n), \qquad
        \tau : \; a + \tfrac N2, \quad b + \tfrac12 \sum_n \langle u_n \rangle e_n \\
        S &= \Bigl( S_0^{-1} + \langle\tau\rangle \sum_n \langle u_n \rangle x_n x_n' \Bigr)^{-1}, \qquad
        m = S \Bigl( S_0^{-1} m_0 + \langle\tau\rangle \sum_n \langle u_n \rangle x_n y_n \Bigr)

    Parameters
    ----------
    n_features
        Number D of columns of X.
    df
        :math:`\nu > 0`; smaller values mean heavier tails.
    prior_mean, prior_precision
        :math:`m_0` and :math:`S_0^{-1}`, as for :func:`linear_regression`.
    shape, rate
        a and b.

    Returns
    -------
    Model
        Variables ``w``, ``tau``, ``u`` (plate ``obs``) and ``y`` (``obs``); known array ``X`` (N, D).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(10.0)
    >>> y = 1 + 2 * x + np.tile([0.1, -0.1], 5)
    >>> y[4] = 60.0
    >>> data = {"X": np.column_stack([np.ones(10), x]), "y": y}
    >>> posterior = robust_regression(2).fit(data, seed=0)
    >>> posterior["w"].mean.round(1)
    array([1., 2.])
    >>> print(posterior.local(data)["u"].mean.argmin())
    4
    """
    obs = Plate("obs")
    w = normal_vector("w", n_features, prior_mean, prior_precision)
    tau = Gamma("tau", shape, rate)
    u = Gamma("u", df / 2, df / 2, plates=obs)
    return Model(Normal("y", dot(Data("X", plates=obs), w), u * tau, plates=obs))
