"""The Bayesian mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..fitting.many.kinds import Differences
from ..fitting.model import Model
from ..posterior.posterior import Posterior
from .arguments.checkpointing import NextFit
from .arguments.checks import require_choice, require_number
from .arguments.declared import estimator
from .arguments.fitted import Fitted, keep
from .automatic.arguments import AUTO_CONCENTRATION, is_auto, refuse_one_per_component, start_of
from .automatic.problem import Problem
from .evidence import HasEvidence
from .mixtures.gaussian import GaussianEstimator, restate, state
from .mixtures.mixture import REMEDY, RowsToFit, Statement
from .priors.component_prior import component_prior
from .priors.known import fixed_weights
from .priors.mean_precision_prior import learnt_mean_precision
from .priors.scale_prior import LearntScale, is_learnt, learnt_scale
from .priors.structure import ComponentPrior, Components, Form
from .priors.weights import KnownWeights, WeightPrior, weight_prior
from .searched import SearchedMixture
from .tables.data_scale import DataScale, scale_of
from .tables.lazy_rows import whole


@estimator
class BayesianGaussianMixture(HasEvidence, SearchedMixture, GaussianEstimator):
    r"""Bayesian mixture of Gaussians with unknown weights, means and precision matrices.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad \Lambda_k \sim \mathrm{Wishart}(\nu, B), \quad z_n \sim
        \mathrm{Cat}(\pi), \quad x_n \mid z_n \sim N(\mu_{z_n}, \Lambda_{z_n}^{-1})

    There are two priors of the means, each with its own form of the posterior:

    - ``mean_precision_family="joint"``: :math:`\mu_k \mid \Lambda_k \sim N(m_0, (\kappa\Lambda_k)^{-1})`,
      :math:`q(\mu_k, \Lambda_k)` a Normal-Wishart; :func:`caviar.models.normal_wishart_mixture`;
    - ``mean_precision_family="independent"``: :math:`\mu_k \sim N(m_0, S_0)`, :math:`q(\mu_k)\, q(\Lambda_k)`;
      :func:`caviar.models.gaussian_mixture`.

    Section 5 of ``docs/mathematics.md``.

    Parameters
    ----------
    n_components
        K, or ``"auto"``: the number that no split, merge or deletion of components improves, see Notes.
    covariance_type
        Structure of the covariance matrices; each has its own conjugate posterior:

        - ``"full"``: each component has its own matrix;
        - ``"tied"``: all components have the same matrix, whose degrees of freedom grow by N;
        - ``"diag"``: each matrix is diagonal, with a Gamma posterior for each component and column;
        - ``"spherical"``: each matrix is a multiple of the identity, whose degrees of freedom grow by :math:`D N_k`;
        - ``"unit"``: each matrix is the identity and is not estimated.
    mean_precision_family
        ``"joint"`` or ``"independent"``, see above.
    tol
        The fit has converged when an iteration changes the ELBO by less than this, in nats per row.
    {max_iter}
    n_init
        Number of starts; the best fit is kept. With ``n_components="auto"``, the number of searches.
    init_params
        How starts are found: ``"auto"``, or as in scikit-learn ``"kmeans"``, ``"k-means++"``, ``"random"`` or
        ``"random_from_data"``. Or an array of labels (N,) or responsibilities (N, K) to start from. With
        ``n_components="auto"`` a search begins with one component, or with the labels or responsibilities that are
        given, for any number of components.
    weight_concentration_prior_type
        ``"dirichlet_distribution"``, or ``"dirichlet_process"``: truncated stick-breaking weights.
    weight_concentration_prior
        :math:`\alpha`, a number or shape (K,); 1/K by default, and 1 with ``n_components="auto"``. For a Dirichlet
        process, the number :math:`\gamma`.
    mean_prior
        :math:`m_0`, shape (D,), or (K, D); the mean of the data by default.
    mean_precision_prior
        Precision of the prior of the means; None is 1, as in scikit-learn. ``"joint"`` family: :math:`\kappa`, the
        number of rows that the prior is worth, a number or shape (K,). With ``"auto"`` it is learned: one number for
        all components, with the prior Gamma(1, 1) and the factor ``posterior_["mean_precision"]``. ``"independent"``
        family: a number, which gives :math:`S_0^{-1}` in units of the inverse covariance of the data (``"auto"`` is 1);
        or :math:`S_0^{-1}` itself, shape (D, D) or (K, D, D), for diagonal structures (D,) or (K, D).
    degrees_of_freedom_prior
        :math:`\nu > D - 1` (``"diag"``, ``"spherical"``: > 0), a number or (K,); D by default.
    covariance_prior
        :math:`B`, the inverse scale of the Wishart; the prior mean of the precision is :math:`\nu B^{-1}`.

        - ``"auto"``: learned. All components share one diagonal :math:`B`, whose entries have a prior and the factor
          ``posterior_["scale"]``; see Notes.
        - ``"empirical"``, or None as in scikit-learn: the covariance of the data, with its correlations shrunk.
        - an array in the shape of ``covariances_``, or of the covariance of one component. As in scikit-learn it is
          *not* divided by the degrees of freedom. For ``"diag"`` and ``"spherical"`` the prior of each precision is
          :math:`\mathrm{Gamma}(\nu/2, B/2)`, a Wishart in one dimension.
    reg_covar
        Must be 0. scikit-learn adds it to the variances; here the prior keeps them above zero, and a larger
        ``covariance_prior`` makes them larger.
    fixed
        Known parameters: a mapping with any of ``"weights"`` (K,), ``"means"`` (K, D), and ``"covariances"`` in the
        shape of ``covariances_``. NaN marks means and covariances to be learned; weights must be given completely. In
        the joint family the mean and the covariance of a component are both known or both unknown. The ELBO is then a
        bound of log p(x, known values).
    {semi_supervised}
    {warm_start}
    {random_state}
    {n_jobs}
    {executor}
    verbose
        By default a fit of more than 5 seconds shows one line that changes, if standard error is a terminal, and in
        notebooks. True prints a line for each iteration, or with ``n_components="auto"`` for each move; False nothing.
        A function is called with the :class:`caviar.Progress` of each iteration over all rows.
    {uncertainty}
    {responsibilities}
    {swaps}

    Attributes
    ----------
    n_components_
        Number of components K, as given or found.
    moves_
        With ``n_components="auto"``, every :class:`caviar.Move` that was tried on all rows, accepted or refused.
    weights_
        Expected weights, shape (K,).
    means_
        Expected means :math:`m_k`, shape (K, D).
    precisions_
        Expected precisions :math:`\langle\Lambda_k\rangle = \nu_k B_k^{-1}`: ``"full"`` (K, D, D), ``"tied"`` (D,
        D), ``"diag"`` (K, D), ``"spherical"`` and ``"unit"`` (K,).
    covariances_
        Inverses of ``precisions_``, :math:`B_k / \nu_k`, as in scikit-learn. They are not the expectations of
        :math:`\Lambda_k^{-1}`, which may be infinite.
    weight_concentration_, degrees_of_freedom_, mean_precision_
        Parameters of the factors: :math:`\alpha_k`, shape (K,), or for a Dirichlet process the parameters :math:`(a_k,
        b_k)` of the Beta factors, shape (K - 1,) each; :math:`\nu_k`; and :math:`\kappa_k`, or :math:`S_k^{-1}` in the
        independent family.
    weight_concentration_prior_, mean_prior_, mean_precision_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior that was used. A prior parameter that was learned is given by its expectation, a scale in the shape of
        the covariance of one component.
    elbo_, lower_bound_
        Lower bound of the log evidence in nats, including all constants. It is comparable between any two fits to the
        same rows.
    elbo_trace_
        The ELBO at the start and after each iteration, shape (n_iter_ + 1,). It never decreases.
    n_iter_, converged_
        Number of iterations of the best start (with ``n_components="auto"``, of the last fit after an accepted move),
        and whether the fit converged. The passes that find the start do not count.
    posterior_
        The :class:`caviar.Posterior`.
    {columns}

    Notes
    -----
    :meth:`score_samples` is the predictive density of a new row, which integrates to one. In the joint family it is the
    exact predictive :math:`\sum_k \langle\pi_k\rangle \mathrm{St}_{\nu_k + 1 - D}(x; m_k, \cdot)`. In the independent
    family it is an approximation by Student-t distributions with the exact mean and covariance of each component.

    ``n_components="auto"`` begins with one component, unless ``init_params`` says otherwise, and tries moves: split a
    component in two, merge two into one, delete one. Moves are proposed from the responsibilities. For a split, two
    components of the same model are fitted to the rows of one component, weighted by their responsibilities. Merges are
    ranked by a fit of one component against a fit of two. The rows of a deleted component go to the others. Promising
    moves of different components are first tried together, then one by one. Each move is fitted to all rows and
    accepted only if the ELBO, including all constants, rises by more than ``tol`` per row. The search ends when no move
    is accepted. With more than 20,000 rows, proposals are made from a subsample. No array of size N x K x K is made.

    The prior must not change with K, because otherwise ELBOs would also compare priors. So the default concentration of
    the weights is then 1. The ELBO is up to log K! below the log evidence (:func:`caviar.compare_mixtures`), so if two
    numbers of components fit the data almost equally well, the smaller is found. With a given ``covariance_prior`` the
    number found also depends on its scale.

    A learned scale is part of the model, and the ELBO includes its divergence from the prior:

    .. math::
        B = \mathrm{diag}(b_d + \epsilon_d), \qquad b_d \sim \mathrm{Gamma}(1, 1 / s_d^2)

    Here :math:`s_d^2` are the variances of the data (``"spherical"`` has one :math:`b`, with their mean). The prior of
    :math:`b_d` is wide, so the components determine it, and it does not shrink their correlations towards those of the
    data. The small known :math:`\epsilon_d` keeps the evidence finite if all rows of a component are equal in some
    direction.

    Some defaults use the covariance of the data. It is divided by the total weight, its correlations are shrunk by the
    factor N / (N + D), and constant columns get a substitute variance. The defaults do not depend on the order of the
    rows, give a row of weight 2 the influence of two equal rows, and scale with the units of each column: in other
    units the fit is the same. (With more than 10,000 distinct rows the start uses a subsample, which depends on the
    units.)

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
    split   0            -> 2 components    ELBO -1306.4052 -> -1167.6498  (+138.8)  accepted
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
                "reg_covar of BayesianGaussianMixture must be 0, because its prior keeps variances above "
                f"zero; got {self.reg_covar!r}. Leave it out; a larger covariance_prior keeps variances larger"
            )
        if is_auto(self.n_components) and self.fixed is not None:
            raise ParameterError("fixed parameters need a number of components; got n_components='auto'")
        if is_auto(self.n_components) and self.semi_supervised:
            raise ParameterError(
                "semi_supervised=True needs a number of components for its labels; got "
                "n_components='auto', which changes them"
            )

    def _check_n_components(self) -> None:
        if is_auto(self.n_components):
            return
        if isinstance(self.n_components, str):
            raise ParameterError(f"n_components must be a whole number or 'auto'; got {self.n_components!r}")
        super()._check_n_components()

    def _state(self, rows: RowsToFit, generator: np.random.Generator) -> Statement:
        scale = scale_of(
            rows.X,
            rows.weights,
            correlated=not self._structure.has_independent_columns,
            names=vars(self).get("feature_names_in_"),
        )
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
            model = state(*given, noise)
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
        if not is_ordinary.all():
            # the others are asked for once more, without these
            return Differences({}, {}, ~is_ordinary)
        constants = {"theta.mean": mean, **LearntScale.of_many(variances, counts)}
        return Differences(constants, {}, ~is_ordinary)

    def _is_by_default(self) -> bool:
        """Whether the prior of the means depends on the data by their mean alone, and all components have the same."""
        precision = self.mean_precision_prior
        is_common = precision is None or np.ndim(precision) == 0
        return self.mean_prior is None and self._is_joint and is_common

    def _component_prior(self, scale: DataScale, n_components: int) -> ComponentPrior:
        return component_prior(self._structure, self._form, scale, n_components, self)

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

    def _problem(
        self, data: Mapping[str, Any], model_of: Callable[[int], Model], next_fit: NextFit
    ) -> Problem:
        X = whole(data["x"], "n_components='auto'")
        return Problem(model_of, X, np.ones(len(X)), self.max_iter, self.tol, self._place, next_fit=next_fit)

    def _start_of_search(self, X: AnyArray) -> Array | None:
        if self.warm_start and hasattr(self, "posterior_"):
            return self.posterior_.local({"x": X})["z"].probabilities
        return start_of(self.init_params, len(X))

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


def _known_to(
    model: Model, starts: str | list[dict[str, Any] | Posterior]
) -> str | list[dict[str, Any] | Posterior]:
    """Return starts without factors that the model does not have: a warm start may continue under another prior."""
    if isinstance(starts, str):
        return starts
    names = set(model.variables)
    return [
        start if names.issuperset(start) else {name: start[name] for name in start if name in names}
        for start in starts
    ]
