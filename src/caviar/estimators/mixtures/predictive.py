"""Methods of fitted mixtures: conditioning, imputation, outliers, intervals and draws of the parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._errors import ParameterError
from ..._typing import AnyArray, Array
from ...densities import ConditionalPrediction, MixtureDensity, OutlierThreshold
from ...lazy.rows import in_memory
from ...numerics.arguments import central_ends, require_whole
from ...posterior.posterior import Posterior
from ..arguments.checks import as_generator
from ..arguments.fitted import Fitted
from ..priors.structure import Form
from .components import Component, components_of_gaussians
from .mixture import REMEDY, MixtureEstimator
from .uncertainty import known_sds, mean_marginal, mean_sds, weight_interval


@dataclass(frozen=True, eq=False)
class ParameterDraws:
    """Joint draws of all parameters from the posterior q.

    Attributes
    ----------
    weights
        Shape (n, K).
    means
        Shape (n, K, D).
    covariances
        Shape (n, ...), each in the shape of ``covariances_``.
    """

    weights: Array
    means: Array
    covariances: Array


@dataclass(frozen=True, eq=False)
class CredibleIntervals:
    """Central credible intervals of each parameter under the posterior q.

    Attributes
    ----------
    level
        Probability of the intervals.
    weights, means, covariances
        Lower and upper ends: shapes (2, K), (2, K, D), and (2, ...) in the shape of ``covariances_``. NaN for the
        covariances of point estimates, which have standard errors of weights and means only.
    """

    level: float
    weights: Array
    means: Array
    covariances: Array


class GaussianComponents(MixtureEstimator):
    """What all fitted mixtures of Gaussians say of their components."""

    means_: ClassVar[Any] = Fitted(REMEDY)

    def _components(self, level: float) -> list[Component]:
        return components_of_gaussians(self, level)

    @property
    def means_sd_(self) -> Array:
        """Standard deviations of ``means_``, in the same shape, as ``posterior_`` shows them; 0 for known means.

        If the means are point estimates, these are standard errors and need ``uncertainty="linear_response"``.
        """
        check_is_fitted(self)
        return known_sds(mean_sds(self), "means").reshape(self.means_.shape)


class PredictiveMethods(GaussianComponents):
    """Methods of a fitted mixture of Gaussians that use its predictive density and its posterior."""

    covariances_: ClassVar[Any] = Fitted(REMEDY)

    @property
    @abstractmethod
    def _form(self) -> Form:
        """How means and precisions are distributed together."""

    @abstractmethod
    def _factors(self, posterior: Posterior) -> Mapping[str, Any]:
        """Return the factors of the parameters."""

    def _width(self) -> int:
        return self.means_.shape[1]

    @property
    def predictive_(self) -> MixtureDensity:
        """Predictive density of a new row, which :meth:`score_samples` evaluates; it knows the names of the columns."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return self._predictive
        return replace(self._predictive, feature_names=tuple(map(str, names)))

    def marginal(self, columns: Any) -> MixtureDensity:
        """Return the marginal predictive density of some columns, by number or name, as a mixture.

        Examples
        --------
        >>> import caviar as cv
        >>> X = cv.datasets.load_faithful().values
        >>> waiting = cv.BayesianGaussianMixture(2, random_state=0).fit(X).marginal(1)
        >>> waiting.quantile([0.05, 0.95]).round()
        array([48., 89.])
        """
        return self.predictive_.marginal(columns)

    def condition(self, given: Mapping[Any, float] | Any, values: Any = None) -> MixtureDensity:
        """Return the predictive density of the other columns given values of some, as a mixture.

        Parameters
        ----------
        given
            A mapping from columns, by number or name, to their values; or the columns alone, if ``values`` is given.
        values
            Values of the columns in ``given``.

        Examples
        --------
        >>> import caviar as cv
        >>> X = cv.datasets.load_faithful().values
        >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
        >>> waiting = mixture.condition({0: 2.0})  # after an eruption of 2 minutes
        >>> print(waiting.mean.round(1), [round(end) for end in waiting.interval(0.9)])
        [54.3] [45, 64]
        """
        return self.predictive_.condition(given, values)

    def predict_columns(
        self, X: Any, targets: Any, *, given: Any = None, level: float = 0.95
    ) -> ConditionalPrediction:
        """Return mean, standard deviation and interval of some columns given the others, a regression by the mixture.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`; entries in the target columns are ignored. With ``given``, only the columns that
            it names. NaN marks missing entries.
        targets
            One or several columns, by number or name.
        given
            The columns of ``X``, if it does not have all columns of the fit.
        level
            Probability of the intervals.

        Examples
        --------
        >>> import caviar as cv
        >>> X = cv.datasets.load_faithful().values
        >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
        >>> mixture.predict_columns([[2.0], [4.5]], targets=1, given=0).mean.round(1)
        array([54.3, 81.1])
        """
        rows = self._rows(X) if given is None else X
        return self.predictive_.predict(rows, targets, given=given, level=level)

    def impute(self, X: Any, n_draws: int | None = None, random_state: Any = None) -> Array:
        """Return rows with their missing entries (NaN) filled in, by conditional means or by draws.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`.
        n_draws
            Number of random completions (multiple imputation), returned with shape (n_draws, N, D). None returns
            conditional means, shape (N, D).
        random_state
            Seed of the draws: a whole number, a Generator or a RandomState.

        Examples
        --------
        >>> import caviar as cv
        >>> X = cv.datasets.load_faithful().values
        >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
        >>> mixture.impute([[2.0, np.nan], [np.nan, 80.0]]).round(1)
        array([[ 2. , 54.3],
               [ 4.3, 80. ]])
        """
        return self.predictive_.impute(self._rows(X), n_draws, as_generator(random_state))

    def outlier_scores(self, X: Any) -> Array:
        """Return minus the log density of the observed entries of each row, in nats, shape (N,)."""
        self._require_true_values("outlier_scores")
        return self.predictive_.outlier_scores(self._rows(X))

    def outlier_threshold(self, rate: float, random_state: Any = None) -> OutlierThreshold:
        """Return the outlier score that a share ``rate`` of rows from the fitted mixture exceeds (false alarms).

        It is estimated from draws and comes with the standard error of the rate.
        """
        return self.predictive_.outlier_threshold(rate, as_generator(random_state))

    def is_outlier(self, X: Any, rate: float = 0.01, random_state: Any = None) -> AnyArray:
        """Return which rows are outliers, shape (N,), at the false alarm rate ``rate``.

        Examples
        --------
        >>> import caviar as cv
        >>> X = cv.datasets.load_faithful().values
        >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
        >>> mixture.is_outlier([[2.0, 54.0], [2.0, 80.0]], rate=0.001, random_state=0)
        array([False,  True])
        """
        self._require_true_values("is_outlier")
        return self.predictive_.is_outlier(self._rows(X), rate, as_generator(random_state))

    def sample_parameters(self, n_draws: int, random_state: Any = None) -> ParameterDraws:
        """Return joint draws of weights, means and covariances from the posterior q.

        With ``mean_precision_family="joint"`` the mean and the covariance of a component are dependent. Labels of
        components do not switch between draws. Point estimates and known values are repeated.

        Parameters
        ----------
        n_draws
            How many.
        random_state
            Seed of the draws: a whole number, a Generator or a RandomState.

        Examples
        --------
        >>> import caviar as cv
        >>> X = cv.datasets.load_faithful().values
        >>> draws = cv.BayesianGaussianMixture(2, random_state=0).fit(X).sample_parameters(1000, 0)
        >>> draws.weights.shape, draws.means.shape, draws.covariances.shape
        ((1000, 2), (1000, 2, 2), (1000, 2, 2, 2))
        """
        check_is_fitted(self)
        require_whole("n_draws", n_draws, 1)
        generator = as_generator(random_state)
        means, covariances = self._form.draw(self._factors(self.posterior_), n_draws, generator)
        return ParameterDraws(self._draw_weights(n_draws, generator), means, covariances)

    def _draw_weights(self, n_draws: int, generator: np.random.Generator) -> Array:
        if "weights" in self.posterior_:
            return np.asarray(self.posterior_["weights"].sample(n_draws, seed=generator))
        return np.broadcast_to(self.weights_, (n_draws, len(self.weights_)))

    def credible_intervals(
        self, level: float = 0.95, *, n_draws: int = 10_000, random_state: Any = 0
    ) -> CredibleIntervals:
        """Return central credible intervals of weights, means and covariances.

        Intervals of means are those of a Student-t or Normal distribution, and intervals of weights with a Dirichlet
        prior those of a Beta distribution, with the standard deviations that ``posterior_`` shows (``uncertainty=``).
        Intervals of covariances, and of the weights of a Dirichlet process under mean field, are quantiles of draws
        from q.

        Parameters
        ----------
        level
            Probability of each interval, between 0 and 1.
        n_draws, random_state
            Number of draws, and their seed.

        Raises
        ------
        ParameterError
            If the parameters are point estimates, as in maximum likelihood, and so have no posterior.

        Examples
        --------
        >>> import caviar as cv
        >>> X = cv.datasets.load_faithful().values
        >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
        >>> mixture.credible_intervals(0.9).means[:, mixture.means_[:, 0].argmin()].round(1)
        array([[ 2. , 53.5],
               [ 2.1, 55.5]])
        """
        check_is_fitted(self)
        ends = central_ends(level)
        marginal = mean_marginal(self)
        if marginal is None:
            raise ParameterError(
                f"{type(self).__name__} gives points, which have no credible intervals; fit a BayesianGaussianMixture, "
                f"or fit with uncertainty='linear_response' for standard errors"
            )
        draws = self.sample_parameters(n_draws, random_state)
        weights = weight_interval(self, level)
        return CredibleIntervals(
            level,
            np.quantile(draws.weights, ends, axis=0) if weights is None else np.stack(weights),
            np.stack(marginal.interval(level)),
            self._covariance_interval(draws.covariances, ends),
        )

    def _covariance_interval(self, draws: Array, ends: tuple[float, float]) -> Array:
        """Return quantiles of draws; NaN of points, which have no posterior."""
        if all(self.posterior_[name].learnt is None for name in self.posterior_):
            return np.full((2, *draws.shape[1:]), np.nan)
        return np.quantile(draws, ends, axis=0)

    @abstractmethod
    def _require_true_values(self, method: str) -> None:
        """Refuse to judge rows with errors by the density of true values."""

    def _rows(self, X: Any) -> AnyArray:
        check_is_fitted(self)
        # what follows from each row is as large as the rows
        return in_memory(self._validated(X, reset=False))
