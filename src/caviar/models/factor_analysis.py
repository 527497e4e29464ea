"""Factor analysis: rows as linear combinations of a few factors, plus noise with a variance for each column."""

from __future__ import annotations

import numpy as np

from ..fitting.model import Model
from ..language import Gamma, MultivariateNormal, Normal, Plate, diagonal, dot
from ._parts import sized


@sized
def factor_analysis(
    n_features: int,
    n_factors: int,
    *,
    relevance: bool = False,
    loading_precision: float = 1.0,
    relevance_shape: float = 1e-3,
    relevance_rate: float = 1e-3,
    mean_precision: float = 1e-3,
    shape: float = 1.0,
    rate: float = 1.0,
) -> Model:
    r"""Return the model of D columns by K factors, with a noise precision for each column.

    .. math::
        w_d \sim N(0, \lambda^{-1} I), \quad \mu_d \sim N(0, 1/\lambda_0), \quad \tau_d \sim \mathrm{Gamma}(a, b), \\
        z_n \sim N(0, I), \quad x_{nd} \sim N(w_d' z_n + \mu_d, \tau_d^{-1})

    With ``relevance=True`` each factor has its own precision, :math:`w_d \sim N(0, \mathrm{diag}(\alpha)^{-1})`,
    :math:`\alpha_k \sim \mathrm{Gamma}(a_0, b_0)`, and those that explain nothing vanish (ARD). The optimal factors,
    with :math:`A = \lambda I` or :math:`\mathrm{diag}\langle\alpha\rangle`:

    .. math::
        S_z &= \Bigl( I + \sum_d \langle\tau_d\rangle \langle w_d w_d' \rangle \Bigr)^{-1}, \qquad
        m_{zn} = S_z \sum_d \langle\tau_d\rangle \langle w_d \rangle (x_{nd} - \langle\mu_d\rangle) \\
        S_d &= \Bigl( A + \langle\tau_d\rangle \sum_n \langle z_n z_n' \rangle \Bigr)^{-1}, \qquad
        m_d = S_d \langle\tau_d\rangle \sum_n \langle z_n \rangle (x_{nd} - \langle\mu_d\rangle) \\
        \mu_d &: \; \text{precision } \lambda_0 + N \langle\tau_d\rangle, \quad
        \text{mean } \frac{\langle\tau_d\rangle \sum_n (x_{nd} - m_d' m_{zn})}{\lambda_0 + N \langle\tau_d\rangle} \\
        \tau_d &: \; a + \tfrac N2, \quad b + \tfrac12 \sum_n \langle (x_{nd} - w_d' z_n - \mu_d)^2 \rangle, \qquad
        \alpha_k : \; a_0 + \tfrac D2, \quad b_0 + \tfrac12 \sum_d \langle w_{dk}^2 \rangle

    Parameters
    ----------
    n_features, n_factors
        D and K.
    relevance
        Whether each factor has its own precision (ARD).
    loading_precision
        :math:`\lambda` without ``relevance``; 0 is the flat, improper prior.
    relevance_shape, relevance_rate
        :math:`a_0` and :math:`b_0`.
    mean_precision
        :math:`\lambda_0`; 0 is the flat, improper prior.
    shape, rate
        a and b; 1 and 0 are the flat, improper prior.

    Returns
    -------
    Model
        Variables ``loadings`` (plate ``feature``), ``mean`` (``feature``), ``tau`` (``feature``), ``alpha``
        (``factor``, with ``relevance``), ``z`` (``obs``) and ``x`` (``obs``, ``feature``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid.

    Notes
    -----
    The factors are determined up to a rotation of loadings and z.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 1)) * [1.0, -2.0, 3.0] + rng.normal(size=(500, 3)) * [0.1, 0.5, 1.0]
    >>> posterior = factor_analysis(3, 1).fit({"x": x}, seed=0)
    >>> abs(posterior["loadings"].mean[:, 0]).round(1)
    array([1., 2., 3.])
    """
    feature = Plate("feature", n_features)
    return state_factors(
        feature,
        n_factors,
        Gamma("tau", shape, rate, plates=feature),
        loading_precision=None if relevance else loading_precision,
        relevance=(relevance_shape, relevance_rate),
        mean_precision=mean_precision,
    )


def state_factors(
    feature: Plate,
    n_factors: int,
    tau: Gamma,
    *,
    loading_precision: float | None,
    relevance: tuple[float, float],
    mean_precision: float,
) -> Model:
    """Return the model of columns by factors with this noise; ARD where ``loading_precision`` is None."""
    obs, factor = Plate("obs"), Plate("factor", n_factors)
    if loading_precision is None:
        precision = diagonal(Gamma("alpha", *relevance, plates=factor))
    else:
        precision = loading_precision * np.eye(n_factors)
    loadings = MultivariateNormal("loadings", np.zeros(n_factors), precision, plates=feature)
    mean = Normal("mean", 0.0, mean_precision, plates=feature)
    z = MultivariateNormal("z", np.zeros(n_factors), np.eye(n_factors), plates=obs)
    return Model(Normal("x", dot(loadings, z) + mean, tau, plates=(obs, feature)))
