"""The Bayesian mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..engine.ascent.status import Status
from ..fitting.many.kinds import Differences
from ..fitting.model import Model
from ..lazy.rows import in_memory
from ..posterior.posterior import Posterior
from ._arguments import require_choice, require_number
from ._checkpointing import NextFit
from ._component_prior import component_prior
from ._data_scale import DataScale, scale_of
from ._declared import estimator
from ._fitted import Fitted, keep
from ._gaussian import GaussianEstimator, restate, state
from ._known import fixed_weights
from ._lazy_rows import whole
from ._mean_precision_prior import learnt_mean_precision
from ._mixture import REMEDY, RowsToFit, Statement
from ._scale_prior import LearntScale, is_learnt, learnt_scale
from ._structure import ComponentPrior, Components, Form
from ._weights import KnownWeights, WeightPrior, weight_prior
from .automatic import Move, Problem, best_search
from .automatic.arguments import AUTO_CONCENTRATION, is_auto, refuse_one_per_component, start_of


@estimator
class BayesianGaussianMixture(GaussianEstimator):
    r"""Bayesian mixture of Gaussians with unknown weights, means and precision matrices.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \Lambda_k \sim \mathrm{Wishart}(\nu, B), \quad z_n \sim
        \mathrm{Cat}(\pi), \quad x_n \mid z_n \sim N(\mu_{z_n}, \Lambda_{z_n}^{-1})

    with one of two priors of the means, and one of two forms of the posterior that belong to them:

    - ``mean_precision_family="joint"``: :math:`\mu_k \mid \Lambda_k \sim N(m_0, (\kappa\Lambda_k)^{-1})`,
      :math:`q(\mu_k, \Lambda_k)` a Normal-Wishart; :func:`caviar.models.normal_wishart_mixture`;
    - ``mean_precision_family="independent"``: :math:`\mu_k \sim N(m_0, S_0)`, :math:`q(\mu_k)\, q(\Lambda_k)`;
      :func:`caviar.models.gaussian_mixture`.

    Section 5 of ``docs/mathematics.md``.

    Parameters
    ----------
    n_components
        K; or ``"auto"``, the number that no split, merge or deletion of components improves, see Notes.
    covariance_type
        What the covariance matrices share, each with its own conjugate posterior:

        - ``"full"``: nothing, one matrix a component;
        - ``"tied"``: all are one matrix, whose degrees of freedom grow by N;
        - ``"diag"``: each is diagonal, a Gamma a component and column;
        - ``"spherical"``: each is a multiple of the identity, whose degrees of freedom grow by :math:`D N_k`;
        - ``"unit"``: each is the identity, which is known.
    mean_precision_family
        ``"joint"`` or ``"independent"``, see above.
    tol
        The fit has converged when an iteration changes the bound by less than this, in nats per row.
    {max_iter}
    n_init
        Number of starts; the best fit is kept. With ``n_components="auto"``, of searches.
    init_params
        Where the starts begin: ``"auto"``, or as in scikit-learn ``"kmeans"``, ``"k-means++"``, ``"random"``,
        ``"random_from_data"``; or labels (N,) or responsibilities (N, K). With ``n_components="auto"`` a search
        begins with one component, or with labels or responsibilities of any number.
    weight_concentration_prior_type
        ``"dirichlet_distribution"``, or ``"dirichlet_process"``: stick-breaking weights, of which the last takes
        all that is left.
    weight_concentration_prior
        :math:`\alpha`, a number or shape (K,); 1/K by default, and 1 with ``n_components="auto"``. Of a process,
        the one number :math:`\gamma`.
    mean_prior
        :math:`m_0`, shape (D,), or (K, D); the mean of the data by default.
    mean_precision_prior
        How many rows the prior knowledge of a mean is worth. ``"joint"``: :math:`\kappa`, a number or (K,); or
        ``"auto"``, learnt: one number for all components, with the prior Gamma(1, 1) and a factor of its own,
        ``posterior_["mean_precision"]``. ``"independent"``: :math:`S_0^{-1}` in units of the inverse covariance of the
        data, 1 where it is ``"auto"``; or :math:`S_0^{-1}` itself, (D, D) or (K, D, D), of diagonal structures (D,) or
        (K, D). None is 1, as in scikit-learn.
    degrees_of_freedom_prior
        :math:`\nu > D - 1` (``"diag"``, ``"spherical"``: > 0), a number or (K,); D by default.
    covariance_prior
        :math:`B`, the inverse scale of the Wishart; the prior expects the precision :math:`\nu B^{-1}`.

        - ``"auto"``: learnt. All components have one diagonal :math:`B`, whose entries have a prior and a factor of
          their own, ``posterior_["scale"]``; see Notes.
        - ``"empirical"``, or None as in scikit-learn: the covariance of the data, with its correlations shrunk.
        - an array in the shape of ``covariances_`` or of one component's. It is *not* divided by the degrees of
          freedom, in scikit-learn neither: the same matrix means the same there. ``"diag"`` and ``"spherical"``: a
          Wishart for one column, :math:`\mathrm{Gamma}(\nu/2, B/2)`.
    reg_covar
        0. In scikit-learn it is added to the variances; here the prior keeps them above zero, and a larger
        ``covariance_prior`` keeps them larger.
    fixed
        Parameters that are known, NaN where they are to be learnt: a mapping with any of ``"weights"`` (K,), all of
        them, ``"means"`` (K, D), and ``"covariances"`` in the shape of ``covariances_``. In the joint form a component
        has both or neither. The bound is then one of log p(x, known values).
    {semi_supervised}
    {warm_start}
    {random_state}
    {n_jobs}
    {executor}
    verbose
        Whether to print a line on each iteration (``n_components="auto"``: on each move); or a function that is
        called with the progress of each iteration over all rows.
    {uncertainty}
    {responsibilities}
    {swaps}

    Attributes
    ----------
    n_components_
        K, given or found.
    moves_
        With ``n_components="auto"`` a list of each :class:`caviar.Move` that was tried on all rows, accepted or
        refused.
    weights_
        Expected weights, shape (K,).
    means_
        Expected means :math:`m_k`, shape (K, D).
    precisions_
        Expected precisions :math:`\langle\Lambda_k\rangle = \nu_k B_k^{-1}`: ``"full"`` (K, D, D), ``"tied"`` (D,
        D), ``"diag"`` (K, D), ``"spherical"`` and ``"unit"`` (K,).
    covariances_
        Their inverses :math:`B_k / \nu_k`, which is what scikit-learn gives; not the expectation of
        :math:`\Lambda_k^{-1}`, which may be infinite.
    weight_concentration_, degrees_of_freedom_, mean_precision_
        Parameters of the factors: :math:`\alpha_k` (K,), of a process the pair :math:`(a_k, b_k)` of Betas, (K -
        1,) each; :math:`\nu_k`; and :math:`\kappa_k` or, if independent, :math:`S_k^{-1}`.
    weight_concentration_prior_, mean_prior_, mean_precision_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior that was used; of what was learnt its expectation, that of a scale in the shape of one component's
        covariance.
    elbo_, lower_bound_
        Lower bound of the log evidence in nats, every constant included; comparable between any two fits to the
        same rows.
    elbo_trace_
        The bound at the start and after each iteration, shape (n_iter_ + 1,). It never falls.
    n_iter_, converged_
        Iterations of the kept start, without the sweeps by which it was found (``n_components="auto"``: of the last
        fit after an accepted move), and whether the bound settled.
    posterior_
        The :class:`caviar.Posterior`.
    {columns}

    Notes
    -----
    :meth:`score_samples` is the density of a new row given the fit, which integrates to one. Joint: the exact
    predictive :math:`\sum_k \langle\pi_k\rangle \mathrm{St}_{\nu_k + 1 - D}(x; m_k, \cdot)`. Independent: an
    approximation by Student-t distributions with the exact mean and covariance of each component.

    ``n_components="auto"`` begins with one component, unless ``init_params`` says otherwise, and goes through
    moves: split a component in two, merge two into one, delete one. Moves are proposed on responsibilities alone:
    those of a split are a fit of two components of the same statement to the rows of one, weighted by their share
    in it; merges are ranked by a fit of one against two in the same way; what a deleted component had goes to the
    others. Promising moves of different components are tried at once, then by themselves. Each is fitted to all
    rows by the ordinary loop and accepted only if the ELBO, every constant included, rises by more than ``tol`` a
    row; where none is, the search ends. Beyond 20,000 rows proposals are made from a subsample. No N x K x K array
    exists.

    The prior must not change with K, or ELBOs would compare priors: so the concentration of the weights is 1 by
    default. The ELBO lacks up to log K! of the log evidence (:func:`caviar.compare_mixtures`), so of two numbers
    that fit the data almost equally well the smaller is found. With a given ``covariance_prior`` the number depends on
    its scale, too.

    A scale that is learnt is stated in the language, as the rest of the mixture, and its divergence is in the ELBO:

    .. math::
        B = \mathrm{diag}(b_d + \epsilon_d), \qquad b_d \sim \mathrm{Gamma}(1, 1 / s_d^2)

    with the variances :math:`s_d^2` of the data (``"spherical"``: one :math:`b`, and their mean). The prior of
    :math:`b_d` is so wide that the components decide, and their correlations are not drawn to those of the data. The
    small known :math:`\epsilon_d` keeps the evidence finite where rows of a component are all equal in some direction.

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
    array([[ 2. , 54.5],
           [ 4.3, 80. ]])
    >>> mixture.predict([[2.0, 50.0], [4.5, 80.0]]) == order
    array([ True,  True])
    >>> found = cv.BayesianGaussianMixture("auto", random_state=0).fit(X)
    >>> found.n_components_
    2
    >>> found.moves_[0]
    split   0            -> 2 components    ELBO -1306.4052 -> -1167.6496  (+138.8)  accepted
    """

    n_components: int | str = field(default=1, kw_only=False)
    mean_precision_family: str = "joint"
    weight_concentration_prior_type: str = "dirichlet_distribution"
    weight_concentration_prior: ArrayLike | None = None
    mean_prior: ArrayLike | None = None
    mean_precision_prior: ArrayLike | str | None = "auto"
    degrees_of_freedom_prior: ArrayLike | None = None
    covariance_prior: ArrayLike | str | None = "auto"
    reg_covar: float = 0.0

    _kind_in_words = "Bayesian mixture of Gaussians"
    weight_concentration_: ClassVar[Any] = Fitted(REMEDY)
    mean_precision_: ClassVar[Any] = Fitted(REMEDY)
    degrees_of_freedom_: ClassVar[Any] = Fitted(REMEDY)

    @property
    def _form(self) -> Form:
        return getattr(self._structure, self.mean_precision_family)

    @property
    def _is_joint(self) -> bool:
        return self.mean_precision_family == "joint" and not self._structure.is_known

    def _weight_prior(self, n_components: int) -> WeightPrior:
        known = fixed_weights(self.fixed, n_components)
        if known is not None:
            return KnownWeights(known)
        given = self.weight_concentration_prior
        if given is None and is_auto(self.n_components):
            given = AUTO_CONCENTRATION
        return weight_prior(self.weight_concentration_prior_type, given, n_components)

    def _check_settings(self) -> None:
        super()._check_settings()
        require_choice("mean_precision_family", self.mean_precision_family, ("joint", "independent"))
        require_number("reg_covar", self.reg_covar)
        if self.reg_covar:
            raise ParameterError(
                f"reg_covar of BayesianGaussianMixture must be 0, for its prior keeps variances above zero; got "
                f"{self.reg_covar!r}. Leave it out; a larger covariance_prior keeps variances larger"
            )
        if is_auto(self.n_components) and self.fixed is not None:
            raise ParameterError("fixed parameters need a number of components; got n_components='auto'")
        if is_auto(self.n_components) and self.semi_supervised:
            raise ParameterError(
                "semi_supervised=True needs a number of components for its labels; got n_components='auto', which "
                "moves them. Give their number"
            )

    def _check_n_components(self) -> None:
        if is_auto(self.n_components):
            return
        if isinstance(self.n_components, str):
            raise ParameterError(f"n_components must be a whole number or 'auto'; got {self.n_components!r}")
        super()._check_n_components()

    def _state(self, rows: RowsToFit, generator: np.random.Generator) -> Statement:
        scale = scale_of(rows.X, rows.weights, correlated=not self._structure.has_independent_columns)
        noise = self._noise(rows)
        n_components: Any = self.n_components
        if is_auto(n_components):
            self._refuse_one_per_component(scale)
            if noise is not None:
                raise ParameterError("noise_covariance needs a number of components; got n_components='auto'")
            n_components = 2
        weights = self._weight_prior(n_components)
        prior = self._component_prior(scale, n_components)
        self.weight_concentration_prior_ = weights.concentration
        self.mean_prior_ = prior.mean
        self.mean_precision_prior_ = prior.mean_precision.known
        self.degrees_of_freedom_prior_ = prior.df
        self.covariance_prior_ = None if prior.inverse_scale is None else prior.inverse_scale.known
        learnt, given = prior.inverse_scale, (weights, self._form, prior, n_components)
        numbers: tuple[Any, ...] = (weights.concentration, prior.mean_precision.known, prior.df)
        is_plain = noise is None and self.fixed is None and not any(map(np.ndim, numbers))
        if self._is_by_default() and is_plain and isinstance(learnt, LearntScale):
            values = {"theta.mean": prior.mean, **learnt.constants()}
            model = restate((self.covariance_type, type(weights), *numbers), values, *given)
        else:
            model = state(*given, noise=noise)
        if not is_auto(self.n_components):
            return Statement(model, starts=_known_to(model, self._starts(rows, scale, generator)))

        def model_of(number: int) -> Model:
            own = self._component_prior(scale, number)
            return state(self._weight_prior(number), self._form, own, number)

        return Statement(model, model_of=model_of)

    def _differences_of_many(self, X: Array, counts: AnyArray) -> Differences | None:
        if not (self._is_by_default() and is_learnt(self.covariance_prior)):
            return None
        mean, variances, is_ordinary = self._structure.of_many(X, counts)
        constants = {"theta.mean": mean, **LearntScale.of_many(variances, counts)}
        return Differences(constants, {}, ~is_ordinary)

    def _is_by_default(self) -> bool:
        """Whether the prior of the means depends on the data by their mean alone, and all components have the same."""
        precision = self.mean_precision_prior
        is_common = precision is None or np.ndim(precision) == 0
        return self.mean_prior is None and self._is_joint and is_common

    def _component_prior(self, scale: DataScale, n_components: int) -> ComponentPrior:
        return component_prior(
            self._structure,
            self._form,
            scale,
            n_components,
            mean=self.mean_prior,
            mean_precision=self.mean_precision_prior,
            df=self.degrees_of_freedom_prior,
            covariance=self.covariance_prior,
        )

    def _refuse_one_per_component(self, scale: DataScale) -> None:
        """Refuse priors that are given for each component, where there is no telling how many there will be."""
        rank = 0 if self._structure.is_known else self._structure.covariance_of(scale).ndim
        is_joint = self.mean_precision_family == "joint"
        refuse_one_per_component(
            {
                "weight_concentration_prior": (self.weight_concentration_prior, 0),
                "mean_prior": (self.mean_prior, 1),
                "mean_precision_prior": (self.mean_precision_prior, 0 if is_joint else max(rank, 1)),
                "degrees_of_freedom_prior": (self.degrees_of_freedom_prior, 0),
                "covariance_prior": (self.covariance_prior, rank),
            }
        )

    def _best(
        self,
        statement: Statement,
        data: Mapping[str, Any],
        sample_weight: Array | None,
        generator: np.random.Generator,
        next_fit: NextFit,
    ) -> Posterior:
        if statement.model_of is None:
            self.__dict__.pop("moves_", None)
            return super()._best(statement, data, sample_weight, generator, next_fit)
        X = whole(data["x"], "n_components='auto'")
        sample_weight = in_memory(sample_weight)
        start = self._start_of_search(X)
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        rows = slice(None) if np.all(weights > 0) else weights > 0
        problem = Problem(
            statement.model_of,
            X[rows],
            weights[rows],
            self.max_iter,
            self.tol,
            self._place,
            self.verbose if callable(self.verbose) else False,
            next_fit,
        )
        start = None if start is None else start[rows]
        posterior, self.moves_ = best_search(problem, start, generator, self.n_init, self.verbose)
        return posterior

    def _explanation(self, posterior: Posterior) -> str:
        """Return why a fit ended where it did; a search that was interrupted is told as one."""
        if is_auto(self.n_components) and posterior.status is Status.INTERRUPTED:
            return "the search for the number of components was interrupted; this is the best so far"
        return super()._explanation(posterior)

    def _start_of_search(self, X: AnyArray) -> Array | None:
        """Return the responsibilities that a search begins with; None for one component."""
        if self.warm_start and hasattr(self, "posterior_"):
            return self.posterior_.local({"x": X})["z"].probabilities
        return start_of(self.init_params, len(X))

    def _attribute_as_plain(self, name: str, value: Any) -> Any:
        return [move.as_plain() for move in value] if name == "moves_" else value

    def _attribute_of_plain(self, name: str, value: Any) -> Any:
        return [Move.of_plain(entry) for entry in value] if name == "moves_" else value

    def _read_more(self, posterior: Posterior, found: Components) -> None:
        mean_precision = learnt_mean_precision(posterior)
        if mean_precision is not None:
            keep(self, mean_precision_prior_=mean_precision)
        scale = learnt_scale(posterior)
        if scale is not None:
            keep(self, covariance_prior_=self._structure.covariance_with(scale))
        # components that share their precision have one number
        df = None if found.df is None else np.asarray(found.df)
        keep(
            self,
            weight_concentration_=self._weight_prior(self.n_components_).concentrations(posterior),
            mean_precision_=found.mean_precision,
            degrees_of_freedom_=df.item() if df is not None and df.ndim == 0 else df,
        )


def _known_to(model: Model, starts: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return starts without factors that the model does not have: a warm start may go on under another prior."""
    if isinstance(starts, str):
        return starts
    names = model.variables
    return [{name: value for name, value in start.items() if name in names} for start in starts]
