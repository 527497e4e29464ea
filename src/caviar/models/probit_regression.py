"""Binary regression with a probit link."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Bernoulli, Data, Plate, dot, probit
from ._parts import normal_vector, sized


@sized
def probit_regression(
    n_features: int, *, prior_mean: ArrayLike = 0.0, prior_precision: ArrayLike = 0.25
) -> Model:
    r"""Return the probit regression of a binary outcome on D known columns.

    .. math:: w \sim N(m_0, S_0), \qquad P(y_n = 1) = \Phi(x_n' w)

    A column of ones in X makes an intercept. The outcome is 1 if a utility :math:`u_n \sim N(x_n' w, 1)` is positive.
    With the sign :math:`s_n = 2 y_n - 1`, the local variable ``y.utility`` is :math:`v_n = s_n u_n \ge 0`. Coordinate
    ascent imputes it and regresses on it:

    .. math::
        q(v_n) \propto N(v_n \mid s_n x_n' m, 1), \quad v_n \ge 0, \qquad
        S = (S_0^{-1} + X'X)^{-1}, \qquad m = S \Bigl( S_0^{-1} m_0 + \sum_n s_n \langle v_n \rangle x_n \Bigr)

    w and the utilities are independent under q. S is as small as if the utilities had been observed, so the intervals
    of w are too narrow; the mean is close to that of the posterior. Under q(w) a new row has :math:`P(y = 1) = \Phi(x'
    m / \sqrt{1 + x' S x})`.

    Parameters
    ----------
    n_features
        Number D of columns of X. Centre columns that are far from zero, because their squares are summed.
    prior_mean
        :math:`m_0`, a number or shape (D,).
    prior_precision
        :math:`S_0^{-1}`, shape (D, D), in squared units of X; a number means that times the identity. 0 is the flat,
        improper prior. If the columns separate the outcomes perfectly, the flat prior has no proper posterior:
        coefficients grow until ``max_iter``, or until a step gains less than ``tol``, and are meaningless. Then use a
        proper prior.

    Returns
    -------
    Model
        Variables ``w``, ``y`` (plate ``obs``, 0 or 1) and ``y.utility`` (``obs``); known array ``X`` (N, D).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    Albert and Chib (1993); Girolami and Rogers (2006). The ELBO is a lower bound of the log evidence.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(8.0)
    >>> data = {"X": np.column_stack([np.ones(8), x]), "y": [0, 0, 0, 1, 0, 1, 1, 1]}
    >>> posterior = probit_regression(2).fit(data, seed=0)
    >>> posterior["w"].mean.round(2)
    array([-1.71,  0.53])
    """
    obs = Plate("obs")
    w = normal_vector("w", n_features, prior_mean, prior_precision)
    return Model(Bernoulli("y", probit(dot(Data("X", plates=obs), w)), plates=obs))
