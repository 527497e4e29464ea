"""The Bayesian mixture of Gaussians whose components have one covariance matrix."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import MultivariateNormal, Plate
from ._parts import hidden_labels, means_and_precisions, normal_vector, precision_matrix, sized


@sized
def tied_mixture(
    n_features: int,
    n_components: int,
    *,
    concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    mean_precision: ArrayLike = 0.01,
    df: float | None = None,
    inverse_scale: ArrayLike = 1.0,
) -> Model:
    r"""Return the mixture of K Gaussians with a common precision matrix, means and precision jointly conjugate.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \Lambda \sim \mathrm{Wishart}(\nu, B), \quad
        \mu_k \mid \Lambda \sim N(m_0, (\kappa\Lambda)^{-1}), \quad
        z_n \sim \mathrm{Cat}(\pi), \quad x_n \mid z_n \sim N(\mu_{z_n}, \Lambda^{-1})

    The factor :math:`q(\mu_1, \ldots, \mu_K, \Lambda)` has the form of its prior, with
    :math:`N_k = \sum_n r_{nk}`, :math:`\bar x_k = \sum_n r_{nk} x_n / N_k`:

    .. math::
        \kappa_k &= \kappa + N_k, \qquad \nu_q = \nu + N, \qquad m_k = (\kappa m_0 + N_k \bar x_k) / \kappa_k \\
        B_q &= B + \sum_{nk} r_{nk} (x_n - \bar x_k)(x_n - \bar x_k)'
        + \sum_k \frac{\kappa N_k}{\kappa_k} (\bar x_k - m_0)(\bar x_k - m_0)' \\
        \log r_{nk} &= \nu_q\, m_k' B_q^{-1} (x_n - m_k / 2) - \tfrac12 D/\kappa_k
        + \langle\log\pi_k\rangle + \mathrm{const}

    The log responsibilities are linear in the row, so a pass needs D + 1 features of it.

    Parameters
    ----------
    n_features, n_components
        D and K.
    concentration
        :math:`\alpha`, a number or shape (K,).
    prior_mean
        :math:`m_0`, a number or shape (D,) or (K, D).
    mean_precision
        :math:`\kappa > 0`, a number or shape (K,): the number of rows that the prior of a mean is worth.
    df
        Degrees of freedom :math:`\nu > D - 1`; D + 1 by default.
    inverse_scale
        B, shape (D, D), with :math:`\langle\Lambda\rangle = \nu B^{-1}`; a number means that times the identity.

    Returns
    -------
    Model
        Variables ``weights``, ``theta`` (plate ``component``, along which its precision is tied), ``z`` and ``x``
        (plate ``obs``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Examples
    --------
    >>> from caviar.datasets import load_faithful
    >>> model = tied_mixture(2, 2)
    >>> posterior = model.fit({"x": load_faithful().values}, seed=0)
    >>> order = posterior["weights"].concentration.argsort()
    >>> posterior["theta"].mean[order].round(1)
    array([[ 2. , 54.6],
           [ 4.3, 80. ]])
    >>> print(posterior["theta"].df)  # 3, and one for each of 272 rows
    275.0
    """
    component, obs = Plate("component", n_components), Plate("obs")
    theta = means_and_precisions(
        n_features, prior_mean, mean_precision, df, inverse_scale, component, tied=component
    )
    z = hidden_labels(concentration, n_components, obs)
    return Model(MultivariateNormal("x", theta[z], plates=obs))


@sized
def tied_mixture_independent(
    n_features: int,
    n_components: int,
    *,
    concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.01,
    df: float | None = None,
    inverse_scale: ArrayLike = 1.0,
    smallest_variance: ArrayLike | None = None,
) -> Model:
    r"""Return the mixture of K Gaussians with a common precision matrix, means and precision independent.

    .. math::
        \mu_k \sim N(m_0, S_0), \qquad \Lambda \sim \mathrm{Wishart}(\nu, B), \qquad
        x_n \mid z_n \sim N(\mu_{z_n}, \Lambda^{-1})

    With ``prior_precision=0, df=D + 1, inverse_scale=0`` and point masses
    (``point=caviar.models.maximum_likelihood_mixture.POINT``) it is fitted by maximum likelihood.

    Parameters
    ----------
    n_features, n_components
        D and K.
    concentration
        :math:`\alpha`, a number or shape (K,).
    prior_mean
        :math:`m_0`, a number or shape (D,) or (K, D).
    prior_precision
        :math:`S_0^{-1}`, shape (D, D) or (K, D, D); a number means that times the identity. 0 is the flat,
        improper prior.
    df
        Degrees of freedom :math:`\nu > D - 1`; D + 1 by default.
    inverse_scale
        B, shape (D, D), with :math:`\langle\Lambda\rangle = \nu B^{-1}`; a number means that times the identity.
    smallest_variance
        Lower bound of the eigenvalues of the covariance matrix :math:`\Lambda^{-1}`, a number or one for each column,
        for fits with a point mass for ``precision``; see :class:`caviar.Wishart`.

    Returns
    -------
    Model
        Variables ``weights``, ``mean`` (plate ``component``), ``precision``, ``z`` and ``x`` (plate ``obs``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Examples
    --------
    >>> from caviar.datasets import load_faithful
    >>> model = tied_mixture_independent(2, 2, prior_precision=0, df=3, inverse_scale=0)
    >>> posterior = model.fit({"x": load_faithful().values}, point=["weights", "mean", "precision"], seed=0)
    >>> print(round(posterior.elbo, 2))  # the log-likelihood
    -1140.19
    """
    component, obs = Plate("component", n_components), Plate("obs")
    mean = normal_vector("mean", n_features, prior_mean, prior_precision, component)
    precision = precision_matrix(n_features, df, inverse_scale, smallest_variance=smallest_variance)
    z = hidden_labels(concentration, n_components, obs)
    return Model(MultivariateNormal("x", mean[z], precision, plates=obs))
