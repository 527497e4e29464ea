"""A mixture of Gaussians in one dimension whose variance and weights are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from ..fitting.model import Model
from ..language import Categorical, Normal, Plate
from ._parts import sized


@sized
def known_variance_mixture(
    n_components: int,
    *,
    prior_variance: ArrayLike = 100.0,
    prior_mean: ArrayLike = 0.0,
    variance: float = 1.0,
    weights: ArrayLike | None = None,
) -> Model:
    r"""Return the mixture of K Gaussians in one dimension with known variance v and known weights w.

    .. math:: \mu_k \sim N(m_0, s_0^2), \qquad z_n \sim \mathrm{Cat}(w), \qquad x_n \mid z_n \sim N(\mu_{z_n}, v)

    The optimal factors are :math:`q(\mu_k) = N(m_k, s_k^2)` and :math:`q(z_n) = \mathrm{Cat}(r_n)` with

    .. math::
        r_{nk} \propto w_k \exp\frac{m_k x_n - (m_k^2 + s_k^2)/2}{v}, \qquad
        s_k^2 = \frac{1}{1/s_0^2 + \sum_n r_{nk}/v}, \qquad
        m_k = s_k^2 \Bigl( \frac{m_0}{s_0^2} + \sum_n \frac{r_{nk} x_n}{v} \Bigr)

    Parameters
    ----------
    n_components
        K.
    prior_variance
        :math:`s_0^2`, a number or shape (K,), in squared units of x. ``inf`` is the flat, improper prior with density
        1; the objective is then not a bound of the evidence, and components may collapse.
    prior_mean
        :math:`m_0`, a number or shape (K,); it has no effect with the flat prior.
    variance
        v, the known variance of every component.
    weights
        w, shape (K,), summing to one; 1/K by default.

    Returns
    -------
    Model
        Variables ``mean`` (plate ``component``), ``z`` and ``x`` (plate ``obs``).

    Raises
    ------
    ParameterError
        If a size is not a whole number of at least 1.
    ParameterError
        If a variance is not positive, or only some of the prior variances are infinite.
    ModelError
        If another argument is invalid or has the wrong shape.

    Notes
    -----
    Section 2 of ``docs/mathematics.md``; with ``prior_variance=inf``, two components and given weights, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> model = known_variance_mixture(2)
    >>> x = np.array([-3.1, -3.0, -2.9, 2.9, 3.0, 3.1])
    >>> posterior = model.fit({"x": x}, seed=0)
    >>> np.sort(posterior["mean"].mean).round(3)
    array([-2.99,  2.99])

    The bound is short of the exact evidence by log 2, for one of the two labellings is found:

    >>> from caviar.testing import exact_log_evidence
    >>> print(round(posterior.elbo, 2), round(exact_log_evidence(x, 2), 2))
    -15.49 -14.8
    """
    if not (np.isfinite(variance) and variance > 0):
        raise ParameterError(f"variance must be a positive, finite number; got {variance}")
    location, precision = _prior(prior_mean, prior_variance)
    component, obs = Plate("component", n_components), Plate("obs")
    mean = Normal("mean", location, precision, plates=component)
    z = Categorical("z", np.full(n_components, 1 / n_components) if weights is None else weights, plates=obs)
    return Model(Normal("x", mean[z], 1 / variance, plates=obs))


def _prior(mean: ArrayLike, variance: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Return mean and precision of the prior; both 0 for the flat one."""
    variances = np.asarray(variance, dtype=np.float64)
    if not np.all(variances > 0):
        raise ParameterError(f"prior_variance must be positive (inf for a flat prior); got {variance}")
    flat = np.isinf(variances)
    if flat.all():
        return 0.0, 0.0
    if flat.any():
        raise ParameterError(
            f"prior_variance must be finite for all components or infinite for all; got {variance}"
        )
    return mean, 1 / variances
