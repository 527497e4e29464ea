"""LinearResponse: standard deviations, covariances and intervals of a fit beyond mean field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._errors import CaviarError, DataError, ModelError, ParameterError
from .._typing import AnyArray, Array
from ..engine.ascent.problem import Problem
from ..engine.compiled.stated_priors import stated_prior
from ..engine.response.quantities import FLAT_DIRECTION, Response
from ..engine.rows.row_map import RowMap
from ..families.base.marginals import Ends, Marginals, normal_marginals, with_places
from ..language import Bernoulli, Beta, Categorical, Dirichlet, Normal
from ..lazy.rows import as_floats
from ..names import Placed
from ..numerics.arguments import central_ends
from .figures import Figures, figures_of
from .pandas_tables import densities_along_rows
from .sensitivity import Sensitivity, sensitivity_of
from .shared_factors import Factored
from .summary import Summary, summary_of
from .uncertainty.known import HEAVY, Corrected, Widths, matched

_KNOWN_CHANCE = 1e-6
"""Standard deviation up to which a chance counts as known, as by a prior Beta(1e-6, 1e6)."""

_NEARLY_FLAT = 1e-5
"""Smallest eigenvalue below which a direction may be flat: a fit that has not quite settled cannot tell."""


class LinearResponse:
    """Covariances, standard deviations and intervals of global variables by linear response.

    :meth:`Posterior.linear_response` makes it. Variables are named as in the summary: a joint factor has
    ``"NAME.mean"`` and ``"NAME.precision"``.

    Examples
    --------
    >>> import caviar as cv
    >>> a, b = cv.Normal("a", 0, 1), cv.Normal("b", 0, 1)
    >>> data = {"x": [1.0, 1.5, 2.0]}
    >>> posterior = cv.Model(cv.Normal("x", a + b, 4.0, plates=cv.Plate("obs"))).fit(data, factors="apart")
    >>> response = posterior.linear_response(data)
    >>> print(posterior["a"].variance.round(4), response.covariance("a").round(4))  # exact: 13/25
    0.0769 0.52
    """

    def __init__(self, posterior: Any, response: Response) -> None:
        self._posterior = posterior
        self._response = response
        self._between: dict[tuple[str, str], Array] = {}

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue: positive at a maximum of the ELBO, negative at a saddle point, near 0 if it is flat.

        It is the smallest eigenvalue of the Hessian of minus the ELBO, relative to the precision of the factors. It is
        1 if all factors are independent, and near 0 if mean field is much too narrow in some direction.
        """
        return self._response.smallest_eigenvalue

    @property
    def weakest_direction(self) -> str:
        """The variables along which the ELBO changes least, or at a saddle point increases, in words."""
        return self._response.weakest_direction

    @property
    def log_determinant(self) -> float:
        """The log determinant of I - V H.

        It is 0 if all factors are independent, and negative otherwise. Point masses are fixed at their values, as in
        the ELBO. See :meth:`Posterior.evidence`.

        Raises
        ------
        ModelError
            If the fit has not converged or ended at a saddle point, and for models with too many coordinates.
        """
        return self._response.log_determinant()

    @property
    def elbo_correction(self) -> float:
        """What second order adds to the ELBO, in nats: minus half of :attr:`log_determinant`.

        With ``method="expectation"`` of a link, where the determinant would count the largest terms three times, it is
        these terms.
        """
        return self._response.elbo_correction()

    @property
    def hides_labels(self) -> bool:
        """Whether rows have hidden labels, which are integrated out."""
        return self._response.hides_labels

    @property
    def has_expectations(self) -> bool:
        """Whether the ELBO has the expected log densities of rows, as with ``method="expectation"`` of a link."""
        return self._response.has_expectations

    def between_all(self, one: str, other: str) -> Array:
        """Return the covariances of all entries of two variables, shape (n, m), with both parts of joint factors.

        Raises
        ------
        ModelError
            If a covariance is infinite.
        """
        found = self._response.covariance(one, other)
        if not np.isfinite(found).all():
            for name in dict.fromkeys((one, other)):
                if np.isinf(self._response.within(name)).any():
                    raise ModelError(
                        f"'{name}' has an infinite variance: {HEAVY}. Fit fewer components, or give the prior more "
                        f"degrees of freedom"
                    )
            raise ModelError(f"'{one}' and '{other}' have infinite covariances: {FLAT_DIRECTION}")
        return found

    def covariance(self, one: str, other: str | None = None) -> Array:
        """Return the covariances between all entries of two variables, or of one, of the two shapes joined.

        Parameters
        ----------
        one, other
            Names of the variables. Without ``other``, the covariances within one variable.

        Examples
        --------
        >>> import caviar as cv
        >>> p = cv.Dirichlet("p", [1, 1, 1])
        >>> data = {"x": [0, 1, 1, 2]}
        >>> posterior = cv.Model(cv.Categorical("x", p, plates=cv.Plate("obs"))).fit(data)
        >>> print(posterior.linear_response(data).covariance("p").round(4))
        [[ 0.0255 -0.0153 -0.0102]
         [-0.0153  0.0306 -0.0153]
         [-0.0102 -0.0153  0.0255]]
        """
        a, b = self._part(one), self._part(one if other is None else other)
        found = self._response.covariance(a.variable, b.variable)
        return found[np.ix_(a.places, b.places)].reshape((*a.shape, *b.shape))

    def sd(self, name: str) -> Array:
        """Return the standard deviation of each entry of a variable; infinite if nothing determines the entry."""
        part = self._part(name)
        return np.sqrt(self._response.variance(part.variable)[part.places]).reshape(part.shape)

    def interval(self, name: str, level: float = 0.95) -> Array:
        """Return the central interval of each entry of a variable, shape (2, ...): lower ends, then upper ends.

        Each entry has the mean of its factor and the standard deviation of linear response. Locations are Normal, or
        Student-t with the degrees of freedom of a joint factor. Precisions and other positive numbers have Gamma
        distributions. Probabilities have Beta distributions, or are Normal on the logit scale if no Beta has such a
        variance.

        Parameters
        ----------
        name
            Name of the variable.
        level
            Probability, between 0 and 1.
        """
        part = self._part(name)
        figures = self._figures(part, self.sd(name), central_ends(level))
        if figures.lower is None or figures.upper is None:
            raise ModelError(f"'{name}' is a label or a count, which has probabilities, but no interval")
        return np.stack([figures.lower, figures.upper])

    def transformed(self, function: Callable[..., ArrayLike], *names: str) -> Transformed:
        """Return a function of variables, such as a difference or a standard deviation, with its covariance.

        It uses the delta method: the function at the means, and its covariance from the derivatives there. This is
        exact for linear functions, and accurate for functions that are nearly linear within a standard deviation.

        Parameters
        ----------
        function
            Function of the values of the variables, arrays of the shapes of their means, that returns an array.
        names
            Names of the variables, in the order of the arguments of the function.

        Examples
        --------
        >>> import numpy as np, caviar as cv
        >>> tau = cv.Gamma("tau", 2, 2)
        >>> data = {"x": [1.0, -0.5, 2.0, 0.3]}
        >>> x = cv.Normal("x", cv.Normal("m", 0, 1), tau, plates=cv.Plate("obs"))
        >>> response = cv.Model(x).fit(data, tol=1e-12).linear_response(data)
        >>> noise = response.transformed(lambda tau: tau**-0.5, "tau")
        >>> print(round(float(noise.mean), 3), round(float(noise.sd), 3))
        1.018 0.267
        """
        if not names:
            raise ParameterError("transformed needs the names of the variables that the function takes")
        parts = [self._part(name) for name in names]
        means = [np.asarray(part.marginals.mean, dtype=np.float64) for part in parts]
        mean = np.asarray(function(*means), dtype=np.float64)
        slopes = [_slopes(function, means, number, 1e-3 * self.sd(name)) for number, name in enumerate(names)]
        covariance = np.zeros((mean.size, mean.size))
        for one, a in zip(names, slopes, strict=True):
            for other, b in zip(names, slopes, strict=True):
                own = self.covariance(one, other).reshape(a.shape[1], b.shape[1])
                covariance += a @ own @ b.T
        return Transformed(mean, covariance.reshape(mean.shape * 2))

    def sensitivity(self, name: str) -> dict[str, Array]:
        """Return the derivatives of the means of a variable with respect to the numbers in the priors.

        Parameters
        ----------
        name
            Name of the variable.

        Returns
        -------
        dict
            ``"VARIABLE.PARAMETER"`` -> derivatives, of shape (shape of the parameter as stated) + (shape of the
            variable). Two symmetric entries of a matrix change together, by half each. Flat priors, and priors that
            depend on other variables, have no numbers.

        Examples
        --------
        The mean of a Normal with the precision 1 and three rows of precision 4 is 12/13 of their mean:

        >>> import caviar as cv
        >>> m = cv.Normal("m", 0, 1)
        >>> data = {"x": [1.0, 1.5, 2.0]}
        >>> posterior = cv.Model(cv.Normal("x", m, 4.0, plates=cv.Plate("obs"))).fit(data)
        >>> found = posterior.linear_response(data).sensitivity("m")
        >>> print({prior: round(float(slope), 4) for prior, slope in found.items()})
        {'m.mean': 0.0769, 'm.precision': -0.1065}
        """
        part = self._part(name)
        return {
            prior: slopes[..., part.places].reshape(slopes.shape[:-1] + part.shape)
            for prior, slopes in self._response.sensitivity(part.variable).items()
        }

    def predict(self, data: Any) -> dict[str, Any]:
        """Return the predictions of :meth:`Posterior.predict` with the covariances of linear response.

        Global variables have the covariances of linear response, also between different variables of a predictor; joint
        factors and Dirichlet processes keep the covariances of q. Local variables have their factors under q. Models
        with a chain are refused; use :meth:`Posterior.predict`.

        Parameters
        ----------
        data
            As for :meth:`Posterior.predict`.

        Returns
        -------
        dict
            Name of each observed variable missing in ``data`` -> :class:`Prediction`, with ``.mean``, ``.sd`` and
            ``.interval(level)``.

        Raises
        ------
        ModelError
            If the model has a chain, or the objective is constant along some direction, such as a rotation of factors.

        Examples
        --------
        >>> import caviar as cv
        >>> a, b = cv.Normal("a", 0, 1), cv.Normal("b", 0, 1)
        >>> x = cv.Normal("x", a + b, 4.0, plates=cv.Plate("obs"))
        >>> data = {"x": [1.0, 1.5, 2.0]}
        >>> posterior = cv.Model(x).fit(data, tol=1e-12)
        >>> posterior.linear_response(data).predict({})["x"]
        Prediction(mean=[1.44], standard_deviation=[0.5745])
        """
        posterior = self._posterior
        chain = next((own for own in posterior.model.variables.values() if own.summed), None)
        if chain is not None:
            raise ModelError(
                f"predictions of linear response need the covariances of the parameters with the states of "
                f"'{chain.name}', which it does not keep: without them a level and a state that balance each other "
                f"would both count in full. posterior.predict(data) predicts with the factors of the fit"
            )
        if self.why_doubtful:
            raise ModelError(
                f"linear response has no predictions here: {self.why_doubtful}. posterior.predict(data) predicts with "
                f"the factors of the fit"
            )
        factors = {name: self._corrected(name, posterior[name]) for name in posterior}
        return posterior._predicted(data, factors, self)

    def log_predictive(self, data: Any) -> Any:
        """Return the log density of each row of data, with the means and variances of :meth:`predict`.

        A real number has a Normal density, or a mixture of Normals if labels choose its parents; a binary outcome or a
        label has its probability. This also works if :meth:`Posterior.log_predictive` has no closed form because a
        density depends on several independent factors of q.

        Parameters
        ----------
        data
            Data as for the fit, with any number of rows. The rows are scored independently.

        Returns
        -------
        Array
            In nats, shape (rows,); 0 for a row without observations. For a pandas DataFrame, a Series with its index.

        Raises
        ------
        ModelError
            If there are several observed variables, or the rows are vectors or counts.

        Examples
        --------
        >>> import caviar as cv
        >>> a, b = cv.Normal("a", 0, 1), cv.Normal("b", 0, 1)
        >>> x = cv.Normal("x", a + b, 4.0, plates=cv.Plate("obs"))
        >>> data = {"x": [1.0, 1.5, 2.0]}
        >>> response = cv.Model(x).fit(data, tol=1e-12).linear_response(data)
        >>> print(response.log_predictive({"x": [1.44, 3.0]}).round(3))  # Normal(1.44, 0.33)
        [-0.365 -4.052]
        """
        (leaf, *others) = self._posterior.model.leaves
        is_label = isinstance(leaf, Bernoulli | Categorical)
        if others or len(leaf.plates) != 1 or not (is_label or isinstance(leaf, Normal)):
            raise ModelError(
                "log_predictive of linear response needs a single observed variable along the rows, which is a real "
                "number, a number 0 or 1, or a label; try posterior.log_predictive(data), which may have a closed form"
            )
        met = self._posterior._evaluator.named(data)
        if leaf.name not in met.values:
            raise DataError(f"the data lack '{leaf.name}', which log_predictive needs")
        # refuses values that the variable cannot have
        self._posterior._evaluator.bind(met.values)
        others_known = Placed({name: value for name, value in met.values.items() if name != leaf.name})
        told = self.predict(others_known)[leaf.name]
        values = as_floats(met.values[leaf.name])
        if not is_label:
            found = told.log_density(values)
        else:
            labels = np.nan_to_num(values).astype(np.intp)
            shares = (
                told.mean if isinstance(leaf, Categorical) else np.stack([1 - told.mean, told.mean], axis=-1)
            )
            with np.errstate(divide="ignore"):
                found = np.log(shares[np.arange(len(labels)) if len(shares) > 1 else 0, labels])
        return densities_along_rows(np.where(np.isnan(values), 0.0, found), data, met.index)

    def between(self, one: str, i: AnyArray, other: str, j: AnyArray) -> Array | None:
        """Return the covariances of entries of two variables, by the positions of the entries; i and j broadcast.

        None for joint factors and along flat directions.
        """
        whole = self._between.get((one, other))
        if whole is None and one in self._parts and other in self._parts:
            whole = self._between[one, other] = self._response.covariance(one, other)
        return None if whole is None or not np.isfinite(whole).all() else whole[i, j]

    def _corrected(self, name: str, factor: Any) -> Any:
        """Return a factor with the covariance of each repetition; unchanged if its family has no such member."""
        if name not in self._parts or (factor.learnt is not None and factor.learnt is not factor):
            return factor
        part = self._parts[name]
        n_batch = len(self._posterior.model.variables[name].plates)
        batch = part.shape[:n_batch]
        size = int(np.prod(part.shape[n_batch:], dtype=int))
        whole = self._response.covariance(name, name)
        places = part.places.reshape(-1, size)
        covariance = whole[places[:, :, None], places[:, None, :]].reshape(*batch, size, size)
        mean = np.asarray(part.marginals.mean, dtype=np.float64)
        found = factor.family.of_spread(mean, covariance) if np.isfinite(covariance).all() else None
        return factor if found is None else found

    def elbo_sensitivity(self) -> dict[str, Array]:
        """Return the derivatives of the ELBO with respect to the numbers in the priors, in nats per unit.

        Returns
        -------
        dict
            ``"VARIABLE.PARAMETER"`` -> derivatives, in the shape of the parameter as stated.
        """
        return self._response.elbo_sensitivity()

    def sensitivity_table(self, *names: str) -> Sensitivity:
        """Return a table that shows how far the means move when the numbers in the priors change.

        A number is increased by a tenth, all entries of an array together. A location is increased by a tenth of the
        standard deviation of its prior (or of the posterior, if that of the prior is infinite), one entry at a time.
        Changes of means are in standard deviations of linear response, to first order.

        Parameters
        ----------
        names
            Names of the variables whose means are shown; by default all.

        Examples
        --------
        >>> import caviar as cv
        >>> tau = cv.Gamma("tau", 2, 2)
        >>> x = cv.Normal("x", cv.Normal("m", 0, 1), tau, plates=cv.Plate("obs"))
        >>> data = {"x": [1.0, -0.5, 2.0, 0.3]}
        >>> print(cv.Model(x).fit(data, tol=1e-12).linear_response(data).sensitivity_table())
        prior        stated  changed by     m, sd   tau, sd  ELBO, nats
        tau.shape         2  10%           +0.014     +0.11      +0.021
        tau.rate          2  10%           -0.013      -0.1     +0.0069
        m.mean            0  0.1 prior sd  +0.046    +0.006      +0.056
        m.precision       1  10%           -0.025  +0.00095      +0.024
        """
        wanted = names or tuple(self._parts)
        values = self._response.prior_values()
        locations = {
            prior: self._spread_of_prior(variable)
            for prior, (variable, parameter, _) in values.items()
            if parameter == "mean"
        }
        return sensitivity_of(
            values,
            {name: self.sensitivity(name) for name in wanted},
            {name: self.sd(name) for name in wanted},
            self.elbo_sensitivity(),
            locations,
            {name: list(self._figures_of(name).names) for name in wanted},
        )

    def _figures_of(self, name: str) -> Figures:
        """Return the figures of a variable under its factor, with the names of its places."""
        part = self._parts[name]
        return figures_of(self._posterior, part.variable, [part.marginals])[0]

    def _spread_of_prior(self, variable: str) -> Array:
        """Return a typical standard deviation of the prior of a location; of the posterior if that is infinite."""
        own = stated_prior(self._posterior.model.variables[variable], self._posterior.model.value_of)
        sd = None if own is None else own.entry_marginals((0.05, 0.95))[0].sd
        finite = np.asarray([] if sd is None else sd)[np.isfinite(np.asarray([] if sd is None else sd))]
        name = next(name for name, part in self._parts.items() if part.variable == variable)
        return np.asarray(np.median(finite) if finite.size else np.median(self.sd(name)))

    def summary(self, *, level: float = 0.95, max_rows: int | None = 10) -> Summary:
        """Return the table of :meth:`Posterior.summary` with these standard deviations and intervals.

        Parameters
        ----------
        level
            Probability of the intervals, between 0 and 1.
        max_rows
            Largest number of entries shown for each variable; None shows all.
        """
        return summary_of(self._posterior, central_ends(level), max_rows, self.widths())

    def widths(self, left_out: Collection[str] = ()) -> Widths:
        """Return the standard deviations of all entries of all variables, as a posterior stores them.

        With outcomes that are not Normal, the groups of a large shared factor keep the standard deviations of that
        factor.

        Parameters
        ----------
        left_out
            Names of further variables that keep the standard deviations of their factor.
        """
        names = dict.fromkeys(part.variable for part in self._parts.values())
        told = [name for name in names if name not in left_out and self._response.tells(name)]
        sds = {name: np.sqrt(self._response.variance(name)) for name in told}
        return Widths(sds, tuple(name for name in names if name not in sds))

    def corrected(self, left_out: Collection[str] = ()) -> Corrected:
        r"""Return means and standard deviations to second order, as a posterior stores them.

        .. math:: \Delta \mathrm E[g] = G'(0), \quad \Delta \mathrm{Var}[g] = G''(0), \quad
            G(s) = -\tfrac12 \log |I - V H|

        at the fixed point of the log joint density tilted by s times a number g. The series ends here: a mean moves by
        at most a standard deviation, a variance becomes at most four times and at least half as large, and a number
        stays as it is where it would leave the range of its variable, or where the tilt has no fixed point. Variables
        with such numbers are in ``limited``. Repetitions with nothing observed below them, on which the evidence does
        not depend, have the figures of linear response; their variables are in ``unseen``.

        Parameters
        ----------
        left_out
            Names of variables that keep the moments of their factor.

        Raises
        ------
        ModelError
            For point masses, or for more than 300 coordinates.
        """
        widths = self.widths(left_out)
        sds, shifts, limited = {}, {}, []
        # the series need not hold for what links bring, which nobody is shown
        stated = [name for name in self._posterior.stated_names if name in widths.sds]
        corrections = self._response.second_order(stated)
        for name in stated:
            sd = widths.sds[name]
            told = corrections[name]
            told = (self._of_sum_zero(name, told[0], sd), told[1])
            shift = np.clip(np.nan_to_num(told[0]), -sd, sd)
            variance = np.clip(sd**2 + np.nan_to_num(told[1]), 0.5 * sd**2, 4.0 * sd**2)
            corrected = np.sqrt(variance)
            parts = Corrected({name: corrected}, (), {name: shift}).marginals(
                name, self._posterior[name], (0.05, 0.95)
            )
            lower = np.concatenate([np.ravel(own.mean if own.lower is None else own.lower) for own in parts])
            is_known = sd <= self._least_sd(name)
            stays = np.isnan(lower) | is_known
            shifts[name] = self._of_sum_zero(name, np.where(stays, 0.0, shift), np.where(stays, 0.0, sd))
            sds[name] = np.where(stays, sd, corrected)
            whole = (shift == told[0]) & (variance == sd**2 + told[1]) & ~np.isnan(lower)
            if not whole[np.isfinite(sd) & ~is_known].all():
                limited.append(name)
        unseen = tuple(name for name in sds if self._response.has_unseen(name))
        return Corrected(sds, widths.kept, shifts, tuple(limited), unseen)

    def _of_sum_zero(self, name: str, shifts: Array, sds: Array) -> Array:
        """Return shifts of the means of a variable, those of weights with a sum of 0: the weights themselves sum to 1.

        The derivatives have this sum. Differences between two tilts, each with an error about in proportion to the
        standard deviation, do not: the closest shifts in units of these have it.
        """
        if not isinstance(self._posterior.model.variables[name], Dirichlet):
            return shifts
        size = np.shape(self._posterior[name].mean)[-1]
        found, squared = shifts.reshape(-1, size), np.square(sds).reshape(-1, size)
        squared = np.where(np.isfinite(found) & np.isfinite(squared), squared, 0.0)
        total = squared.sum(axis=-1, keepdims=True)
        share = np.divide(squared, total, out=np.zeros_like(squared), where=total > 0)
        return np.ravel(found - share * np.nansum(found, axis=-1, keepdims=True))

    def _least_sd(self, name: str) -> float:
        """Return the standard deviation up to which a number is known: of a chance that a prior has at about 0 or 1."""
        return _KNOWN_CHANCE if isinstance(self._posterior.model.variables[name], Beta | Dirichlet) else 0.0

    @property
    def why_none(self) -> str:
        """The reason why there are no covariances, such as a fit that has not converged; empty if there are."""
        return self._response.why_none

    @property
    def why_doubtful(self) -> str:
        """The reason why they are not shown by default; empty if they are."""
        return self.why_none or ("" if self._response.is_above(_NEARLY_FLAT) else FLAT_DIRECTION)

    def _figures(self, part: _Part, sd: Array, ends: Ends) -> Marginals:
        factor = self._posterior[part.variable]
        own = next(other for other in factor.entry_marginals(ends) if other.part == part.marginals.part)
        return matched(factor, own, sd, ends)

    def _part(self, name: str) -> _Part:
        if name in self._parts:
            return self._parts[name]
        known = ", ".join(map(repr, self._parts))
        raise ModelError(f"linear response has the global variables {known}; got {name!r}")

    @cached_property
    def _parts(self) -> dict[str, _Part]:
        """The parts of all variables by the names that they have in a summary."""
        found: dict[str, _Part] = {}
        for name in self._posterior:
            for own, places in with_places(self._posterior[name].entry_marginals((0.05, 0.95))):
                found[name + own.part] = _Part(
                    name, own, np.arange(places.start, places.stop), np.shape(own.mean)
                )
        return found

    def _repr_html_(self) -> str:
        """Return the summary, for a notebook."""
        return self.summary()._repr_html_()

    def __repr__(self) -> str:
        return f"LinearResponse(smallest_eigenvalue={self.smallest_eigenvalue:.4g})"


@dataclass(frozen=True)
class Transformed:
    """A function of variables by the delta method.

    Attributes
    ----------
    mean
        The function at the means.
    covariance
        Of its entries, shape of the mean twice.
    """

    mean: Array
    covariance: Array

    @property
    def sd(self) -> Array:
        """Standard deviation of each entry."""
        size = self.mean.size
        return np.sqrt(self.covariance.reshape(size, size).diagonal()).reshape(self.mean.shape)

    def interval(self, level: float = 0.95) -> Array:
        """Return the central interval of each entry, those of a Normal: lower ends, then upper ends, (2, ...)."""
        figures = normal_marginals(self.mean, self.sd, central_ends(level))
        return np.stack([np.asarray(figures.lower), np.asarray(figures.upper)])


def _slopes(function: Callable[..., ArrayLike], means: Sequence[Array], number: int, steps: Array) -> Array:
    """Return the derivatives of a function by the entries of one of its arguments, (results, entries).

    By differences of the fourth order.
    """

    def at(place: int, times: float) -> Array:
        moved = [mean.copy() for mean in means]
        moved[number].flat[place] += times * steps.flat[place]
        return np.ravel(np.asarray(function(*moved), dtype=np.float64))

    columns = []
    for place in range(means[number].size):
        if not 0 < steps.flat[place] < np.inf:
            columns.append(np.zeros(at(place, 0.0).shape))
            continue
        narrow, wide = at(place, 1.0) - at(place, -1.0), at(place, 2.0) - at(place, -2.0)
        columns.append((8.0 * narrow - wide) / (12.0 * steps.flat[place]))
    return np.stack(columns, axis=1)


class _Part:
    """A part of the value of a variable: its figures under the factor, and the places of its entries."""

    def __init__(self, variable: str, marginals: Marginals, places: AnyArray, shape: tuple[int, ...]) -> None:
        self.variable = variable
        self.marginals = marginals
        self.places = places
        self.shape = shape


class Responds(Factored):
    """A posterior that has linear response."""

    def _smallest_eigenvalue(self, data: Any, sample_weight: Any) -> tuple[float | None, str]:
        """Return the smallest eigenvalue of linear response and its direction; none if there is no linear response."""
        try:
            response = self.linear_response(data, sample_weight=sample_weight)
            return response.smallest_eigenvalue, response.weakest_direction
        except (CaviarError, np.linalg.LinAlgError):
            return None, ""

    def linear_response(
        self, data: Any, *, sample_weight: Any = None, executor: Any = None
    ) -> LinearResponse:
        r"""Return covariances, standard deviations and intervals by linear response, which mean field underestimates.

        Mean field treats factors as independent. Means are mostly accurate, but standard deviations are too small and
        covariances between factors are 0. Linear response computes how the means of all factors move if the log joint
        density is tilted slightly, which is their covariance,

        .. math:: \hat\Sigma = (I - V H)^{-1} V,

        with the covariances V of the statistics of each factor, and the second derivatives H of the expected log joint
        density. It is exact if the posterior is Normal.

        Parameters
        ----------
        data
            The data of the fit.
        sample_weight
            As for the fit.
        executor
            As for the fit; by default all cores of this machine are used.

        Returns
        -------
        LinearResponse
            With ``.sd("mean")``, ``.covariance("mean", "weights")``, ``.interval("weights", 0.9)``, ``.summary()`` and
            ``.smallest_eigenvalue``.

        Raises
        ------
        DataError
            If the data are not those of the fit: q has another ELBO for them.
        ModelError
            For documents whose proportions have hidden parents. If the fit ended at a saddle point or has not
            converged, the methods of the result raise it.

        Notes
        -----
        For point masses it gives the standard errors of EM: square roots of the diagonal of the inverse observed
        information, or with priors of the inverse Hessian of the log posterior. It describes only the mode of the fit
        and cannot show an error of the means. With up to 300 coordinates (statistics of factors) the matrix is computed
        in passes of 64 coordinates each, or in a single pass for mixtures. With more coordinates each request takes
        conjugate gradients, until there are many requests. Giordano, Broderick and Jordan, "Covariances, robustness,
        and variational Bayes" (2018).

        Examples
        --------
        The data determine only the sum of two means, and each mean has its own factor:

        >>> import numpy as np, caviar as cv
        >>> a, b = cv.Normal("a", 0, 1), cv.Normal("b", 0, 1)
        >>> x = cv.Normal("x", a + b, 4.0, plates=cv.Plate("obs"))
        >>> posterior = cv.Model(x).fit({"x": [1.0, 1.5, 2.0]}, factors="apart", tol=1e-12)
        >>> response = posterior.linear_response({"x": [1.0, 1.5, 2.0]})
        >>> print(round(float(np.sqrt(posterior["a"].variance)), 4), round(float(response.sd("a")), 4))
        0.2774 0.7211
        >>> print(round(float(response.covariance("a", "b")), 4))
        -0.48
        """
        return self._responding(data, sample_weight, executor)

    def _responding(
        self,
        data: Any,
        sample_weight: Any = None,
        executor: Any = None,
        *,
        is_whole: bool = True,
        has_determinant: bool = False,
        bound: tuple[Problem, RowMap] | None = None,
    ) -> LinearResponse:
        """Return linear response; with ``is_whole`` false, of a shared factor only where the others meet it.

        With ``has_determinant`` what has none is refused before it is computed. ``bound`` is the problem of these data
        and the map over their rows, if they are known.
        """
        problem, row_map = bound or self._evaluator.bind(data, sample_weight, executor, are_fitted=True)
        factors = {**self._factors, **self._shared.independent(self._factors)}
        response = Response(problem, factors, row_map, is_whole=is_whole, has_determinant=has_determinant)
        self._refuse_other_data(response.elbo)
        return LinearResponse(self, response)
