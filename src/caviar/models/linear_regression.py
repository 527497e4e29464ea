"""Bayesian linear regression, with known or unknown noise."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Data, Gamma, Normal, Plate, dot
from ._parts import normal_vector, sized


@sized
def linear_regression(
    n_features: int,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.01,
    noise_precision: float | None = None,
    shape: float = 1.0,
    rate: float = 1.0,
) -> Model:
    r"""Return the linear regression on D known columns.

    .. math:: w \sim N(m_0, S_0), \qquad \tau \sim \mathrm{Gamma}(a, b), \qquad y_n \sim N(x_n' w, \tau^{-1})

    A column of ones in X makes an intercept. The optimal factors :math:`N(m, S)` and :math:`\mathrm{Gamma}(a_N, b_N)`:

    .. math::
        S &= (S_0^{-1} + \langle\tau\rangle X'X)^{-1}, \qquad m = S (S_0^{-1} m_0 + \langle\tau\rangle X'y) \\
        a_N &= a + \tfrac N2, \qquad
        b_N = b + \tfrac12 \bigl[ \lVert y - Xm \rVert^2 + \mathrm{tr}(X'X S) \bigr]

    With known noise there is one factor, so one update gives the exact posterior, and the ELBO is the exact log
    evidence.

    Parameters
    ----------
    n_features
        Number D of columns of X.
    prior_mean
        :math:`m_0`, a number or shape (D,).
    prior_precision
        :math:`S_0^{-1}`, shape (D, D); a number means that times the identity, 0 for the flat, improper prior.
    noise_precision
        Value of :math:`\tau` if it is known, in inverse squared units of y.
    shape, rate
        a > 0 and b > 0 of the prior of an unknown :math:`\tau`.

    Returns
    -------
    Model
        Variables ``w``, ``tau`` (unless it is known) and ``y`` (plate ``obs``); known array ``X`` (N, D).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.column_stack([np.ones(5), np.arange(5)])
    >>> posterior = linear_regression(2).fit({"X": X, "y": [1.1, 2.9, 5.2, 7.1, 8.9]})
    >>> posterior["w"].mean.round(1)
    array([1.1, 2. ])
    """
    obs = Plate("obs")
    w = normal_vector("w", n_features, prior_mean, prior_precision)
    tau = Gamma("tau", shape, rate) if noise_precision is None else noise_precision
    return Model(Normal("y", dot(Data("X", plates=obs), w), tau, plates=obs))
