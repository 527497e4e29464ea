"""The mixture of Gaussians fitted by EM: maximum likelihood, or maximum a posteriori."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from sklearn.utils.validation import check_is_fitted

from .._errors import DataError, ParameterError
from .._typing import AnyArray, Array
from ..densities import measured_log_density
from ..fitting.many.kinds import Differences
from ..fitting.model import Model
from ..language import Variable
from ..lazy.rows import in_memory
from ..posterior.posterior import Posterior
from .arguments.checks import as_array, as_generator, as_weights, require_choice, require_number
from .arguments.declared import estimator
from .mixtures.gaussian import GaussianEstimator, restate, state
from .mixtures.mixture import RowsToFit, Statement
from .priors.known import fixed_weights
from .priors.map_prior import check_names, map_concentration, map_prior
from .priors.structure import CovarianceStructure, Form
from .priors.weights import DirichletWeights, KnownWeights, WeightPrior
from .tables.data_scale import DataScale, scale_of

_RELATIVE_FLOOR = 1e-6


@estimator
class GaussianMixture(GaussianEstimator):
    r"""Mixture of Gaussians fitted by EM: maximum likelihood, or with ``prior=`` maximum a posteriori (MAP).

    .. math:: x_n \sim \sum_k \pi_k N(\mu_k, \Lambda_k^{-1})

    EM is coordinate ascent on the model of :func:`caviar.models.maximum_likelihood_mixture` with point masses for the
    weights, means and precisions; see sections 1 and 4 of ``docs/mathematics.md``.

    Parameters
    ----------
    n_components
        Number of components K. The maximum likelihood cannot choose it, because it grows with every component;
        :class:`BayesianGaussianMixture` can.
    covariance_type
        Structure of the covariance matrices. ``"full"``: each component has its own. ``"tied"``: all components have
        the same one. ``"diag"``: they are diagonal. ``"spherical"``: they are multiples of the identity. ``"unit"``:
        they are the identity and are not estimated.
    {tol}
    reg_covar
        Smallest eigenvalue allowed for the covariance matrices, in squared units of the data. The fit maximises the
        likelihood over such matrices, so that no component collapses onto a single row. (scikit-learn adds its
        ``reg_covar`` to the diagonal instead.) ``"auto"`` measures each column in its standard deviation and uses 1e-6,
        or no floor if ``prior`` has a covariance. 0 means no floor.
    {max_iter}
    n_init
        Number of starts; the best fit is kept. With ``means_init`` there is only one start.
    init_params
        How starts are found: ``"auto"``, or as in scikit-learn ``"kmeans"``, ``"k-means++"``, ``"random"`` or
        ``"random_from_data"``. Or an array of labels (N,) or responsibilities (N, K) to start from.
    prior
        None for maximum likelihood. For MAP, a mapping with any of these priors. ``"weight_concentration"``: the
        concentration of a Dirichlet, a number or shape (K,), at least 1. ``"mean"``, shape (D,) or (K, D), with
        ``"mean_precision"``: shape (D, D), for diagonal structures (D,), or a number in units of the inverse covariance
        of the data. ``"covariance"``: the inverse scale of a Wishart prior of the precisions, in the shape of
        ``covariances_`` or of the covariance of one component; with ``"degrees_of_freedom"`` above D + 1, by default D
        + 2, so that the mode of the prior is this covariance (for diagonal structures D is 1 here). Priors that are not
        given are flat and have density 1 in the objective.
    weights_init, means_init, precisions_init
        Starting values, of shapes (K,), (K, D), and that of ``precisions_``. If means are given there is one start,
        with equal weights and the covariance of the data unless these are given too. Without means, each start begins
        with the clusters of ``init_params``, which are matched to the given weights and precisions. With
        ``warm_start=True`` a second fit continues where the first ended.
    fixed
        Known parameters: a mapping with any of ``"weights"`` (K,), ``"means"`` (K, D), and ``"covariances"`` in the
        shape of ``covariances_``. NaN marks means and covariances to be estimated; weights must be given completely.
    {semi_supervised}
    {warm_start}
    {random_state}
    {n_jobs}
    {executor}
    {verbose}
    {uncertainty}
    {responsibilities}
    {swaps}

    Attributes
    ----------
    n_components_
        K.
    weights_, means_, covariances_, precisions_
        The fitted parameters: (K,), (K, D), and ``"full"`` (K, D, D), ``"tied"`` (D, D), ``"diag"`` (K, D),
        ``"spherical"`` and ``"unit"`` (K,).
    lower_bound_, elbo_
        Log-likelihood of all rows in nats (a sum, not a mean); with ``prior``, plus the log density of the prior.
    elbo_trace_
        This objective at the start and after each iteration, shape (n_iter_ + 1,). It never decreases.
    n_iter_, converged_
        Number of iterations of the best start, without the passes that find it, and whether the fit converged.
    reg_covar_
        The floor that was used: a number, 0 for no floor, or one number for each column, shape (D,).
    posterior_
        The :class:`caviar.Posterior`, whose factors are point masses. Its objective also contains the constant log
        Gamma(K) of the uniform Dirichlet prior of the weights.
    {columns}

    Notes
    -----
    :meth:`score_samples` is the density :math:`\sum_k \pi_k N(x; \mu_k, \Lambda_k^{-1})`.

    Examples
    --------
    >>> import caviar as cv
    >>> X = cv.datasets.load_faithful().values
    >>> mixture = cv.GaussianMixture(2, random_state=0).fit(X)
    >>> order = mixture.weights_.argsort()
    >>> mixture.means_[order].round(2)
    array([[ 2.04, 54.48],
           [ 4.29, 79.97]])
    >>> print(round(mixture.lower_bound_, 2), round(mixture.score_samples(X).sum(), 2))
    -1130.26 -1130.26
    """

    n_components: int = field(default=1, kw_only=False)
    reg_covar: float | str = "auto"
    prior: Mapping[str, Any] | None = None
    weights_init: ArrayLike | None = None
    means_init: ArrayLike | None = None
    precisions_init: ArrayLike | None = None

    _kind_in_words = "Maximum-likelihood mixture of Gaussians"
    _objective_in_words = "log-likelihood"

    @classmethod
    def from_parameters(
        cls,
        weights: ArrayLike,
        means: ArrayLike,
        covariances: ArrayLike | None = None,
        *,
        covariance_type: str = "full",
        **arguments: Any,
    ) -> Self:
        """Return a mixture with the given parameters, which can be used like a fitted one.

        Parameters
        ----------
        weights, means
            Shapes (K,), summing to one, and (K, D).
        covariances
            Covariances in the shape of ``covariances_``; not given for ``"unit"``.
        covariance_type
            Structure of the covariances, as for the constructor.
        **arguments
            Further arguments of the estimator.

        Raises
        ------
        ParameterError
            If a shape or a value is invalid.

        Notes
        -----
        ``elbo_`` is NaN, because there are no data.

        Examples
        --------
        >>> import caviar as cv
        >>> mixture = cv.GaussianMixture.from_parameters(
        ...     [0.3, 0.7], [[0.0], [4.0]], [1.0, 0.25], covariance_type="spherical"
        ... )
        >>> mixture.predict([[0.5], [3.0]])
        array([0, 1])
        """
        n_components, size = _as_table(means).shape
        mixture = cls(n_components, covariance_type=covariance_type, **arguments)
        mixture._check_settings()
        structure = mixture._structure
        known = {
            "weights": _positive("weights", as_weights("weights", weights, n_components)),
            "mean": as_array("means", means, (n_components, size), "one row a component"),
        }
        if not structure.is_known:
            given = structure.checked("covariances", covariances, n_components, size)
            known["precision"] = np.broadcast_to(structure.invert(given), structure.shape(n_components, size))
        elif covariances is not None:
            structure.checked("covariances", covariances, n_components, size)
        uncorrelated = None if structure.has_independent_columns else np.eye(size)
        scale = DataScale(known["mean"].mean(axis=0), np.ones(size), uncorrelated, float(n_components))
        model = state(
            mixture._weight_prior(n_components),
            mixture._form,
            map_prior(None, structure, scale, n_components),
            n_components,
        )
        mixture.n_features_in_ = size
        posterior = model.fit(
            {"x": known["mean"]}, point=mixture._point_masses(model), init=known, max_iter=0
        )
        posterior.elbo, posterior.elbo_trace = np.nan, np.empty(0)
        mixture.reg_covar_ = 0.0
        mixture._generator = as_generator(mixture.random_state).spawn(1)[0]
        mixture._keep(posterior)
        return mixture

    @property
    def _form(self) -> Form:
        return self._structure.independent

    @property
    def _is_joint(self) -> bool:
        return False

    def _weight_prior(self, n_components: int) -> WeightPrior:
        known = fixed_weights(self.fixed, n_components)
        if known is not None:
            return KnownWeights(known)
        return DirichletWeights(map_concentration(self.prior, n_components))

    def _check_settings(self) -> None:
        super()._check_settings()
        check_names(self.prior)

    def _check_n_components(self) -> None:
        if isinstance(self.n_components, str) and self.n_components == "auto":
            raise ParameterError(
                "n_components of GaussianMixture must be a whole number; got 'auto', and a likelihood cannot choose: "
                "it grows with every component. Use BayesianGaussianMixture(n_components='auto'), whose ELBO "
                "can, or fit several numbers and compare their bic(X)"
            )
        super()._check_n_components()

    def _state(self, rows: RowsToFit, generator: np.random.Generator) -> Statement:
        self._check_rows(rows.n_counting)
        scale = scale_of(
            rows.X,
            rows.weights,
            correlated=not self._structure.has_independent_columns,
            names=vars(self).get("feature_names_in_"),
        )
        self.reg_covar_ = self._floor(scale)
        floor = self.reg_covar_ if np.any(self.reg_covar_) else None
        prior = map_prior(self.prior, self._structure, scale, self.n_components, floor)
        noise = self._noise(rows)
        given = self._weight_prior(self.n_components), self._form, prior, self.n_components
        if self.prior is None and self.fixed is None and noise is None and not self._structure.is_known:
            values = {} if floor is None else {"precision": np.asarray(floor)}
            model = restate(("likelihood", self.covariance_type), values, *given)
        else:
            model = state(*given, noise)
        point = self._point_masses(model)
        starts = self._starts(rows, scale, generator)
        given = self._given_start(scale)
        if given and not (self.warm_start and hasattr(self, "posterior_")):
            starts = self._starts_with(given, starts, model, point, rows, generator)
        return Statement(model, point, starts)

    def _starts_with(
        self,
        given: dict[str, Array],
        starts: str | Sequence[Mapping[str, Any] | Posterior],
        model: Model,
        point: tuple[str, ...],
        rows: RowsToFit,
        generator: np.random.Generator,
    ) -> list[dict[str, Array]]:
        """Return where starts begin with the parameters that a user gave in the place of their own."""
        if "mean" in given:
            return [given]
        begins = [starts] * self.n_init if isinstance(starts, str) else starts
        ends = [
            model.fit(
                self._data(rows),
                seed=generator,
                max_iter=0,
                point=point,
                init=begin,
                sample_weight=rows.weights,
                executor=self._place,
            )
            for begin in begins
        ]
        found = ({name: end[name].value for name in point} for end in ends)
        return [_with_given(own, given, self._structure) for own in found]

    def _point_masses(self, model: Model) -> tuple[str, ...]:
        """Return the names of the parameters that are learnt: what is not repeated over the rows, and not observed."""
        known = self._fixed(self.n_features_in_).whole(is_joint=False)
        return tuple(
            name
            for name, variable in model.structure.variables.items()
            if not _along_rows(variable) and (name not in known or variable.is_flat)
        )

    def _differences_of_many(self, X: Array, counts: AnyArray) -> Differences | None:
        if self.prior is not None or self.reg_covar != "auto" or self._structure.is_known:
            return None
        _, variances, is_ordinary = self._structure.of_many(X, counts)
        is_few = counts < self.n_components
        return Differences({}, {"precision": _RELATIVE_FLOOR * variances}, ~is_ordinary | is_few)

    def _check_rows(self, n_rows: int) -> None:
        if self.prior is None and n_rows < self.n_components:
            raise DataError(
                f"{self.n_components} components need at least as many rows with weight; got {n_rows}. Give more rows, "
                f"fewer components, or a prior"
            )

    def _floor(self, scale: DataScale) -> float | Array:
        if isinstance(self.reg_covar, str):
            require_choice("reg_covar, if it is not a number,", self.reg_covar, ("auto",))
            if self._structure.is_known or "covariance" in (self.prior or {}):
                return 0.0
            covariance = self._structure.covariance_of(scale)
            return _RELATIVE_FLOOR * (np.diagonal(covariance) if covariance.ndim == 2 else covariance)
        require_number("reg_covar", self.reg_covar)
        return float(self.reg_covar)

    def _given_start(self, scale: DataScale) -> dict[str, Array]:
        """Return the parameters that the user gave for a start, all of them if there are means."""
        n_components, size, structure = self.n_components, len(scale.mean), self._structure
        weights, means, precisions = self.weights_init, self.means_init, self.precisions_init
        start = {}
        if means is not None:
            start["mean"] = as_array("means_init", means, (n_components, size), "one row a component")
            weights = np.full(n_components, 1 / n_components) if weights is None else weights
        if weights is not None:
            start["weights"] = _positive("weights_init", as_weights("weights_init", weights, n_components))
        if precisions is not None:
            precisions = structure.checked("precisions_init", precisions, n_components, size)
        elif means is not None:
            precisions = structure.invert(structure.covariance_of(scale))
        if precisions is not None and not structure.is_known:
            start["precision"] = np.broadcast_to(precisions, structure.shape(n_components, size))
        return start

    def _objective_offset(self) -> float:
        """Return the log density of the flat prior of the weights, unless another was asked for."""
        if "weights" in (self.fixed or {}):
            return 0.0
        return 0.0 if "weight_concentration" in (self.prior or {}) else float(gammaln(self.n_components))

    def score_samples(self, X: Any, noise_covariance: Any = None) -> Array:
        """Return the log density of each row, shape (N,), in nats; the density integrates to one.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`.
        noise_covariance
            Covariance of the errors of the rows, as for :meth:`fit`; the density is then that of the measured values.
            It is required if the fit had it.
        """
        check_is_fitted(self)
        if noise_covariance is None:
            return super().score_samples(X)
        validated = self._validated(X, reset=False)
        noise = self._noise(RowsToFit(validated, noise_covariance=noise_covariance))
        assert noise is not None
        rows = np.asarray(in_memory(validated), dtype=np.float64)
        return measured_log_density(self._predictive, rows, noise.covariances)

    def aic(self, X: Any, noise_covariance: Any = None) -> float:
        """Return Akaike's information criterion, 2 * parameters - 2 * log-likelihood of the rows; lower is better.

        Parameters
        ----------
        X, noise_covariance
            As for :meth:`score_samples`.
        """
        return -2 * float(self.score_samples(X, noise_covariance).sum()) + 2 * self._n_parameters()

    def bic(self, X: Any, noise_covariance: Any = None) -> float:
        """Return the Bayesian information criterion, log(N) * parameters - 2 * log-likelihood; lower is better.

        Parameters
        ----------
        X, noise_covariance
            As for :meth:`score_samples`.
        """
        log_densities = self.score_samples(X, noise_covariance)
        return -2 * float(log_densities.sum()) + float(np.log(len(log_densities))) * self._n_parameters()

    def _n_parameters(self) -> int:
        n_components, size = self.means_.shape
        return n_components - 1 + n_components * size + self._structure.n_parameters(n_components, size)


def _as_table(means: Any) -> Array:
    """Return means as numbers in rows and columns."""
    try:
        table = np.asarray(means, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"means must hold numbers, one row a component; got {means!r}") from None
    if table.ndim != 2 or not table.size:
        raise ParameterError(f"means must have shape (K, D), one row a component; got shape {table.shape}")
    return table


def _positive(name: str, weights: Array) -> Array:
    """Return weights unless one is zero, which no Dirichlet can be at."""
    if not np.all(weights):
        raise ParameterError(
            f"{name} must be positive; component {int(np.argmin(weights))} has weight 0. Leave it out"
        )
    return weights


def _along_rows(variable: Variable) -> bool:
    return any(plate.name == "obs" for plate in variable.plates)


def _with_given(
    found: Mapping[str, Array], given: Mapping[str, Array], structure: CovarianceStructure
) -> dict[str, Array]:
    r"""Return the parameters of a start with given ones in the place of those that were found.

    Clusters come in no order, and components with given weights or precisions differ: so cluster c with share
    :math:`w_c` and covariance :math:`S_c` becomes the component k of one to one pairs that maximise

    .. math:: \sum w_c \bigl(\log\pi_k + \tfrac12 \log|\Lambda_k| - \tfrac12 \mathrm{tr}(\Lambda_k S_c)\bigr),

    the expected log density of its rows, from what is given of :math:`\pi` and :math:`\Lambda`.

    Parameters
    ----------
    found
        Weights, means and precisions of clusters, by the names of the model's variables.
    given
        The same of components; weights, precisions or both.
    structure
        Of the precisions.
    """
    n_components, n_features = found["mean"].shape
    fit = np.zeros((n_components, n_components))
    if "weights" in given:
        fit += np.log(given["weights"])
    if "precision" in given:
        fit += _gaussian_fit(found["precision"], given["precision"], structure, n_components, n_features)
    shares = found.get("weights", np.full(n_components, 1 / n_components))
    _, of_cluster = linear_sum_assignment(shares[:, None] * fit, maximize=True)
    cluster = np.argsort(of_cluster)
    sorted_ = {
        name: value
        if name == "precision" and structure.n_precisions(n_components) is None
        else value[cluster]
        for name, value in found.items()
    }
    return {**sorted_, **given}


def _gaussian_fit(
    found: Array, given: Array, structure: CovarianceStructure, n_components: int, n_features: int
) -> Array:
    """Return the part of the expected log density that precisions have, clusters x components."""
    covariances = structure.matrices(structure.invert(found), n_components, n_features)
    precisions = structure.matrices(given, n_components, n_features)
    traces = np.einsum("kij,cji->ck", precisions, covariances)
    return 0.5 * (np.linalg.slogdet(precisions)[1] - traces)
