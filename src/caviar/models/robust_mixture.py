"""The mixture of Student-t distributions, as a scale mixture of Gaussians."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Gamma, MultivariateNormal, Plate
from ._parts import hidden_labels, normal_vector, precision_matrix, sized


@sized
def robust_mixture(
    n_features: int,
    n_components: int,
    *,
    scale_df: float = 4.0,
    concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.01,
    df: ArrayLike | None = None,
    inverse_scale: ArrayLike = 1.0,
) -> Model:
    r"""Return the mixture of K Student-t distributions in D dimensions with known degrees of freedom.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \mu_k \sim N(m_0, S_0), \quad \Lambda_k \sim \mathrm{Wishart}(a, B), \quad
        z_n \sim \mathrm{Cat}(\pi), \quad u_n \sim \mathrm{Gamma}\bigl(\tfrac\nu2, \tfrac\nu2\bigr), \quad
        x_n \mid z_n \sim N(\mu_{z_n}, (u_n \Lambda_{z_n})^{-1})

    The scale and the label of a row share one factor :math:`q(z_n, u_n)`, within which inference is exact. With
    :math:`e_{nk} = (x_n - m_k)' \langle\Lambda_k\rangle (x_n - m_k) + \mathrm{tr}(\langle\Lambda_k\rangle S_k)`:

    .. math::
        u_n \mid z_n = k &: \; \tfrac{\nu + D}2, \quad \tfrac12 (\nu + e_{nk}) \\
        \log r_{nk} &= \langle\log\pi_k\rangle + \tfrac12 \langle\log|\Lambda_k|\rangle
        - \tfrac{\nu + D}2 \log(\nu + e_{nk}) + \mathrm{const}

    Rows far from all components have little weight. With :math:`g_{nk} = \langle z_{nk} u_n \rangle` and :math:`N_k =
    \sum_n r_{nk}`, the globals are

    .. math::
        S_k &= \Bigl( S_0^{-1} + \langle\Lambda_k\rangle \sum_n g_{nk} \Bigr)^{-1}, \qquad
        m_k = S_k \Bigl( S_0^{-1} m_0 + \langle\Lambda_k\rangle \sum_n g_{nk} x_n \Bigr) \\
        \alpha_k &= \alpha + N_k, \qquad a_k = a + N_k, \qquad
        B_k = B + \sum_n g_{nk} \bigl[ (x_n - m_k)(x_n - m_k)' + S_k \bigr]

    Parameters
    ----------
    n_features, n_components
        D and K.
    scale_df
        :math:`\nu > 0`; smaller values mean heavier tails.
    concentration, prior_mean, prior_precision, df, inverse_scale
        As for :func:`gaussian_mixture`; the covariance matrix of a component, for :math:`\nu > 2`, is
        :math:`\Lambda_k^{-1} \nu / (\nu - 2)`.

    Returns
    -------
    Model
        Variables ``weights``, ``mean`` and ``precision`` (plate ``component``), ``z``, ``u`` and ``x`` (plate ``obs``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    The start is a clustering, which may give a component to a few outliers. Then start from other labels, ``init={"z":
    labels}``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.standard_t(3, size=(200, 2)), 10 + rng.standard_t(3, size=(100, 2))])
    >>> posterior = robust_mixture(2, 2).fit({"x": x}, seed=0)
    >>> np.sort(posterior["mean"].mean[:, 0]).round(0) + 0.0
    array([ 0., 10.])
    """
    component, obs = Plate("component", n_components), Plate("obs")
    mean = normal_vector("mean", n_features, prior_mean, prior_precision, component)
    precision = precision_matrix(n_features, df, inverse_scale, component)
    z = hidden_labels(concentration, n_components, obs)
    u = Gamma("u", scale_df / 2, scale_df / 2, plates=obs)
    return Model(MultivariateNormal("x", mean[z], u * precision[z], plates=obs))
