"""The Bayesian mixture of Gaussians with the joint conjugate prior of each mean and precision."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import MultivariateNormal, Plate
from ._parts import hidden_labels, means_and_precisions, sized


@sized
def normal_wishart_mixture(
    n_features: int,
    n_components: int,
    *,
    concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    mean_precision: ArrayLike = 0.01,
    df: ArrayLike | None = None,
    inverse_scale: ArrayLike = 1.0,
) -> Model:
    r"""Return the mixture of K Gaussians whose means and precisions have Normal-Wishart priors and posteriors.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \Lambda_k \sim \mathrm{Wishart}(\nu, B), \quad
        \mu_k \mid \Lambda_k \sim N(m_0, (\kappa\Lambda_k)^{-1}), \quad
        z_n \sim \mathrm{Cat}(\pi), \quad x_n \mid z_n \sim N(\mu_{z_n}, \Lambda_{z_n}^{-1})

    The factor :math:`q(\mu_k, \Lambda_k)` is a Normal-Wishart again, with :math:`N_k = \sum_n r_{nk}`,
    :math:`\bar x_k = \sum_n r_{nk} x_n / N_k`:

    .. math::
        \kappa_k &= \kappa + N_k, \qquad \nu_k = \nu + N_k, \qquad m_k = (\kappa m_0 + N_k \bar x_k) / \kappa_k \\
        B_k &= B + \sum_n r_{nk} (x_n - \bar x_k)(x_n - \bar x_k)'
        + \frac{\kappa N_k}{\kappa_k} (\bar x_k - m_0)(\bar x_k - m_0)' \\
        \log r_{nk} &= \tfrac12 \langle\log|\Lambda_k|\rangle - \tfrac12 \bigl[ D/\kappa_k
        + \nu_k (x_n - m_k)' B_k^{-1} (x_n - m_k) \bigr] + \langle\log\pi_k\rangle + \mathrm{const}

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
        Degrees of freedom :math:`\nu > D - 1`, a number or shape (K,); D + 1 by default.
    inverse_scale
        B, shape (D, D) or (K, D, D), with :math:`\langle\Lambda_k\rangle = \nu B^{-1}`; a number means that
        times the identity.

    Returns
    -------
    Model
        Variables ``weights``, ``theta`` (plate ``component``), ``z`` and ``x`` (plate ``obs``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    Section 5 of ``docs/mathematics.md``, joint means and precisions.

    Examples
    --------
    >>> from caviar.datasets import load_faithful
    >>> model = normal_wishart_mixture(2, 2)
    >>> posterior = model.fit({"x": load_faithful().values}, seed=0)
    >>> order = posterior["weights"].concentration.argsort()
    >>> posterior["theta"].mean[order].round(1)
    array([[ 2. , 54.5],
           [ 4.3, 80. ]])
    """
    component, obs = Plate("component", n_components), Plate("obs")
    theta = means_and_precisions(n_features, prior_mean, mean_precision, df, inverse_scale, component)
    z = hidden_labels(concentration, n_components, obs)
    return Model(MultivariateNormal("x", theta[z], plates=obs))
