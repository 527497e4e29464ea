"""MixedModel, the estimator: a formula and a table, fitted by coordinate ascent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils.validation import check_is_fitted

from ..._errors import DataError, ParameterError
from ..._tables import html_of
from ...data.frames import refuse_other_rows
from ...engine.binding.values import as_weights
from ...posterior.pandas_tables import data_frame
from ...posterior.posterior import Posterior
from ...posterior.prediction.prediction import Prediction
from ..arguments.checks import as_generator, require_choice, require_number
from ..arguments.declared import estimator
from ..arguments.fitted import Fitted, keep
from ..evidence import HasEvidence
from ..tables.lazy_rows import mean_of_rows
from .columns import Rows
from .design import COMMON, Encoding
from .families import ORDINAL, RESIDUAL, Family, categories_of, family_of, trials_of
from .formula import Formula, read
from .information import covariance_at_mode
from .origins import means_of
from .statement import MATRIX, Block, Design, check_design, check_response, design_of, is_precision, stated
from .summary import AT_MODE, MixedSummary, remark_on_few, rows_of, threshold_rows, title_of, with_thresholds

_GROUPS = ("known", "new")
_SIZES = (0.02, 1000.0)
"""Between these the size of a negative binomial is looked for."""


@estimator
class MixedModel(HasEvidence):
    r"""Regression with group effects: a linear or generalised linear mixed model.

    .. math::
        \eta_n = x_n' \beta + \sum_t z_{tn}' u_{t, g_t(n)}, \qquad u_{tj} \sim N(0, \Sigma_t), \qquad
        y_n \sim p(y_n \mid \eta_n)

    All coefficients and group effects share one Gaussian factor, so the fit includes their covariances. The formula is
    written as for lme4 and bambi.

    Parameters
    ----------
    formula
        Response, common effects and group effects, as in ``"y ~ x * z + (1 | school) + (x | school/class)"``. ``(x |
        g)`` gives each group of column ``g`` a correlated intercept and slope; ``(x || g)`` makes them uncorrelated;
        ``g/h`` means the groups ``g`` and ``g:h``. Text columns are categories whose first level is the reference;
        ``C(x)`` treats a column of numbers as categories, and ``C(x, Treatment("b"))`` or ``C(x, Sum)`` states their
        coding. Effects are parsed by formulaic and may contain ``log``, ``log1p``, ``log2``, ``log10``, ``exp``,
        ``sqrt``, ``abs``, ``I``, ``center``, ``scale``, ``poly`` and the splines ``bs``, ``cr`` and ``cc``, which are
        computed for new rows with the means and knots of the fit. ``offset(log(days))`` is added to the predictor as it
        is.
    family
        Distribution of the response. ``"gaussian"``: numbers. ``"student"``: numbers with outliers. ``"bernoulli"``: 0
        or 1 with a logit link. ``"probit"``: 0 or 1 with a probit link. ``"binomial"``: successes in known numbers of
        trials, ``successes | trials(n) ~ x``, where n is a column or a whole number, also written ``prop(k, n)`` or
        ``cbind(k, n - k)``. ``"negative_binomial"``:
        overdispersed counts. ``"ordinal"``: ordered categories by cumulative probit, where a latent utility with mean
        equal to the predictor and variance 1 falls between two thresholds, which replace the intercept.
    categories
        Categories of an ordinal response, lowest first. By default those of a categorical column, or numbers in
        increasing order.
    size
        Size of the negative binomial, for which a mean m has the variance m + m^2 / size. By default the size with the
        highest ELBO, which takes about a dozen fits.
    {tol}
    {max_iter}
    {n_init}
    {random_state}
    {n_jobs}
    {executor}
    {verbose}
    {uncertainty}

    Attributes
    ----------
    posterior_
        The :class:`caviar.Posterior`. Its variables are ``"common effects"``, group effects such as ``"x | g"``, and
        their precisions, ``"precision of x | g"``.
    elbo_
        Lower bound of the log evidence in nats, including all constants.
    n_iter_, converged_
        Number of iterations, and whether the fit converged.
    names_
        Names of the common effects.
    levels_
        Name of a column of categories -> its levels, the reference first.
    groups_
        Grouping column of a term -> names of its groups. For several columns names are joined by colons, as in
        ``"Lincoln:2b"``; a colon within a name is written ``\:``.
    centres_
        Name of a term -> column -> the mean at which the column is centred. A column of a group term is centred if its
        mean is more than 3 standard deviations from zero; the intercepts of the groups are then those at the mean.
        Columns of ``"common effects"`` are centred if it is more than 1,000 standard deviations; the variable then has
        the intercept at the mean, while ``fixef`` and ``summary`` show the intercept at zero.
    states_
        Call of a function of a whole column, such as ``scale(x)`` -> the means or knots that it took from the rows.
    n_rows_
        Number of rows of the fit.
    size_
        Size of the negative binomial, given or found; None for other families.
    categories_
        Categories of an ordinal response, lowest first; empty for other families.
    fixed_covariance_
        Covariance of the thresholds and common effects (in this order) of an ordinal response; None for other families.

    Notes
    -----
    The priors are weakly informative, like those of bambi. Let s be the standard deviation of the response (1 for
    binary outcomes). A coefficient is Normal with mean 0 and standard deviation 2.5 s / sd(column). The intercept at
    the means of all columns is Normal with the mean of the response (0 for binary outcomes) and standard deviation 2.5
    s. The standard deviation of the noise is half-t with 4 degrees of freedom and scale s, and that of a group effect
    with scale 2.5 s / sd(column). Correlated effects have half-t standard deviations with 2 degrees of freedom, and
    each correlation is uniform (Huang and Wand, 2013). The degrees of freedom of Student-t noise are Gamma(2, 0.1).

    Thresholds of an ordinal response have a flat prior and are point masses at the mode. Their standard deviations, and
    those of the common effects, come from Laplace's approximation: from the information at the mode, with the
    precisions of group effects at their means.

    Examples
    --------
    >>> import numpy as np, caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> school = np.repeat(["Adams", "Lincoln", "Roosevelt", "Taft"], 15)
    >>> x = rng.normal(size=60)
    >>> y = 1 + 2 * x + np.repeat([-1.0, 0.0, 0.5, 1.0], 15) + rng.normal(size=60)
    >>> model = cv.MixedModel("y ~ x + (1 | school)").fit({"y": y, "x": x, "school": school})
    >>> model.fixef().round(1)
    Intercept    1.2
    x            1.9
    Name: mean, dtype: float64
    >>> new = model.predict({"x": [0.0, 0.0], "school": ["Taft", "Washington"]})
    >>> bool(new.sd[1] > new.sd[0])
    True
    """

    formula: str = field(default="y ~ 1", kw_only=False)
    family: str = "gaussian"
    size: float | None = None
    categories: Sequence[Any] | None = None
    tol: float = 1e-8

    _kind_in_words = "Mixed model"
    names_: ClassVar[Any] = Fitted()
    levels_: ClassVar[Any] = Fitted()
    groups_: ClassVar[Any] = Fitted()
    centres_: ClassVar[Any] = Fitted()
    states_: ClassVar[Any] = Fitted()
    n_rows_: ClassVar[Any] = Fitted()
    size_: ClassVar[Any] = Fitted()
    categories_: ClassVar[Any] = Fitted()
    fixed_covariance_: ClassVar[Any] = Fitted()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to a table.

        Parameters
        ----------
        X
            A pandas or Polars DataFrame, an Arrow table, or a mapping from names to columns. Columns that the formula
            does not name are ignored.
        y
            Ignored: the formula names the response.
        sample_weight
            Weight of each row. A row of weight 2 counts as two equal rows, and one of weight 0 not at all, except that
            ``center``, ``scale``, ``poly`` and splines in a formula take each row with weight once.

        Raises
        ------
        DataError
            If a column is missing, has missing values or is of the wrong kind, or if effects are not identifiable.
        ParameterError
            If the formula or another argument is invalid.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` was reached before the fit converged.
        """
        self._check_fit_arguments()
        if self.size is not None:
            require_number("size", self.size, above=0)
        formula, (rows, weights) = read(self.formula), _weighing(X, sample_weight)
        rows.refuse_unequal([formula.response, *formula.trials, *sorted(formula.read)])
        categories = self._categories_of(rows, formula)
        kind = family_of(self.family, formula, categories=categories)
        response = kind.values_to_fit(rows, formula.response)
        encoding = Encoding.of(formula, rows, has_thresholds=kind.has_thresholds).centred(rows, weights)
        design = design_of(encoding, rows)
        has_noise = kind.has_noise
        check_design(design, encoding, has_noise)
        if has_noise:
            check_response(design, formula.response, response)
        data = {**design.data, **trials_of(formula, rows, len(response)), formula.response: response}
        generator = as_generator(self.random_state)
        seed = int(generator.integers(2**63))

        def fitted(size: float, uncertainty: str) -> Posterior:
            family = family_of(self.family, formula, size, categories)
            return stated(design, encoding, family, formula.response, response, weights).fit(
                data,
                seed=seed,
                sample_weight=weights,
                n_restarts=self.n_init,
                factors=_together(design),
                **{**self._arguments_of_model(), "uncertainty": uncertainty},
            )

        size = self.size
        if self.family == "negative_binomial" and size is None:
            size = _best_size(lambda size: fitted(size, "mean_field").elbo)
        posterior = fitted(1.0 if size is None else float(size), self.uncertainty)
        self._tell_end(posterior)
        keep(
            self,
            n_rows_=len(response),
            size_=size if self.family == "negative_binomial" else None,
            categories_=list(categories),
            fixed_covariance_=covariance_at_mode(posterior, design, response, weights, encoding),
        )
        self._keep_encoding(encoding, design)
        self._generator = generator.spawn(1)[0]
        self._keep(posterior)
        return self

    def _keep_encoding(self, encoding: Encoding, design: Design) -> None:
        keep(
            self,
            names_=list(design.names),
            levels_={name: list(own) for name, own in encoding.levels.items()},
            groups_={name: list(own) for name, own in encoding.groups.items()},
            centres_={name: dict(own) for name, own in encoding.centres.items()},
            states_=encoding.states,
        )

    def _categories_of(self, rows: Rows, formula: Formula) -> tuple[str, ...]:
        """Return the categories of an ordinal response; none of other families.

        Raises
        ------
        ParameterError
            If another family has some.
        """
        if self.family == ORDINAL:
            return categories_of(rows, formula.response, self.categories)
        if self.categories is not None:
            raise ParameterError(f"only family='ordinal' has categories; got family={self.family!r}")
        return ()

    @property
    def _family(self) -> Family:
        return family_of(self.family, self._formula, categories=vars(self).get("categories_", ()))

    def _keep(self, posterior: Posterior) -> None:
        # a standard deviation between few groups is a function of a precision, of which second order has the moments,
        # but not the tail: that of the subjects of sleepstudy would be 1.6 times that of a Gibbs sampler
        posterior._show_profiled([name for name in posterior if is_precision(name) and name != RESIDUAL])
        super()._keep(posterior)

    def _check_restored(self) -> None:
        states = vars(self).get("states_", {})
        if not all(isinstance(own, Mapping) for own in (states, *dict(states).values())):
            raise ValueError("states_ is not that of functions in a formula")
        blocks = [block.label for block in self._blocks]
        if any(name not in self.posterior_ for name in (COMMON, *blocks)):
            raise ValueError("its posterior is not that of its formula")

    @property
    def _formula(self) -> Formula:
        return read(self.formula)

    @property
    def _encoding(self) -> Encoding:
        # models that were saved before they had any were fitted without
        centres, states = (vars(self).get(name, {}) for name in ("centres_", "states_"))
        return Encoding(
            self._formula, self.levels_, self.groups_, centres, self._family.has_thresholds, states
        )

    @property
    def _blocks(self) -> tuple[Block, ...]:
        """The effects of groups: what the formula makes of no rows has their names."""
        columns = {name: [] for name in self._encoding.read}
        return design_of(self._encoding, Rows(columns)).blocks

    def _as_data(self, X: Any) -> dict[str, Any]:
        """Return the rows of a table with the response, by the names of the model."""
        formula, rows = self._formula, Rows.of(X)
        response = self._family.values(rows, formula.response)
        return {**self._known(rows), formula.response: response}

    def _known(self, rows: Rows, *, groups: str = "known", may_lack: bool = False) -> dict[str, Any]:
        """Return the known arrays of the model for the rows of a table."""
        rows.refuse_unequal(sorted(self._encoding.read))
        data = design_of(self._encoding, rows, known=groups == "known", may_lack=may_lack).data
        return {**data, **trials_of(self._formula, rows, len(data[MATRIX]))}

    def predict(self, X: Any, *, groups: str = "known") -> Prediction:
        """Return predictions of the response of new rows.

        Parameters
        ----------
        X
            A table, as for :meth:`fit`, with or without the response.
        groups
            ``"known"``: groups of the fit have their effects; new groups, and rows without a group, are averaged over
            the population of groups. ``"new"``: all groups are new, and the table needs no group columns.

        Returns
        -------
        Prediction
            Prediction of a new row, including noise, with ``.mean``, ``.sd`` and, except for categories,
            ``.interval(level)``. For a binary response the mean is the probability of a 1; for ordered categories it
            has all probabilities, shape (N, K), see :meth:`predict_proba`.

        Raises
        ------
        DataError
            If a column is missing or has missing values, or a category was not in the fit.
        """
        check_is_fitted(self)
        require_choice("groups", groups, _GROUPS)
        return self._predicted(Rows.of(X), groups)

    def _unseen_groups(self, X: Any) -> dict[str, list[str]]:
        """Return the groups of a table that the fit did not have, by what they are called; of none nothing."""
        rows, encoding = Rows.of(X), self._encoding
        terms = [own for own in self._formula.groups if set(own.by) <= set(rows.names)]
        found = {own.group: encoding.unseen(own, rows) for own in terms}
        return {name: own for name, own in found.items() if own}

    def _predicted(self, rows: Rows, groups: str = "known") -> Prediction:
        if not rows.n_rows:
            raise DataError("the table has no rows, so there is nothing to predict")
        known = self._known(rows, groups=groups, may_lack=True)
        told = self.posterior_.predict(known)[self._formula.response]
        is_integrated = self.posterior_._mixed_over is not None
        if is_integrated or self.family != "gaussian" or not self.groups_:
            return told
        return replace(told, remark=remark_on_few(self.n_rows_ - len(self.names_), self.groups_))

    def predict_proba(self, X: Any, *, groups: str = "known") -> Any:
        """Return the probabilities of the categories of the response, a pandas DataFrame with a column for each.

        Parameters
        ----------
        X, groups
            As for :meth:`predict`.

        Raises
        ------
        ParameterError
            If the response is not categorical.
        """
        check_is_fitted(self)
        family = self._family
        if not family.has_thresholds and not family.is_binary:
            raise ParameterError(
                f"predict_proba is for family='ordinal', 'bernoulli' and 'probit'; predict has the mean and the "
                f"standard deviation of family={self.family!r}"
            )
        rows, told = Rows.of(X), self.predict(X, groups=groups)
        shares = told.mean if family.has_thresholds else np.stack([1.0 - told.mean, told.mean], axis=1)
        names = self.categories_ or ["0", "1"]
        return data_frame({name: shares[:, place] for place, name in enumerate(names)}, rows.index)

    def thresholds(self, *, level: float = 0.95) -> Any:
        """Return the thresholds between the categories of an ordinal response, a pandas DataFrame.

        Parameters
        ----------
        level
            Probability of the central intervals, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            A row for each threshold, named ``"low | high"`` as in R, with the columns ``mean``, ``sd``, ``lower`` and
            ``upper``.

        Raises
        ------
        ParameterError
            If the response is not ordinal.
        """
        check_is_fitted(self)
        if not self._family.has_thresholds:
            raise ParameterError(f"only family='ordinal' has thresholds; got family={self.family!r}")
        rows = threshold_rows(self.posterior_, self.categories_, self.fixed_covariance_, level)
        names = ("mean", "sd", "lower", "upper")
        found = data_frame({name: [getattr(row, name) for row in rows] for name in names})
        found.index = [row.name for row in rows]
        return found

    def fixef(self) -> Any:
        """Return the means of the common effects, a pandas Series; the intercept is at zero of all columns."""
        import pandas as pd

        check_is_fitted(self)
        means = means_of(self.posterior_, self.names_, self._encoding.centres)
        return pd.Series(means, index=list(self.names_), name="mean")

    def ranef(self, *, level: float = 0.95) -> dict[str, Any]:
        """Return the group effects: name of each term -> a pandas DataFrame with a row for each effect.

        Parameters
        ----------
        level
            Probability of the central intervals, between 0 and 1.

        Returns
        -------
        dict
            Its keys are the names of the terms, such as ``"x | school"``. A DataFrame has the columns ``group``,
            ``effect``, ``mean``, ``sd``, ``lower`` and ``upper``.
        """
        check_is_fitted(self)
        found = {}
        for block in self._blocks:
            (own,) = self.posterior_.marginals(block.label, level)
            levels, size = self.groups_[block.term.group], len(block.names)
            columns: dict[str, Any] = {
                "group": np.repeat(levels, size),
                "effect": np.tile(block.shown, len(levels)),
            }
            for name in ("mean", "sd", "lower", "upper"):
                columns[name] = np.reshape(getattr(own, name), (-1, size))[: len(levels)].ravel()
            found[block.label] = data_frame(columns)
        return found

    def summary(self, *, level: float = 0.95) -> MixedSummary:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return tables of the common effects, the noise, and standard deviations and correlations of group effects.

        Parameters
        ----------
        level
            Probability of the central intervals, between 0 and 1.
        """
        check_is_fitted(self)
        sizes = {name: len(own) for name, own in self.groups_.items()}
        rows = tuple(rows_of(self.posterior_, self.names_, self._encoding.centres, self._blocks, level))
        remark = self.posterior_.interval_remark
        if self._family.has_thresholds:
            rows = with_thresholds(rows, self.posterior_, self.categories_, self.fixed_covariance_, level)
            remark = f"{AT_MODE} Those of groups: {remark}" if self._blocks else AT_MODE
        return MixedSummary(title_of(self, sizes), rows, level, remark, self._family.units)

    def _repr_html_(self) -> str:
        """Return the summary, for a notebook; before a fit the call."""
        return self.summary()._repr_html_() if self.__sklearn_is_fitted__() else html_of(repr(self))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log predictive density of the response of new rows, in nats per row.

        Parameters
        ----------
        X
            A table with the response.
        y
            Ignored: the formula names the response.
        sample_weight
            Weight of each row, as for :meth:`fit`.
        """
        check_is_fitted(self)
        rows, weights = _weighing(X, sample_weight)
        values = self._family.values(rows, self._formula.response)
        return mean_of_rows(self._predicted(rows).log_density(values), weights)


def _best_size(elbo: Callable[[float], float]) -> float:
    """Return the size of a negative binomial with the highest ELBO, to about a hundredth of itself."""
    found = minimize_scalar(
        lambda log_size: -elbo(float(np.exp(log_size))),
        bounds=np.log(_SIZES),
        method="bounded",
        options={"xatol": 0.01},
    )
    return float(np.exp(found.x))


def _together(design: Design) -> list[tuple[str, ...]] | str:
    """Return the group of variables that share a factor: all coefficients and effects of groups."""
    labels = [block.label for block in design.blocks]
    return [(COMMON, *labels)] if labels else "apart"


def _weighing(table: Any, sample_weight: Any) -> tuple[Rows, Any]:
    """Return the rows of a table that have weight, and their weights; None if all have the same."""
    rows = Rows.of(table)
    if sample_weight is None:
        return rows, None
    refuse_other_rows(table, sample_weight=sample_weight)
    weights = as_weights(sample_weight, rows.n_rows)
    if weights is None or (weights > 0).all():
        return rows, weights
    return rows.chosen(np.flatnonzero(weights > 0)), weights[weights > 0]
