"""The mixture for tables whose columns are of several kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..data.rows import on_host
from ..densities.outliers import OutlierThreshold
from ..families.base.marginals import variable_and_part
from ..fitting.model import Model
from ..lazy.rows import in_memory
from ..models import mixed_mixture
from ..names import Placed
from ..numerics.arguments import require_whole
from ..posterior.posterior import Posterior
from ..posterior.prediction.prediction import Prediction
from .arguments.checkpointing import NextFit
from .arguments.checks import as_broadcast, as_generator, require_number
from .arguments.declared import estimator
from .arguments.fitted import Fitted, keep
from .automatic.arguments import AUTO_CONCENTRATION, is_auto, refuse_one_per_component
from .automatic.columns import ColumnsProblem
from .evidence import HasEvidence
from .mixtures.components import Component, estimates_of
from .mixtures.mixed_density import MixedDensity, above_a_whole_row
from .mixtures.mixture import RowsToFit, Statement
from .saveable import PlainForm
from .searched import SearchedMixture
from .tables.data_scale import scale_of
from .tables.given_tables import (
    as_objects,
    checked_objects,
    columns_of_categories,
    is_coded,
    keep_names,
    require_table,
)
from .tables.lazy_rows import checked_rows, lazy_rows, whole
from .tables.mixed_columns import (
    CATEGORY,
    COUNT,
    NUMBER,
    PARAMETERS,
    Columns,
    RawTable,
    kinds_by_name,
    priors_by_name,
)

_LEAVES = {"Normal": NUMBER, "Categorical": CATEGORY, "Poisson": COUNT}
"""Family of an observed variable -> kind of its column."""


def _categories(plain: Any) -> dict[str, tuple[Any, ...]]:
    """Return the categories of columns that a file has."""
    for value in (value for values in plain.values() for value in values):
        if not isinstance(value, str | int | float):
            raise TypeError(f"a category {value!r:.40}")
    return {str(column): tuple(values) for column, values in plain.items()}


@estimator
class MixedMixture(HasEvidence, SearchedMixture):
    r"""Bayesian mixture for tables with columns of several kinds: numbers, categories (including binary) and counts.

    Given its component, the columns of a row are independent, each with a distribution that fits its kind:

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad z_n \sim \mathrm{Cat}(\pi), \quad
        x_{nd} \mid z_n \sim \begin{cases}
            N(\mu_{z_n d}, 1/\tau_{z_n d}) & \text{of a number} \\
            \mathrm{Cat}(p^{(d)}_{z_n}) & \text{of a category} \\
            \mathrm{Poi}(\lambda_{z_n d}) & \text{of a count}
        \end{cases}

    The model is :func:`caviar.models.mixed_mixture`; see section 1 of ``docs/mathematics.md``. Missing entries of any
    kind are integrated out.

    Parameters
    ----------
    n_components
        K, or ``"auto"``: the number that no split, merge or deletion of components improves, as in
        :class:`BayesianGaussianMixture`. The first search begins with one component, and ``n_init`` is the number of
        searches.
    kinds
        Kinds of the columns: a list with ``"number"``, ``"category"`` or ``"count"`` for each column, or a mapping from
        the names or positions of some columns to their kinds. A column without a stated kind has numbers if all its
        entries are numbers and its type is not categorical, and otherwise (texts, True and False) categories.
    weight_concentration_prior
        :math:`\alpha`, a number or shape (K,); 1/K by default, and 1 with ``n_components="auto"``.
    number_prior
        :math:`m, \kappa, s, r` of the prior :math:`\tau \sim \mathrm{Gamma}(s, r)`, :math:`\mu \mid \tau \sim N(m, 1 /
        (\kappa \tau))` for all columns of numbers, or a mapping from names of columns to such values. The default, also
        for columns that are not named, is :math:`\bar x`, 1, D/2 and :math:`u^2/2`, where :math:`\bar x` and u are the
        mean and the standard deviation of the column, and D is the number of such columns.
    category_prior
        Concentration of the Dirichlet prior of each column of categories.
    count_prior
        Shape and rate of the Gamma prior for all columns of counts, or a mapping from names of columns to such pairs.
        By default 1 and the inverse of the mean of the column.
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
    weights_
        Expected weights, shape (K,).
    kinds_
        Kind of each column, a tuple.
    categories_
        Name of each column of categories -> its values in order. Columns without names are called x0, x1, ...
    elbo_, lower_bound_
        Lower bound of the log evidence in nats, including all constants.
    elbo_trace_
        The ELBO at the start and after each iteration, shape (n_iter_ + 1,). It never decreases.
    n_iter_, converged_
        Number of iterations of the best start, without the passes that find it, and whether the fit converged.
    posterior_
        The :class:`caviar.Posterior`. The parameters of a column ``a`` are ``a_theta`` (numbers), ``a_probabilities``
        (categories) or ``a_rate`` (counts).
    moves_
        With ``n_components="auto"``, every :class:`caviar.Move` that was tried on all rows.
    n_components_, n_features_in_, feature_names_in_
        Number of components K, number of columns, and the names of the columns if ``X`` had names.

    Notes
    -----
    ``X`` may be a table of pandas, Polars or Arrow, an array, a list of rows, or a table of this library such as that
    of :func:`caviar.datasets.load_penguins`. Tables that are read in blocks must contain only numbers.

    A category that did not occur in the fit counts as missing, with a warning, because the model has no probability for
    it. :func:`caviar.report.component_table` returns the components with intervals.

    Examples
    --------
    >>> import caviar as cv
    >>> penguins = cv.datasets.load_penguins()
    >>> mixture = cv.MixedMixture(3, random_state=0).fit(penguins)
    >>> mixture.categories_["species"]
    ('Adelie', 'Chinstrap', 'Gentoo')
    >>> rows = [["short", 12.0], ["short", 13.1], ["long", 45.0], ["long", None], [None, 12.5]]
    >>> short = cv.MixedMixture(2, random_state=0).fit(rows).predict(rows) == 0
    >>> bool(short[0] == short[1] == short[4] != short[3])
    True
    """

    n_components: int | str = field(default=2, kw_only=False)
    kinds: Mapping[Any, str] | Sequence[str] | None = None
    weight_concentration_prior: ArrayLike | None = None
    number_prior: Mapping[str, Sequence[float]] | Sequence[float] | None = None
    category_prior: float = 1.0
    count_prior: Mapping[str, Sequence[float]] | Sequence[float] | None = None

    _kind_in_words = "Bayesian mixture of mixed columns"
    _plain_forms: ClassVar = {
        **SearchedMixture._plain_forms,
        "categories_": PlainForm(
            lambda categories: {column: list(values) for column, values in categories.items()}, _categories
        ),
        "kinds_": PlainForm(list, lambda kinds: tuple(map(str, kinds))),
    }
    categories_: ClassVar[Any] = Fitted("Fit again")
    kinds_: ClassVar[Any] = Fitted("Fit again: kinds= says what the columns are")
    n_components_: ClassVar[Any] = Fitted()

    @classmethod
    def from_posterior(cls, posterior: Posterior) -> Self:
        """Return the fitted estimator that belongs to a posterior of the same model.

        Parameters
        ----------
        posterior
            Posterior of a model of :func:`caviar.models.mixed_mixture` in which all parameters were learned.

        Raises
        ------
        ParameterError
            If it belongs to another model, or some parameters are point estimates or known.

        Examples
        --------
        >>> import caviar as cv
        >>> model = cv.models.mixed_mixture(2, numbers=["size"], n_categories={"colour": 2})
        >>> posterior = model.fit({"size": [0.1, 0.2, 5.1, 5.2], "colour": [0, 0, 1, 1]}, seed=0)
        >>> cv.MixedMixture.from_posterior(posterior).kinds_
        ('number', 'category')
        """
        columns = _columns_of(posterior)
        mixture = cls(np.size(posterior[columns.weights].mean))
        mixture.n_features_in_ = len(columns.names)
        mixture.feature_names_in_ = np.array(columns.names, dtype=object)
        mixture._keep_columns(columns)
        mixture._generator = as_generator(0).spawn(1)[0]
        mixture._keep(posterior)
        return mixture

    def __sklearn_tags__(self) -> Any:
        """Say that columns may be categories."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    @property
    def _columns(self) -> Columns:
        return Columns(self._names(), self.kinds_, self.categories_)

    @property
    def _weights_variable(self) -> str:
        return self._columns.weights

    def _shown_name(self, stated: str) -> str:
        """Return what users call a variable of the stated model: the column, and which parameters of it."""
        columns = self._columns
        whole, part = variable_and_part(stated, columns.parameters)
        for name, kind, own in zip(columns.names, columns.kinds, columns.parameters, strict=True):
            if own == whole and (part or kind != NUMBER):
                return f"{name} {part or PARAMETERS[kind]}"
        return "weights" if whole == columns.weights else stated

    def _shown_whole(self, stated: str) -> str:
        """Return the column whose parameters a joint factor has."""
        columns = self._columns
        numbers = {
            own: name
            for name, kind, own in zip(columns.names, columns.kinds, columns.parameters, strict=True)
            if kind == NUMBER
        }
        return numbers.get(stated, stated)

    def _names(self) -> tuple[str, ...]:
        """Return the names that the columns have in the model."""
        names = getattr(self, "feature_names_in_", None)
        return tuple(f"x{j}" for j in range(self.n_features_in_)) if names is None else tuple(map(str, names))

    def _keep_columns(self, columns: Columns) -> None:
        keep(self, kinds_=columns.kinds, categories_=dict(columns.categories))

    def _validated(self, X: Any, *, reset: bool) -> AnyArray:
        table = self._table(X, reset=reset)
        if reset:
            typed = columns_of_categories(X, self._names())
            self._keep_columns(Columns.of(table, self._names(), self.kinds, typed))
            self._columns.refuse_lost_digits(X)
        numbers = self._columns.numbers(table)
        if reset:
            self._columns.tell_of_odd_numbers(numbers)
        return numbers

    def _table(self, X: Any, *, reset: bool) -> RawTable:
        """Return a table as it came, after its names and its number of columns were checked, or are remembered."""
        require_table(X)
        if is_coded(X):
            keep_names(self, X.columns, reset=reset)
            places = {X.columns.index(name): values for name, values in X.categories.items()}
            return RawTable(X.values, places)
        given, X = X, as_objects(on_host(X))
        rows = None if isinstance(X, np.ndarray) and X.dtype.kind not in "iuf" else lazy_rows(X)
        if rows is not None and rows.ndim == 2:
            return RawTable(checked_rows(self, X, rows, reset=reset), {})
        return RawTable(checked_objects(self, given, X, reset=reset), {})

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("category_prior", self.category_prior, above=0)

    def _check_n_components(self) -> None:
        if not is_auto(self.n_components):
            require_whole("n_components, if it is not 'auto',", self.n_components, 1)

    def _state(self, rows: RowsToFit, generator: np.random.Generator) -> Statement:
        columns, alpha = self._columns, self.weight_concentration_prior
        number_prior, count_prior = self._number_priors(rows, columns), self._count_priors(rows, columns)

        @cache
        def model_of(n_components: int, default: float) -> Model:
            return mixed_mixture(
                n_components,
                numbers=[columns.names[j] for j in columns.of_kind(NUMBER)],
                n_categories={name: len(values) for name, values in columns.categories.items()},
                counts=[columns.names[j] for j in columns.of_kind(COUNT)],
                concentration=as_broadcast(
                    "weight_concentration_prior",
                    default if alpha is None else alpha,
                    (n_components,),
                    "one a component",
                    above=0,
                ),
                number_prior=number_prior,
                answer_concentration=float(self.category_prior),
                count_prior=count_prior,
            )

        number: Any = self.n_components
        if not is_auto(number):
            return Statement(model_of(number, 1 / number))
        refuse_one_per_component({"weight_concentration_prior": (alpha, 0)})
        return Statement(model_of(1, AUTO_CONCENTRATION), model_of=lambda k: model_of(k, AUTO_CONCENTRATION))

    def _problem(
        self, data: Mapping[str, Any], model_of: Callable[[int], Model], next_fit: NextFit
    ) -> ColumnsProblem:
        X = np.column_stack([whole(data[name], "n_components='auto'") for name in data])
        return ColumnsProblem(
            model_of,
            X,
            np.ones(len(X)),
            self.max_iter,
            self.tol,
            self._place,
            next_fit=next_fit,
            names=tuple(data),
            label=self._columns.label,
        )

    def _number_priors(self, rows: RowsToFit, columns: Columns) -> Any:
        """Return the prior of each column of numbers, in the units of the data where the user gave none."""
        given = priors_by_name(
            "number_prior", self.number_prior, columns, NUMBER, "mean, mean_precision, shape, rate"
        )
        place = columns.of_kind(NUMBER)
        open_columns = [j for j in place if columns.names[j] not in given]
        if open_columns:
            names = [columns.names[j] for j in open_columns]
            scale = scale_of(rows.X[:, open_columns], rows.weights, correlated=False, names=names)
            for j, mean, unit in zip(open_columns, scale.mean.tolist(), scale.unit.tolist(), strict=True):
                given[columns.names[j]] = (mean, 1.0, len(place) / 2, unit**2 / 2)
        return given

    def _count_priors(self, rows: RowsToFit, columns: Columns) -> Any:
        """Return the prior of each column of counts, which expects the mean of the data where the user gave none."""
        given = priors_by_name("count_prior", self.count_prior, columns, COUNT, "shape, rate")
        open_columns = [j for j in columns.of_kind(COUNT) if columns.names[j] not in given]
        if open_columns:
            names = [columns.names[j] for j in open_columns]
            means = scale_of(rows.X[:, open_columns], rows.weights, correlated=False, names=names).mean
            for j, mean in zip(open_columns, means.tolist(), strict=True):
                given[columns.names[j]] = (1.0, 1 / mean if mean > 0 else 1.0)
        return given

    def _data(self, rows: RowsToFit) -> dict[str, Any]:
        return Placed({name: rows.X[:, j] for j, name in enumerate(self._names())})

    def _read(self, posterior: Posterior) -> Callable[[], Any]:
        weights = posterior[self._weights_variable].mean
        keep(self, weights_=weights, n_components_=len(weights))
        return partial(MixedDensity, posterior, self._columns)

    def _name_columns(self, posterior: Posterior) -> None:
        """Write the categories into the summary, by the name of each column."""
        summary = posterior.data_summary
        if not summary:
            return
        named = {
            name: {**own, "categories": list(map(str, self.categories_[name]))}
            if name in self.categories_
            else own
            for name, own in summary["arrays"].items()
        }
        posterior.data_summary = {**summary, "arrays": named}

    def _width(self) -> int:
        return len(self.kinds_)

    def _check_restored(self) -> None:
        super()._check_restored()
        found, own = _columns_of(self.posterior_), self._columns
        parameters = dict(zip(found.names, found.parameters, strict=True))
        sizes = {name: np.shape(self.posterior_[parameters[name]].mean)[-1] for name in found.categories}
        if set(zip(found.names, found.kinds, strict=True)) != set(zip(own.names, own.kinds, strict=True)):
            raise ValueError("columns that are not those of its posterior")
        if sizes != {name: len(set(values)) for name, values in own.categories.items()}:
            raise ValueError("categories that are not those of its posterior")

    def _parameter_as_plain(self, name: str, value: Any) -> Any:
        # places of columns are not keys of JSON
        return (
            kinds_by_name(value, self._names())
            if name == "kinds" and value
            else super()._parameter_as_plain(name, value)
        )

    def _responsibilities_of(self, rows: RowsToFit) -> Array:
        local = self.posterior_.local(above_a_whole_row(rows.X, self._names()))
        return local[self._columns.label].probabilities[:-1]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[AnyArray, AnyArray]:
        """Return independent new rows, shape (n, D), and their components, shape (n,).

        Parameters
        ----------
        n_samples
            How many.
        random_state
            Seed: a whole number, a Generator or a RandomState. The same number gives the same rows. By default each
            call gives new rows.

        Returns
        -------
        rows, components
            Columns of categories contain their values. The array has numbers if there are no such columns, and objects
            otherwise.
        """
        rows, labels = super().sample(n_samples, random_state)
        return self._columns.words(rows), labels

    def predict_columns(self, X: Any, targets: Any) -> dict[str, Prediction]:
        """Return predictions of some columns of each row from its other columns.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`. Entries in the target columns are ignored.
        targets
            One or several columns, by name or position.

        Returns
        -------
        dict
            Name of each target column -> :class:`caviar.Prediction`, with mean and standard deviation; for categories,
            with the probabilities of ``categories_``.

        Examples
        --------
        >>> import caviar as cv
        >>> rows = [["short", 12.0], ["short", 13.1], ["long", 45.0], ["long", 47.0]] * 10
        >>> mixture = cv.MixedMixture(2, random_state=0).fit(rows)
        >>> mixture.predict_columns([["long", None]], 1)["x1"].mean > 40
        array([ True])
        """
        check_is_fitted(self)
        rows, names = in_memory(self._validated(X, reset=False)), self._names()
        wanted = [targets] if isinstance(targets, str | int) else list(targets)
        wanted = [names[target] if isinstance(target, int) else target for target in wanted]
        for name in wanted:
            if name not in names:
                raise ParameterError(f"targets has the column {name!r}; the columns are {', '.join(names)}")
        data = above_a_whole_row(rows, names)
        told = self.posterior_.predict({name: data[name] for name in names if name not in wanted})
        # where nothing is left of the rows there is one prediction for them all
        return {name: _for_rows(told[name], len(rows)) for name in wanted}

    def outlier_scores(self, X: Any) -> Array:
        """Return minus the log density of the observed entries of each row, in nats, shape (N,)."""
        return -self.score_samples(X)

    def outlier_threshold(self, rate: float, random_state: Any = None) -> OutlierThreshold:
        """Return the outlier score that a share ``rate`` of rows from the fitted mixture exceeds (false alarms).

        It is estimated from draws and comes with the standard error of the rate.
        """
        check_is_fitted(self)
        return self._predictive.outlier_threshold(rate, as_generator(random_state))

    def is_outlier(self, X: Any, rate: float = 0.01, random_state: Any = None) -> AnyArray:
        """Return which rows are outliers, shape (N,), at the false alarm rate ``rate``.

        Parameters
        ----------
        X
            Rows, as for :meth:`fit`. Each pattern of missing entries has its own threshold. A row with no observed
            entry is not an outlier.
        rate
            Rate of false alarms, between 0 and 1.
        random_state
            Seed of the draws for the thresholds: a whole number, a Generator or a RandomState.

        Examples
        --------
        >>> import caviar as cv
        >>> penguins = cv.datasets.load_penguins()
        >>> table = cv.data.Table(penguins.values[:, [0, 4]], ("species", "flipper"), {"species": (0, 1, 2)})
        >>> mixture = cv.MixedMixture(3, random_state=0).fit(table)
        >>> gentoo = cv.data.Table(np.array([[2.0, 215.0], [2.0, 180.0]]), table.columns, table.categories)
        >>> mixture.is_outlier(gentoo, random_state=0)
        array([False,  True])
        """
        check_is_fitted(self)
        rows = in_memory(self._validated(X, reset=False))
        return self._predictive.is_outlier(rows, rate, as_generator(random_state))

    def _components(self, level: float) -> list[Component]:
        columns, posterior = self._columns, self.posterior_
        part = posterior.marginals(columns.weights, level)[0]
        weights = estimates_of(part.mean, part.lower, part.upper)
        by_column = [self._figures(j, level) for j in range(len(columns.names))]
        return [
            Component(
                label=k,
                weight=weights[k],
                mean=tuple(own[k][0] for own in by_column),
                standard_deviation=tuple(own[k][1] for own in by_column),
                probabilities=tuple(own[k][2] for own in by_column),
            )
            for k in range(self.n_components_)
        ]

    def _figures(self, column: int, level: float) -> list[tuple[Any, Any, Any]]:
        """Return mean, standard deviation and probabilities of a column in each component; None where it has none."""
        columns = self._columns
        name, kind, variable = columns.names[column], columns.kinds[column], columns.parameters[column]
        factor, part = self.posterior_[variable], self.posterior_.marginals(variable, level)[0]
        estimates = estimates_of(part.mean, part.lower, part.upper)
        if kind == CATEGORY:
            values = list(map(str, columns.categories[name]))
            return [(None, None, dict(zip(values, own, strict=True))) for own in estimates]
        spread = np.sqrt(factor.rate / factor.shape if kind == NUMBER else factor.mean)
        return [(mean, sd, None) for mean, sd in zip(estimates, spread.tolist(), strict=True)]


def _for_rows(told: Prediction, n_rows: int) -> Prediction:
    if len(told.mean) == n_rows + 1:
        return Prediction(told.mean[:-1], told.standard_deviation[:-1])
    return Prediction(
        np.repeat(told.mean, n_rows, axis=0), np.repeat(told.standard_deviation, n_rows, axis=0)
    )


def _columns_of(posterior: Posterior) -> Columns:
    """Return the columns that a posterior of a mixed mixture was fitted to.

    Raises
    ------
    ParameterError
        If it is that of another model.
    """
    variables, leaves = posterior.model.variables, posterior.model.leaves
    kinds = {leaf.name: _LEAVES.get(type(leaf).__name__, "") for leaf in leaves}
    own = Columns(tuple(kinds), tuple(kinds.values()), {})
    is_mixed = (
        all(kinds.values())
        and sorted(variables) == sorted([own.weights, own.label, *kinds, *own.parameters])
        and sorted(posterior) == sorted([own.weights, *own.parameters])
        # points, and what was given in part, have no intervals
        and all(type(posterior[name]).__name__ == type(variables[name]).__name__ for name in posterior)
    )
    if is_mixed:
        like = mixed_mixture(
            np.size(posterior[own.weights].mean),
            numbers=[name for name, kind in kinds.items() if kind == NUMBER],
            n_categories={name: 2 for name, kind in kinds.items() if kind == CATEGORY},
            counts=[name for name, kind in kinds.items() if kind == COUNT],
        )
        described = [
            {name: own.describe() for name, own in model.variables.items()}
            for model in (posterior.model, like)
        ]
        is_mixed = described[0] == described[1]
    if not is_mixed:
        raise ParameterError(
            f"expected the posterior of a model of caviar.models.mixed_mixture, of which everything was learnt; got "
            f"one of {posterior.model}"
        )
    arrays = (posterior.data_summary or {}).get("arrays", {})
    # in the order of the data, where that is known
    kinds = {name: kinds[name] for name in (*(name for name in arrays if name in kinds), *kinds)}
    own = Columns(tuple(kinds), tuple(kinds.values()), {})
    categories = {}
    for name, kind, parameter in zip(own.names, own.kinds, own.parameters, strict=True):
        if kind != CATEGORY:
            continue
        # data of texts gave the posterior their names; others have places
        named = posterior.names.entries(name) or range(posterior[parameter].mean.shape[-1])
        categories[name] = tuple(arrays.get(name, {}).get("categories", named))
    return replace(own, categories=categories)
