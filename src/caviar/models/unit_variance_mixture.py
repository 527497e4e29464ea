"""The Bayesian mixture of Gaussians with known variances and unknown means and weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from ..fitting.model import Model
from ..language import Normal, Plate
from ._parts import as_column, hidden_labels, sized


@sized
def unit_variance_mixture(
    n_features: int,
    n_components: int,
    *,
    concentration: ArrayLike = 1.0,
    prior_mean: ArrayLike = 0.0,
    mean_precision: ArrayLike = 0.01,
    variance: ArrayLike = 1.0,
) -> Model:
    r"""Return the mixture of K Gaussians in D dimensions with known variance, by default 1.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \mu_{kd} \sim N(m_0, v / \kappa), \quad
        z_n \sim \mathrm{Cat}(\pi), \quad x_{nd} \mid z_n \sim N(\mu_{z_n d}, v)

    The factor :math:`q(\mu_{kd})` is a Normal, with :math:`N_k = \sum_n r_{nk}`:

    .. math::
        \kappa_k = \kappa + N_k, \qquad
        q(\mu_{kd}) = N\Bigl(\frac{\kappa m_0 + \sum_n r_{nk} x_{nd}}{\kappa_k}, \frac{v}{\kappa_k}\Bigr)

    The log responsibilities are linear in the row, so a pass needs D + 1 features of it. Entries of a row may be
    missing (NaN); they are marginalised exactly.

    Parameters
    ----------
    n_features, n_components
        D and K.
    concentration
        :math:`\alpha`, a number or shape (K,).
    prior_mean
        :math:`m_0`, a number or shape (D,) or (K, D).
    mean_precision
        :math:`\kappa \ge 0`, a number or shape (K,): the number of rows that the prior of a mean is worth. 0 is the
        flat, improper prior.
    variance
        v, known: a number, or shape (D,), in squared units of x.

    Returns
    -------
    Model
        Variables ``weights``, ``mean`` (plates ``component``, ``feature``), ``z`` (plate ``obs``) and ``x`` (plates
        ``obs``, ``feature``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ParameterError
        If a variance is not positive and finite.
    ModelError
        If another argument is invalid or has the wrong shape.

    Notes
    -----
    Given the labels the means are independent in the posterior, so there is only one form of it. For one column and
    known weights it is :func:`known_variance_mixture`.

    Examples
    --------
    >>> x = np.array([[-3.1, 0.0], [-3.0, 0.1], [-2.9, -0.1], [2.9, 0.0], [3.0, 0.1], [3.1, -0.1]])
    >>> posterior = unit_variance_mixture(2, 2).fit({"x": x}, seed=0)
    >>> means = posterior["mean"].mean
    >>> abs(means[means[:, 0].argsort()].round(2))
    array([[2.99, 0.  ],
           [2.99, 0.  ]])
    """
    variances = np.asarray(variance, dtype=np.float64)
    if not (np.all(np.isfinite(variances)) and np.all(variances > 0)):
        raise ParameterError(f"variance must be positive, finite numbers; got {variance}")
    component, feature, obs = Plate("component", n_components), Plate("feature", n_features), Plate("obs")
    precision = np.asarray(as_column(mean_precision), dtype=np.float64) / variances
    mean = Normal("mean", prior_mean, precision, plates=(component, feature))
    z = hidden_labels(concentration, n_components, obs)
    return Model(Normal("x", mean[z], 1 / variances, plates=(obs, feature)))
