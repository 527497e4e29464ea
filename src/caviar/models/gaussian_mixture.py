"""The Bayesian mixture of Gaussians with independent priors of means and precisions."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import MultivariateNormal, Plate
from ._parts import hidden_labels, normal_vector, precision_matrix, sized


@sized
def gaussian_mixture(
    n_features: int,
    n_components: int,
    *,
    concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.01,
    df: ArrayLike | None = None,
    inverse_scale: ArrayLike = 1.0,
    smallest_variance: ArrayLike | None = None,
) -> Model:
    r"""Return the mixture of K Gaussians in D dimensions with unknown weights, means and precision matrices.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \mu_k \sim N(m_0, S_0), \quad \Lambda_k \sim \mathrm{Wishart}(a, B), \quad
        z_n \sim \mathrm{Cat}(\pi), \quad x_n \mid z_n \sim N(\mu_{z_n}, \Lambda_{z_n}^{-1})

    Means and precisions are independent under the posterior q too. The optimal factors, with
    :math:`N_k = \sum_n r_{nk}`:

    .. math::
        \log r_{nk} &= \tfrac12 \langle\log|\Lambda_k|\rangle - \tfrac12 \bigl[ (x_n - m_k)' \langle\Lambda_k\rangle
        (x_n - m_k) + \mathrm{tr}(\langle\Lambda_k\rangle S_k) \bigr] + \langle\log\pi_k\rangle + \mathrm{const} \\
        \alpha_k &= \alpha + N_k, \qquad S_k = (S_0^{-1} + N_k \langle\Lambda_k\rangle)^{-1}, \qquad
        m_k = S_k \Bigl( S_0^{-1} m_0 + \langle\Lambda_k\rangle \sum_n r_{nk} x_n \Bigr) \\
        a_k &= a + N_k, \qquad B_k = B + \sum_n r_{nk} \bigl[ (x_n - m_k)(x_n - m_k)' + S_k \bigr]

    Parameters
    ----------
    n_features, n_components
        D and K.
    concentration
        :math:`\alpha`, a number or shape (K,).
    prior_mean
        :math:`m_0`, a number or shape (D,) or (K, D).
    prior_precision
        :math:`S_0^{-1}`, shape (D, D) or (K, D, D); a number 1/c means 1/c times the identity, that is
        :math:`\mu_k \sim N(m_0, c I)`. 0 is the flat, improper prior.
    df
        Degrees of freedom a > D - 1, a number or shape (K,); D + 1 by default, the smallest number for which the prior
        density of :math:`\Lambda` is bounded.
    inverse_scale
        B, shape (D, D) or (K, D, D), with :math:`\langle\Lambda_k\rangle = a B^{-1}`; a number means that
        times the identity.
    smallest_variance
        Lower bound of the eigenvalues of every covariance matrix :math:`\Lambda_k^{-1}`, a number or one for each
        column, for fits with a point mass for ``precision``; see :class:`caviar.Wishart`.

    Returns
    -------
    Model
        Variables ``weights``, ``mean`` and ``precision`` (plate ``component``), ``z`` and ``x`` (plate ``obs``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Notes
    -----
    See section 5 of ``docs/mathematics.md``, independent means and precisions. ``model.fit(data,
    point=maximum_likelihood_mixture.POINT)`` fits it by MAP-EM (section 1).

    Examples
    --------
    >>> from caviar.datasets import load_faithful
    >>> model = gaussian_mixture(2, 2)
    >>> posterior = model.fit({"x": load_faithful().values}, seed=0)
    >>> order = posterior["weights"].concentration.argsort()
    >>> posterior["mean"].mean[order].round(1)
    array([[ 2. , 54.3],
           [ 4.3, 79.8]])
    >>> print(round(posterior.elbo, 2))
    -1224.73
    """
    component, obs = Plate("component", n_components), Plate("obs")
    mean = normal_vector("mean", n_features, prior_mean, prior_precision, component)
    precision = precision_matrix(n_features, df, inverse_scale, component, smallest_variance)
    z = hidden_labels(concentration, n_components, obs)
    return Model(MultivariateNormal("x", mean[z], precision[z], plates=obs))
