"""Linear regression with automatic relevance determination (ARD)."""

from __future__ import annotations

from ..fitting.model import Model
from ..language import Data, Gamma, MultivariateNormal, Normal, Plate, diagonal, dot
from ._parts import sized


@sized
def relevance_regression(
    n_features: int,
    *,
    relevance_shape: float = 1e-3,
    relevance_rate: float = 1e-3,
    shape: float = 1e-3,
    rate: float = 1e-3,
) -> Model:
    r"""Return the linear regression with a separate prior precision for each coefficient (ARD).

    .. math::
        \alpha_d \sim \mathrm{Gamma}(a_0, b_0), \quad w \sim N(0, \mathrm{diag}(\alpha)^{-1}), \quad
        \tau \sim \mathrm{Gamma}(a, b), \quad y_n \sim N(x_n' w, \tau^{-1})

    The coefficient of an irrelevant column gets a large precision and vanishes. The optimal factors :math:`N(m, S)`,
    :math:`\mathrm{Gamma}(a_N, b_N)` and, for each column, :math:`\mathrm{Gamma}(a_0 + 1/2, b_d)`:

    .. math::
        S &= (\mathrm{diag}\langle\alpha\rangle + \langle\tau\rangle X'X)^{-1}, \qquad
        m = \langle\tau\rangle S X'y, \qquad b_d = b_0 + \tfrac12 (m_d^2 + S_{dd}) \\
        a_N &= a + \tfrac N2, \qquad
        b_N = b + \tfrac12 \bigl[ \lVert y - Xm \rVert^2 + \mathrm{tr}(X'X S) \bigr]

    Parameters
    ----------
    n_features
        Number D of columns of X.
    relevance_shape, relevance_rate
        :math:`a_0` and :math:`b_0`.
    shape, rate
        a and b.

    Returns
    -------
    Model
        Variables ``alpha`` (plate ``feature``), ``w``, ``tau`` and ``y`` (plate ``obs``); known array ``X`` (N, D).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid.

    Notes
    -----
    An intercept is shrunk like any other column, so subtract the means of y and of the columns first.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 3))
    >>> y = 2 * X[:, 1] + 0.1 * rng.normal(size=40)
    >>> posterior = relevance_regression(3).fit({"X": X, "y": y})
    >>> posterior["w"].mean.round(1) + 0.0
    array([0., 2., 0.])
    """
    obs, feature = Plate("obs"), Plate("feature", n_features)
    alpha = Gamma("alpha", relevance_shape, relevance_rate, plates=feature)
    w = MultivariateNormal("w", 0.0, diagonal(alpha))
    tau = Gamma("tau", shape, rate)
    return Model(Normal("y", dot(Data("X", plates=obs), w), tau, plates=obs))
