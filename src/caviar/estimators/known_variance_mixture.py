"""The mixture of Gaussians in one dimension with known variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._errors import DataError
from .._typing import AnyArray
from ..data.rows import on_host
from ..densities import MixtureDensity, NormalMixture
from ..models import known_variance_mixture
from ..posterior.posterior import Posterior
from .arguments.checks import as_array, as_weights, require_number
from .arguments.declared import estimator
from .arguments.fitted import Fitted, keep
from .evidence import HasEvidence
from .mixtures.mixture import RowsToFit, Statement
from .mixtures.predictive import GaussianComponents
from .tables.lazy_rows import as_column, lazy_rows


@estimator
class KnownVarianceMixture(HasEvidence, GaussianComponents):
    r"""Mixture of Gaussians in one dimension with known variance and weights; only the means are learned.

    .. math:: \mu_k \sim N(m_0, s_0^2), \qquad z_n \sim \mathrm{Cat}(w), \qquad x_n \mid z_n \sim N(\mu_{z_n}, v)

    The model is :func:`caviar.models.known_variance_mixture`; see sections 2 and 3 of ``docs/mathematics.md``. Rows
    have shape (N,) or (N, 1). Tables with several columns are refused, so in a scikit-learn pipeline select one column
    first.

    Parameters
    ----------
    n_components
        K.
    prior_variance
        :math:`s_0^2` in squared units of the data. ``numpy.inf`` is the flat, improper prior; the objective is then not
        a lower bound of the evidence, and a component may lose all its rows.
    prior_mean
        :math:`m_0`.
    variance
        v.
    weights
        w, shape (K,), summing to one; by default 1/K.
    {tol}
    {max_iter}
    {n_init}
    {random_state}
    {n_jobs}
    {executor}
    {verbose}
    {uncertainty}
    {responsibilities}
    {swaps}

    Attributes
    ----------
    means_, mean_variances_
        :math:`m_k` and :math:`s_k^2` of :math:`q(\mu_k) = N(m_k, s_k^2)`, shape (K,).
    weights_
        The known weights, shape (K,).
    elbo_, lower_bound_
        Lower bound of the log evidence in nats, including all constants, at the means that are returned.
    elbo_trace_
        The ELBO at the start and after each iteration, shape (n_iter_ + 1,).
    n_iter_, converged_
        Number of iterations of the best start, without the passes that find it, and whether the fit converged.
    posterior_
        The :class:`caviar.Posterior`.
    n_features_in_
        1.

    Notes
    -----
    :meth:`score_samples` is the posterior predictive density :math:`\sum_k w_k N(x; m_k, v + s_k^2)`.

    Examples
    --------
    >>> import caviar as cv
    >>> mixture = cv.KnownVarianceMixture(2, random_state=0).fit([-3.1, -3.0, -2.9, 2.9, 3.0, 3.1])
    >>> np.sort(mixture.means_).round(3)
    array([-2.99,  2.99])
    >>> print(round(mixture.elbo_, 2))
    -15.49
    """

    n_components: int = field(default=2, kw_only=False)
    prior_variance: float = 100.0
    prior_mean: float = 0.0
    variance: float = 1.0
    weights: ArrayLike | None = None

    _kind_in_words = "Bayesian mixture of Gaussians of known variance"
    mean_variances_: ClassVar[Any] = Fitted()

    def _state(self, rows: RowsToFit, generator: np.random.Generator) -> Statement:
        require_number("variance", self.variance, above=0)
        if not (np.isscalar(self.prior_variance) and self.prior_variance == np.inf):
            require_number("prior_variance, if it is not infinite,", self.prior_variance, above=0)
        as_array("prior_mean", self.prior_mean, (), "one number")
        given = np.full(self.n_components, 1 / self.n_components) if self.weights is None else self.weights
        keep(self, weights_=as_weights("weights", given, self.n_components))
        model = known_variance_mixture(
            self.n_components,
            prior_variance=self.prior_variance,
            prior_mean=self.prior_mean,
            variance=self.variance,
            weights=self.weights_,
        )
        return Statement(model)

    def _read(self, posterior: Posterior) -> Callable[[], MixtureDensity]:
        mean = posterior["mean"]
        keep(self, means_=mean.mean, mean_variances_=mean.variance)
        variances = self.variance + mean.variance
        return partial(NormalMixture, self.weights_, mean.mean[:, None], 1 / np.sqrt(variances)[:, None])

    def _values(self, X: AnyArray) -> AnyArray:
        return X[:, 0]

    def _validated(self, X: Any, *, reset: bool) -> AnyArray:
        X = on_host(X)
        lazy = lazy_rows(X)
        if lazy is not None:
            X = as_column(lazy) if lazy.ndim == 1 else X
        elif (X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim) == 1:
            X = np.asarray(X).reshape(-1, 1)
        X = super()._validated(X, reset=reset)
        if X.shape[1] != 1:
            raise DataError(
                f"KnownVarianceMixture takes one column, shape (N,) or (N, 1); got shape {X.shape}"
            )
        return X
