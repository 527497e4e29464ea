"""The mixture of Gaussians that EM fits by maximum likelihood: flat priors, point masses."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..fitting.model import Model
from ._parts import sized
from .gaussian_mixture import gaussian_mixture

POINT = ("weights", "mean", "precision")
"""The factors that are point masses in EM and MAP-EM: ``model.fit(data, point=POINT)``."""


@sized
def maximum_likelihood_mixture(
    n_features: int, n_components: int, *, smallest_variance: ArrayLike | None = None
) -> Model:
    r"""Return the mixture of K Gaussians in D dimensions under flat priors.

    .. math::
        p(\pi, \mu, \Lambda) \propto 1, \qquad z_n \sim \mathrm{Cat}(\pi), \qquad
        x_n \mid z_n \sim N(\mu_{z_n}, \Lambda_{z_n}^{-1})

    With point masses on weights, means and precisions (``point=POINT``) the updates are those of EM:

    .. math::
        r_{nk} \propto \pi_k N(x_n; \mu_k, \Lambda_k^{-1}), \quad \pi_k = \frac{N_k}{N}, \quad
        \mu_k = \frac{1}{N_k} \sum_n r_{nk} x_n, \quad
        \Lambda_k^{-1} = \frac{1}{N_k} \sum_n r_{nk} (x_n - \mu_k)(x_n - \mu_k)'

    and the objective is :math:`\log p(x \mid \pi, \mu, \Lambda) + \log\Gamma(K)`; the constant is the log density of
    the flat Dirichlet prior, which is proper.

    Parameters
    ----------
    n_features, n_components
        D and K.
    smallest_variance
        Lower bound of the eigenvalues of every covariance matrix, in squared units of x, a number or one for each
        column (see :class:`caviar.Wishart`). The update is the exact maximum under this constraint, so the objective
        never decreases. Without it a component may collapse onto a single row, where the likelihood is unbounded.

    Returns
    -------
    Model
        Variables ``weights``, ``mean`` and ``precision`` (plate ``component``), ``z`` and ``x`` (plate ``obs``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.

    Notes
    -----
    Section 4 of ``docs/mathematics.md``, and section 1 for the flat priors: Dirichlet(1), Normal with precision 0,
    Wishart with D + 1 degrees of freedom and inverse scale 0.

    Examples
    --------
    >>> from caviar.datasets import load_faithful
    >>> model = maximum_likelihood_mixture(2, 2)
    >>> posterior = model.fit({"x": load_faithful().values}, point=POINT, seed=0)
    >>> weights, mean = posterior["weights"].value, posterior["mean"].value
    >>> weights[weights.argsort()].round(4)
    array([0.3559, 0.6441])
    >>> mean[weights.argsort()].round(2)
    array([[ 2.04, 54.48],
           [ 4.29, 79.97]])
    >>> print(round(posterior.elbo, 2))  # log Gamma(2) = 0, so this is the log-likelihood
    -1130.26
    """
    return gaussian_mixture(
        n_features,
        n_components,
        concentration=1.0,
        prior_mean=0.0,
        prior_precision=0.0,
        df=n_features + 1,
        inverse_scale=np.zeros((n_features, n_features)),
        smallest_variance=smallest_variance,
    )
