"""The Dirichlet-process mixture of Gaussians, truncated: as many components as the data support."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Categorical, MultivariateNormal, Plate, StickBreaking
from ..language.nodes.node import Expression
from ._parts import means_and_precisions, sized


@sized
def dirichlet_process_mixture(
    n_features: int,
    truncation: int,
    *,
    concentration: Expression = 1.0,
    prior_mean: ArrayLike = 0.0,
    mean_precision: ArrayLike = 0.01,
    df: ArrayLike | None = None,
    inverse_scale: ArrayLike = 1.0,
) -> Model:
    r"""Return the mixture of Gaussians in D dimensions with stick-breaking weights, of at most K components.

    .. math::
        v_k \sim \mathrm{Beta}(1, \gamma), \quad \pi_k = v_k \prod_{j<k} (1 - v_j), \quad
        \Lambda_k \sim \mathrm{Wishart}(\nu, B), \quad \mu_k \mid \Lambda_k \sim N(m, (\kappa\Lambda_k)^{-1}), \quad
        z_n \sim \mathrm{Cat}(\pi), \quad x_n \mid z_n \sim N(\mu_{z_n}, \Lambda_{z_n}^{-1})

    with :math:`v_K = 1`. The optimal factors of the weights, with :math:`N_k = \sum_n r_{nk}`:

    .. math::
        a_k = 1 + N_k, \qquad b_k = \gamma + \sum_{j>k} N_j, \qquad
        \langle\log\pi_k\rangle = \langle\log v_k\rangle + \sum_{j<k} \langle\log(1 - v_j)\rangle

    The others are those of :func:`normal_wishart_mixture`.

    Parameters
    ----------
    n_features, truncation
        D and K. Components without rows return to their prior, so choose K well above the expected number.
    concentration
        :math:`\gamma > 0`: a number, or a ``Gamma`` variable without plates if it is to be learned.
    prior_mean
        m, a number or shape (D,).
    mean_precision
        :math:`\kappa`: the number of rows that the prior of a mean is worth.
    df
        Degrees of freedom :math:`\nu > D - 1`; D + 1 by default.
    inverse_scale
        B, shape (D, D), with :math:`\langle\Lambda_k\rangle = \nu B^{-1}`; a number means that times the
        identity.

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
    Blei and Jordan, "Variational inference for Dirichlet process mixtures", Bayesian Analysis 1 (2006). The components
    are not exchangeable: earlier components have larger prior weights, so starts may differ in the ELBO by their order
    alone.

    Examples
    --------
    >>> from caviar.datasets import load_faithful
    >>> model = dirichlet_process_mixture(2, 6)
    >>> posterior = model.fit({"x": load_faithful().values}, seed=0, n_restarts=3)
    >>> mean = posterior["weights"].mean
    >>> int((mean > 0.05).sum())
    2
    """
    component, obs = Plate("component", truncation), Plate("obs")
    weights = StickBreaking("weights", concentration, truncation)
    theta = means_and_precisions(n_features, prior_mean, mean_precision, df, inverse_scale, component)
    z = Categorical("z", weights, plates=obs)
    return Model(MultivariateNormal("x", theta[z], plates=obs))
