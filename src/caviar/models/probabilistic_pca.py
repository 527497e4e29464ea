"""Probabilistic principal component analysis (PCA)."""

from __future__ import annotations

from typing import Any

from ..fitting.model import Model
from ..language import Gamma, Plate
from ._parts import sized
from .factor_analysis import state_factors

POINT = ("loadings", "mean", "tau")
"""The factors that are point masses in EM and MAP-EM: ``model.fit(data, point=POINT)``."""

MAXIMUM_LIKELIHOOD: dict[str, Any] = {
    "relevance": False,
    "loading_precision": 0.0,
    "mean_precision": 0.0,
    "shape": 1.0,
    "rate": 0.0,
}
"""Flat priors: ``probabilistic_pca(D, K, **MAXIMUM_LIKELIHOOD)``."""


@sized
def probabilistic_pca(
    n_features: int,
    n_factors: int,
    *,
    relevance: bool = True,
    loading_precision: float = 1.0,
    relevance_shape: float = 1e-3,
    relevance_rate: float = 1e-3,
    mean_precision: float = 1e-3,
    shape: float = 1.0,
    rate: float = 1.0,
) -> Model:
    r"""Return the model of D columns by K factors, with equal noise in all columns.

    .. math::
        \alpha_k \sim \mathrm{Gamma}(a_0, b_0), \quad w_d \sim N(0, \mathrm{diag}(\alpha)^{-1}), \quad
        \mu_d \sim N(0, 1/\lambda_0), \quad \tau \sim \mathrm{Gamma}(a, b), \quad z_n \sim N(0, I), \quad
        x_{nd} \sim N(w_d' z_n + \mu_d, \tau^{-1})

    The optimal factors are those of :func:`factor_analysis`, but with one noise precision:

    .. math::
        \tau : \; a + \tfrac{ND}2, \quad b + \tfrac12 \sum_{nd} \langle (x_{nd} - w_d' z_n - \mu_d)^2 \rangle

    Under flat priors, with point masses on loadings, mean and noise, this is EM, and its maximum is known: with the
    eigenvalues :math:`l_1 \ge \dots \ge l_D` of the covariance matrix of the data,

    .. math::
        \tau^{-1} = \frac{1}{D - K} \sum_{k > K} l_k, \qquad
        \log p(x) = -\tfrac N2 \Bigl[ D \log 2\pi + \sum_{k \le K} \log l_k - (D - K) \log\tau + D \Bigr]

    Parameters
    ----------
    n_features, n_factors
        D and K.
    relevance
        Whether each factor has its own precision (ARD), so that superfluous factors vanish.
    loading_precision
        The precision of all loadings without ``relevance``; 0 is the flat, improper prior.
    relevance_shape, relevance_rate
        :math:`a_0` and :math:`b_0`.
    mean_precision
        :math:`\lambda_0`; 0 is the flat, improper prior.
    shape, rate
        a and b; 1 and 0 are the flat, improper prior.

    Returns
    -------
    Model
        Variables ``loadings`` (plate ``feature``), ``mean`` (``feature``), ``tau``, ``alpha`` (``factor``, with
        ``relevance``), ``z`` (``obs``) and ``x`` (``obs``, ``feature``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid.

    Notes
    -----
    If the noise is small, coordinate ascent rotates the factors slowly towards the axes of ``alpha``: with
    ``relevance`` it may take thousands of iterations until a superfluous factor vanishes.

    The maximum is that of Tipping and Bishop (1999), Probabilistic principal component analysis.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(400, 5))
    >>> model = probabilistic_pca(5, 2, **MAXIMUM_LIKELIHOOD)
    >>> posterior = model.fit({"x": x}, seed=0, point=POINT)
    >>> eigenvalues = np.linalg.eigvalsh(np.cov(x, rowvar=False, bias=True))
    >>> print((1 / posterior["tau"].value).round(4), eigenvalues[:3].mean().round(4))
    0.2392 0.2392
    """
    return state_factors(
        Plate("feature", n_features),
        n_factors,
        Gamma("tau", shape, rate),
        loading_precision=None if relevance else loading_precision,
        relevance=(relevance_shape, relevance_rate),
        mean_precision=mean_precision,
    )
