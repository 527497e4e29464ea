"""The Bayesian mixture of Gaussians of rows that were measured with known errors: extreme deconvolution."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Data, MultivariateNormal, Plate, diagonal
from ._parts import hidden_labels, means_and_precisions, sized


@sized
def measured_mixture(
    n_features: int,
    n_components: int,
    *,
    independent_errors: bool = False,
    concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    mean_precision: ArrayLike = 0.01,
    df: ArrayLike | None = None,
    inverse_scale: ArrayLike = 1.0,
) -> Model:
    r"""Return the mixture of K Gaussians for true values that were measured with known errors, different for each row.

    .. math::
        z_n \sim \mathrm{Cat}(\pi), \quad t_n \mid z_n \sim N(\mu_{z_n}, \Lambda_{z_n}^{-1}), \quad
        x_n \mid t_n \sim N(t_n, S_n), \quad \pi \sim \mathrm{Dir}(\alpha), \quad
        (\mu_k, \Lambda_k) \sim \text{Normal-Wishart}(m_0, \kappa, \nu, B)

    Label and true value of a row are one factor :math:`q(z_n)\, q(t_n \mid z_n)`. With the expected precision
    :math:`\bar\Lambda_k = \nu_k B_k^{-1}` of a component and its mean :math:`m_k`,

    .. math::
        q(t_n \mid k) &= N(a_{nk}, C_{nk}), \qquad C_{nk} = (\bar\Lambda_k + S_n^{-1})^{-1}, \qquad
        a_{nk} = C_{nk} (\bar\Lambda_k m_k + S_n^{-1} x_n) \\
        \log r_{nk} &= \langle\log\pi_k\rangle + \log N(x_n \mid m_k, \bar\Lambda_k^{-1} + S_n)
        + \tfrac12 \bigl[ \langle\log|\Lambda_k|\rangle - \log|\bar\Lambda_k| - D / \kappa_k \bigr] + \mathrm{const}

    and the globals have the updates of :func:`normal_wishart_mixture` for rows with moments :math:`a_{nk}` and
    :math:`a_{nk} a_{nk}' + C_{nk}`.

    Parameters
    ----------
    n_features, n_components
        D and K.
    independent_errors
        Whether the errors of the columns are independent; ``noise_precision`` then has one number for each column.
    concentration
        :math:`\alpha`, a number or shape (K,).
    prior_mean
        :math:`m_0`, a number or shape (D,) or (K, D).
    mean_precision
        :math:`\kappa \ge 0`, a number or shape (K,): the number of rows that the prior of a mean is worth.
    df
        Degrees of freedom :math:`\nu`, a number or shape (K,); D + 1 by default.
    inverse_scale
        B, shape (D, D) or (K, D, D); a number means that times the identity.

    Returns
    -------
    Model
        Variables ``weights``, ``theta`` (plate ``component``), ``z``, ``t`` and ``x`` (plate ``obs``), and the known
        array ``noise_precision``, the inverse :math:`S_n^{-1}` of the errors' covariance, shape (N, D, D): with
        ``independent_errors`` the inverse variances, shape (N, D).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    With ``mean_precision=0, df=n_features, inverse_scale=0`` (flat) and ``point=["weights", "theta"]`` it is the EM of
    J. Bovy, D. W. Hogg and S. T. Roweis, "Extreme deconvolution", Annals of Applied Statistics 5 (2011), whose
    objective is the exact log likelihood :math:`\sum_n \log \sum_k \pi_k N(x_n \mid \mu_k, \Lambda_k^{-1} + S_n)`.

    Errors must be finite: a precision of 0 is refused. Use NaN in every column for a row that was not measured. For a
    single missing column give a variance that is large compared with the data; the posterior is then that of a missing
    entry, and the ELBO contains the log density of the number given there as a constant.

    A pass takes O(N K D^3).

    Examples
    --------
    A group of width 0.5, measured with errors of 0.5 to 2:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.uniform(0.5, 2.0, (500, 1))
    >>> x = 10.0 + 0.5 * rng.normal(size=(500, 1)) + errors * rng.normal(size=(500, 1))
    >>> model = measured_mixture(1, 1, independent_errors=True)
    >>> theta = model.fit({"x": x, "noise_precision": errors**-2}, seed=0)["theta"]
    >>> width = np.sqrt(theta.inverse_scale / theta.df)
    >>> print(theta.mean.round(1), width.round(1), x.std().round(1))
    [[10.]] [[[0.5]]] 1.5
    """
    component, obs = Plate("component", n_components), Plate("obs")
    theta = means_and_precisions(n_features, prior_mean, mean_precision, df, inverse_scale, component)
    z = hidden_labels(concentration, n_components, obs)
    t = MultivariateNormal("t", theta[z], plates=obs)
    if independent_errors:
        columns = (obs, Plate("column", n_features))
        return Model(
            MultivariateNormal("x", t, diagonal(Data("noise_precision", plates=columns)), plates=obs)
        )
    return Model(MultivariateNormal("x", t, Data("noise_precision", plates=obs), plates=obs))
