"""Binary regression with a logistic link."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Bernoulli, Data, Plate, dot, logistic
from ._parts import normal_vector, sized


@sized
def logistic_regression(
    n_features: int, *, prior_mean: ArrayLike = 0.0, prior_precision: ArrayLike = 0.1
) -> Model:
    r"""Return the logistic regression of a binary outcome on D known columns.

    .. math:: w \sim N(m_0, S_0), \qquad P(y_n = 1) = \frac{1}{1 + e^{-x_n' w}}

    A column of ones in X makes an intercept. Each row has a hidden :math:`\omega_n \sim PG(1, 0)`, the local variable
    ``y.polya_gamma``, given which the likelihood is that of a Normal with known precision:

    .. math::
        q(\omega_n) &= PG(1, c_n), \quad c_n^2 = x_n' (S + m m') x_n, \qquad
        \langle\omega_n\rangle = \frac{\tanh(c_n / 2)}{2 c_n} \\
        S &= \Bigl( S_0^{-1} + \sum_n \langle\omega_n\rangle x_n x_n' \Bigr)^{-1}, \qquad
        m = S \Bigl( S_0^{-1} m_0 + \sum_n (y_n - \tfrac12) x_n \Bigr)

    These are the updates of Jaakkola and Jordan, with :math:`\xi_n = c_n` and :math:`\lambda(\xi_n) =
    \langle\omega_n\rangle / 2`: with the optimal factor of :math:`\omega_n`, each log-likelihood is replaced by their
    quadratic bound. So the ELBO is a bound of a bound. It bounds

    .. math:: \log \int N(w \mid m_0, S_0) \prod_n h(y_n, \xi_n, w)\, dw \le \log p(y)

    with equality, because q(w) is the exact posterior under the bounds h. Compared with p(w | y) it is too narrow.

    Parameters
    ----------
    n_features
        Number D of columns of X. Centre columns that are far from zero, because their squares are summed.
    prior_mean
        :math:`m_0`, a number or shape (D,).
    prior_precision
        :math:`S_0^{-1}`, shape (D, D), in squared units of X; a number means that times the identity. 0 is the flat,
        improper prior. If the columns separate the outcomes perfectly, the flat prior has no proper posterior:
        coefficients grow until ``max_iter`` and are meaningless. Then use a proper prior.

    Returns
    -------
    Model
        Variables ``w``, ``y`` (plate ``obs``, 0 or 1) and ``y.polya_gamma`` (``obs``); known array ``X`` (N, D).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    Jaakkola and Jordan (2000), "Bayesian parameter estimation via variational methods"; Bishop (2006), section 10.6;
    Polson, Scott and Windle (2013); Durante and Rigon (2019) show that the two are the same.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(8.0)
    >>> data = {"X": np.column_stack([np.ones(8), x]), "y": [0, 0, 0, 1, 0, 1, 1, 1]}
    >>> posterior = logistic_regression(2).fit(data, seed=0)
    >>> posterior["w"].mean.round(2)
    array([-2.97,  0.94])
    """
    obs = Plate("obs")
    w = normal_vector("w", n_features, prior_mean, prior_precision)
    return Model(Bernoulli("y", logistic(dot(Data("X", plates=obs), w)), plates=obs))
