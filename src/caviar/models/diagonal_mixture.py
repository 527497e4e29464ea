"""The Bayesian mixture of Gaussians whose components have diagonal covariance matrices."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..fitting.model import Model
from ..language import Gamma, Normal, NormalGamma, Plate
from ._parts import as_column, hidden_labels, sized


@sized
def diagonal_mixture(
    n_features: int,
    n_components: int,
    *,
    concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    mean_precision: ArrayLike = 0.01,
    shape: ArrayLike = 1.0,
    rate: ArrayLike = 1.0,
) -> Model:
    r"""Return the mixture of K Gaussians with independent columns, mean and precision of each jointly conjugate.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \tau_{kd} \sim \mathrm{Gamma}(a, b), \quad
        \mu_{kd} \mid \tau_{kd} \sim N(m_0, (\kappa\tau_{kd})^{-1}), \quad
        z_n \sim \mathrm{Cat}(\pi), \quad x_{nd} \mid z_n \sim N(\mu_{z_n d}, \tau_{z_n d}^{-1})

    The factor :math:`q(\mu_{kd}, \tau_{kd})` is a Normal-Gamma again, with :math:`N_k = \sum_n r_{nk}`,
    :math:`\bar x_{kd} = \sum_n r_{nk} x_{nd} / N_k`:

    .. math::
        \kappa_k &= \kappa + N_k, \qquad a_k = a + N_k / 2, \qquad
        m_{kd} = (\kappa m_0 + N_k \bar x_{kd}) / \kappa_k \\
        b_{kd} &= b + \tfrac12 \sum_n r_{nk} (x_{nd} - \bar x_{kd})^2
        + \tfrac12 \frac{\kappa N_k}{\kappa_k} (\bar x_{kd} - m_0)^2

    Entries of a row may be missing (NaN); they are marginalised exactly.

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
    shape, rate
        a and b, each a number or shape (D,) or (K, D), with :math:`\langle\tau\rangle = a / b`.

    Returns
    -------
    Model
        Variables ``weights``, ``theta`` (plates ``component``, ``feature``), ``z`` (plate ``obs``) and ``x`` (plates
        ``obs``, ``feature``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Examples
    --------
    >>> from caviar.datasets import load_faithful
    >>> model = diagonal_mixture(2, 2)
    >>> posterior = model.fit({"x": load_faithful().values}, seed=0)
    >>> order = posterior["weights"].concentration.argsort()
    >>> posterior["theta"].mean[order].round(1)
    array([[ 2. , 54.5],
           [ 4.3, 80. ]])
    """
    component, feature, obs = Plate("component", n_components), Plate("feature", n_features), Plate("obs")
    theta = NormalGamma(
        "theta", prior_mean, as_column(mean_precision), shape, rate, plates=(component, feature)
    )
    z = hidden_labels(concentration, n_components, obs)
    return Model(Normal("x", theta[z], plates=(obs, feature)))


@sized
def diagonal_mixture_independent(
    n_features: int,
    n_components: int,
    *,
    concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.01,
    shape: ArrayLike = 1.0,
    rate: ArrayLike = 1.0,
    smallest_variance: ArrayLike | None = None,
) -> Model:
    r"""Return the mixture of K Gaussians with independent columns, means and precisions independent.

    .. math::
        \mu_{kd} \sim N(m_0, s_0^2), \qquad \tau_{kd} \sim \mathrm{Gamma}(a, b), \qquad
        x_{nd} \mid z_n \sim N(\mu_{z_n d}, \tau_{z_n d}^{-1})

    With ``prior_precision=0, shape=1, rate=0`` and point masses
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
        :math:`1/s_0^2`, a number or shape (D,) or (K, D). 0 is the flat, improper prior.
    shape, rate
        a and b, each a number or shape (D,) or (K, D), with :math:`\langle\tau\rangle = a / b`.
    smallest_variance
        Lower bound of every variance :math:`1/\tau_{kd}`, a number or shape (D,) or (K, D), for fits with a point mass
        for ``precision``; see :class:`caviar.Gamma`.

    Returns
    -------
    Model
        Variables ``weights``, ``mean`` and ``precision`` (plates ``component``, ``feature``), ``z`` (plate ``obs``) and
        ``x`` (plates ``obs``, ``feature``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ModelError
        If an argument is invalid or has the wrong shape.

    Examples
    --------
    >>> from caviar.datasets import load_faithful
    >>> model = diagonal_mixture_independent(2, 2, prior_precision=0, shape=1, rate=0)
    >>> posterior = model.fit({"x": load_faithful().values}, point=["weights", "mean", "precision"], seed=0)
    >>> print(round(posterior.elbo, 2))  # the log-likelihood
    -1147.81
    """
    component, feature, obs = Plate("component", n_components), Plate("feature", n_features), Plate("obs")
    mean = Normal("mean", prior_mean, prior_precision, plates=(component, feature))
    precision = Gamma(
        "precision", shape, rate, smallest_variance=smallest_variance, plates=(component, feature)
    )
    z = hidden_labels(concentration, n_components, obs)
    return Model(Normal("x", mean[z], precision[z], plates=(obs, feature)))
