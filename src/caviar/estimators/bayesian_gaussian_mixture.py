"""The Bayesian mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from .._posterior import Posterior
from .._typing import AnyArray, Array
from ..densities import MixtureDensity
from ._arguments import as_array, as_positive_definite, require_choice, require_number
from ._components import MeanPrecisionFamily, MixturePrior
from ._data_scale import DataScale, scale_of
from ._independent import Independent
from ._joint import Joint
from ._mixture import MixtureEstimator, Statement

__all__ = ["BayesianGaussianMixture"]

_FAMILIES: dict[str, MeanPrecisionFamily] = {"joint": Joint(), "independent": Independent()}


class BayesianGaussianMixture(MixtureEstimator):
    r"""Bayesian mixture of Gaussians with unknown weights, means and precision matrices.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \Lambda_k \sim \mathrm{Wishart}(\nu, B), \quad z_n \sim \mathrm{Cat}(\pi),
        \quad x_n \mid z_n \sim N(\mu_{z_n}, \Lambda_{z_n}^{-1})

    with one of two priors of the means, and one of two forms of the posterior that belong to them:

    - ``mean_precision_family="joint"``: :math:`\mu_k \mid \Lambda_k \sim N(m_0, (\kappa\Lambda_k)^{-1})`,
      :math:`q(\mu_k, \Lambda_k)` a Normal-Wishart; :func:`caviar.models.normal_wishart_mixture`;
    - ``mean_precision_family="independent"``: :math:`\mu_k \sim N(m_0, S_0)`, :math:`q(\mu_k)\, q(\Lambda_k)`;
      :func:`caviar.models.gaussian_mixture`.

    Section 5 of ``docs/mathematics.md``.

    Parameters
    ----------
    n_components
        K.
    covariance_type
        ``"full"``: each component has a covariance matrix of its own. There is no other yet.
    mean_precision_family
        ``"joint"`` or ``"independent"``, see above.
    tol
        The fit has converged when an iteration changes the bound by less than this, in nats per row.
    max_iter
        Largest number of iterations of each start.
    n_init
        Number of starts; the best end is kept.
    weight_concentration_prior
        :math:`\alpha`, a number or shape (K,); 1/K by default.
    mean_prior
        :math:`m_0`, shape (D,); the mean of the data by default.
    mean_precision_prior
        How many rows the prior knowledge of a mean is worth, 1 by default. ``"joint"``: :math:`\kappa`.
        ``"independent"``: :math:`S_0^{-1}` in units of the inverse covariance of the data; or :math:`S_0^{-1}`
        itself, (D, D).
    degrees_of_freedom_prior
        :math:`\nu > D - 1`; D by default.
    covariance_prior
        :math:`B`, the inverse scale of the Wishart, shape (D, D); the prior expects the precision :math:`\nu
        B^{-1}`. It is *not* divided by the degrees of freedom, in scikit-learn neither: the same matrix means
        the same there. The covariance of the data by default, see Notes.
    random_state
        Whole number, Generator or RandomState: of the starts, and of :meth:`sample`.
    n_jobs
        Number of threads; None or -1 for one on each core that this process may use. It does not change the result.
    verbose
        Whether to print a line on each iteration; or a function that is called with the progress of each.

    Attributes
    ----------
    weights_
        Expected weights, shape (K,).
    means_
        Expected means :math:`m_k`, shape (K, D).
    precisions_
        Expected precisions :math:`\langle\Lambda_k\rangle = \nu_k B_k^{-1}`, shape (K, D, D).
    covariances_
        Their inverses :math:`B_k / \nu_k`, which is what scikit-learn gives; not the expectation of
        :math:`\Lambda_k^{-1}`, which may be infinite.
    weight_concentration_, degrees_of_freedom_, mean_precision_
        Parameters of the factors: :math:`\alpha_k` (K,), :math:`\nu_k` (K,), and :math:`\kappa_k` (K,) or, if
        independent, :math:`S_k^{-1}` (K, D, D).
    weight_concentration_prior_, mean_prior_, mean_precision_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior that was used.
    elbo_, lower_bound_
        Lower bound of the log evidence in nats, every constant included; comparable between any two fits to the
        same rows.
    elbo_trace_
        The bound at the start and after each iteration, shape (n_iter_ + 1,). It never falls.
    n_iter_, converged_
        Iterations of the kept start, and whether the bound settled.
    posterior_
        The :class:`caviar.Posterior`.
    n_features_in_, feature_names_in_
        Number of columns; their names if ``X`` had any.

    Notes
    -----
    :meth:`score_samples` is the density of a new row given the fit, which integrates to one. Joint: the exact
    predictive :math:`\sum_k \langle\pi_k\rangle \mathrm{St}_{\nu_k + 1 - D}(x; m_k, \cdot)`. Independent: an
    approximation by Student-t distributions with the exact mean and covariance of each component.

    The covariance of the data, where a default needs one, has total weight as divisor, correlations shrunk by
    the factor N / (N + D), and a substitute for the variance of constant columns. The defaults depend on
    neither the order of the rows nor their repetition in place of weights, and follow the units of each column:
    the fit to columns in other units is the same fit in other units. (Beyond 10,000 distinct rows the start is
    made from a subsample, which the units change.)

    Examples
    --------
    >>> import caviar as cv
    >>> X = cv.datasets.load_faithful().values
    >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
    >>> order = mixture.weights_.argsort()
    >>> mixture.means_[order].round(1)
    array([[ 2.1, 54.7],
           [ 4.3, 79.9]])
    >>> mixture.predict([[2.0, 50.0], [4.5, 80.0]]) == order
    array([ True,  True])
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        mean_precision_family: str = "joint",
        tol: float = 1e-6,
        max_iter: int = 500,
        n_init: int = 1,
        weight_concentration_prior: ArrayLike | None = None,
        mean_prior: ArrayLike | None = None,
        mean_precision_prior: ArrayLike | None = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: ArrayLike | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int | Callable[..., None] = False,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.mean_precision_family = mean_precision_family
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _state(self, X: AnyArray, sample_weight: Array | None) -> Statement:
        require_choice("covariance_type", self.covariance_type, ("full",))
        require_choice("mean_precision_family", self.mean_precision_family, tuple(_FAMILIES))
        prior = self._prior(scale_of(X, sample_weight))
        self.weight_concentration_prior_ = prior.concentration
        self.mean_prior_ = prior.mean
        self.mean_precision_prior_ = prior.mean_precision
        self.degrees_of_freedom_prior_ = prior.df
        self.covariance_prior_ = prior.inverse_scale
        return Statement(_FAMILIES[self.mean_precision_family].state(X.shape[1], self.n_components, prior))

    def _prior(self, scale: DataScale) -> MixturePrior:
        """Return the prior: what was given, the rest from the data."""
        size, n_components = len(scale.mean), self.n_components
        family = _FAMILIES[self.mean_precision_family]
        concentration = _or(self.weight_concentration_prior, 1 / n_components)
        if np.ndim(concentration):
            concentration = as_array(
                "weight_concentration_prior", concentration, (n_components,), "one a component"
            )
            if np.any(concentration <= 0):
                raise ParameterError(
                    f"weight_concentration_prior must be positive; got {self.weight_concentration_prior!r}"
                )
        else:
            require_number("weight_concentration_prior", concentration, above=0)
        df = _or(self.degrees_of_freedom_prior, size)
        require_number("degrees_of_freedom_prior", df, above=size - 1)
        covariance = _or(self.covariance_prior, scale.covariance)
        return MixturePrior(
            concentration=concentration,
            mean=as_array("mean_prior", _or(self.mean_prior, scale.mean), (size,), "one number a column"),
            mean_precision=family.mean_precision(_or(self.mean_precision_prior, 1.0), scale),
            df=df,
            inverse_scale=as_positive_definite(
                "covariance_prior", covariance, (size, size), "columns by columns"
            ),
        )

    def _read(self, posterior: Posterior) -> MixtureDensity:
        found = _FAMILIES[self.mean_precision_family].components(posterior)
        self.weights_, self.means_ = found.weights, found.means
        self.covariances_, self.precisions_ = found.covariances, found.precisions
        self.weight_concentration_ = found.concentration
        self.mean_precision_ = found.mean_precision
        self.degrees_of_freedom_ = found.df
        return found.predictive


def _or(given: Any, default: Any) -> Any:
    return default if given is None else given
