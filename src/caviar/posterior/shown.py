"""The standard deviations and intervals that a posterior shows: corrected ones, or those of its factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._errors import ModelError, ParameterError
from .._typing import Array
from ..engine.starts.restarts import distinct_ends, told_ends
from ..families.base.marginals import Marginals, variable_and_part
from ..numerics.arguments import central_ends, require_whole
from .shared_factors import Factored
from .summary import Summary, summary_of
from .uncertainty.known import HEAVY, SHOWN, MeanField, Source, Uncertainty

_OF_ROWS_BEFORE = "What earlier rows contribute is that of mean field."


class ShowsUncertainty(Factored):
    """A posterior as a table of its globals, and where the standard deviations and intervals of these come from."""

    restart_elbos: Array
    restart_traces: tuple[Array, ...]
    _n_iter_before: int = 0
    """Iterations of the fits that this one continues."""
    _uncertainty: Source = MeanField()

    @property
    def distinct_ends(self) -> tuple[tuple[float, int], ...]:
        """The distinct objectives at which starts ended, highest first, and the number of starts that ended at each.

        Ends that differ by less than 0.1 nats, or by less than one part in ten million, count as the same.
        """
        return distinct_ends(self.restart_elbos.tolist())

    @property
    def told_ends(self) -> str:
        """A sentence that says how many distinct optima the starts found, and how often the best one."""
        return told_ends(self.restart_elbos.tolist(), self.elbo)

    @property
    def stated_names(self) -> list[str]:
        """Names of the global variables that were stated, without those that an observed variable brings."""
        return [name for name in self if not self.model.variables[name].is_brought]

    def summary(
        self, *, level: float = 0.95, max_rows: int | None = 10, uncertainty: str = "auto"
    ) -> Summary:
        """Return a table of the global variables: mean, standard deviation and central credible interval of each entry.

        The lines above the table give the ELBO, why the fit ended, and, with several starts, where these ended. The
        line below it says where standard deviations and intervals come from. This line is absent if all unknown
        variables share one factor, because its intervals are exact.

        Parameters
        ----------
        level
            Probability of the intervals, between 0 and 1.
        max_rows
            Largest number of entries shown for each variable; None for all.
        uncertainty
            ``"mean_field"`` shows the standard deviations and intervals of the factors, which are too small if
            variables are dependent. The default is :attr:`uncertainty`.

        Examples
        --------
        >>> import caviar as cv
        >>> p = cv.Beta("p", 1, 1)
        >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]})
        >>> print(posterior.summary())
        ELBO -2.484907 nats, converged (iterations: 2)
        variable  at  mean   sd  95% interval
        p              0.6  0.2  0.1941 to 0.9324
        """
        ends = central_ends(level)
        if max_rows is not None:
            require_whole("max_rows", max_rows, 1)
        shown = self._shown_as(uncertainty)
        return summary_of(self, ends, max_rows, shown, self._remark_on(shown) + shown.on_tails)

    @property
    def uncertainty(self) -> str:
        """The method that gives the standard deviations and intervals of this posterior.

        ``"integrated"``, ``"importance_sampling"``, ``"second_order"``, ``"linear_response"``, or ``"mean_field"`` for
        those of the factors; :attr:`interval_remark` says why. This is decided when they are first asked for, see
        ``uncertainty=`` of :meth:`Model.fit`.
        """
        return self._shown_as("auto").kind

    def marginals(self, name: str, level: float = 0.95) -> Sequence[Marginals]:
        """Return the figures that summaries and plots show for the entries of a global variable.

        Parameters
        ----------
        name
            Name of the variable.
        level
            Probability of the central intervals, between 0 and 1.

        Returns
        -------
        Sequence
            One part, or two for a joint factor (location and precision). Each has ``mean``, ``sd``, ``lower`` and
            ``upper``, of shape (plates..., event...), and ``part``: empty, ``".mean"`` or ``".precision"``. A point
            mass has only a mean.
        """
        return self._shown_as("auto").marginals(name, self[name], central_ends(level))

    def mean(self, name: str) -> Array:
        """Return the mean of each entry of a global variable, as :meth:`summary` shows it.

        It is that of the factor, ``posterior[name]``, unless means are shown to second order or integrated.

        Parameters
        ----------
        name
            Name of the variable; for a joint factor with its part, as in ``"theta.mean"``.
        """
        return self._of_part(name, 0.95, "mean")

    def sd(self, name: str) -> Array:
        """Return the standard deviation of each entry of a global variable, as :meth:`summary` shows it.

        Parameters
        ----------
        name
            Name of the variable; for a joint factor with its part, as in ``"theta.mean"``.
        """
        return self._of_part(name, 0.95, "sd")

    def interval(self, name: str, level: float = 0.95) -> Array:
        """Return the central interval of each entry of a global variable: lower ends, then upper ends, shape (2, ...).

        Parameters
        ----------
        name
            Name of the variable; for a joint factor with its part, as in ``"theta.mean"``.
        level
            Probability, between 0 and 1.

        Examples
        --------
        >>> import caviar as cv
        >>> a, b = cv.Normal("a", 0, 1), cv.Normal("b", 0, 1)
        >>> x = cv.Normal("x", a + b, 4.0, plates=cv.Plate("obs"))
        >>> posterior = cv.Model(x).fit({"x": [1.0, 1.5, 2.0]}, tol=1e-12)
        >>> print(posterior.uncertainty, posterior.interval("a", 0.9).round(2))
        linear_response [-0.47  1.91]
        """
        return np.stack([self._of_part(name, level, end) for end in ("lower", "upper")])

    def transformed(self, function: Callable[[Array], Any], name: str) -> Any:
        """Return mean, standard deviation and quantiles of a function of a variable.

        The posterior must be integrated over this variable: the line below the summary lists these.

        Parameters
        ----------
        function
            Of an array of n values, shape (n, plates..., event...); it returns n values.
        name
            Name of the variable, one of those that the line below the summary lists.

        Returns
        -------
        Weighted
            With ``.mean``, ``.sd``, ``.quantile(q)`` and ``.interval(level)``.

        Raises
        ------
        ModelError
            If the posterior is not integrated over the variable; ``linear_response(data).transformed`` takes any.

        Examples
        --------
        The standard deviation of noise, from its precision:

        >>> import caviar as cv
        >>> x = cv.Normal("x", cv.Normal("m", 0, 0.1), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
        >>> posterior = cv.Model(x).fit({"x": [0.2, -0.5, 1.0, 0.3, 0.0]})
        >>> print(posterior.transformed(lambda tau: tau**-0.5, "tau").interval(0.9).round(1))
        [0.6 1.4]
        """
        found = self._weighted(name)
        if found is None:
            raise ModelError(
                f"this posterior is not integrated over {name!r}; "
                f"posterior.linear_response(data).transformed(function, {name!r}) takes any global variable"
            )
        return found.transformed(function)

    @property
    def _n_iter_in_all(self) -> int:
        """Iterations of all starts, and of the fits that this one continues."""
        return self._n_iter_before + sum(map(len, self.restart_traces))

    def _goes_on_from(self, earlier: ShowsUncertainty) -> None:
        """Count the iterations of an earlier fit as those of this one."""
        self._n_iter_before += earlier._n_iter_in_all

    def _show(self, uncertainty: Source) -> None:
        """Show other standard deviations and intervals."""
        self._uncertainty = uncertainty.begun(self)

    def _weighted(self, name: str) -> Any:
        """Return the weighted values from which the figures of a variable come; None if they do not."""
        return self._shown_as("auto").weighted(name)

    def _of_part(self, name: str, level: float, figure: str) -> Array:
        variable, _ = variable_and_part(str(name), tuple(self))
        found = {variable + own.part: getattr(own, figure) for own in self.marginals(variable, level)}
        if name not in found:
            raise ModelError(f"'{variable}' has {' and '.join(map(repr, found))}; got {name!r}")
        value = found[name]
        if value is None:
            raise ModelError(f"'{name}' is a point or a label, which has no interval here")
        return np.asarray(value)

    def _shown_as(self, kind: str) -> Uncertainty:
        """Return where standard deviations and intervals come from."""
        if kind not in SHOWN:
            raise ParameterError(f"uncertainty must be one of {', '.join(map(repr, SHOWN))}; got {kind!r}")
        if kind == "mean_field":
            return MeanField()
        found = self._uncertainty = self._uncertainty.settled(self)
        if kind not in ("auto", found.kind):
            how = {
                "linear_response": "call posterior.linear_response(data).summary() with the data of the fit",
                "importance_sampling": "call posterior.importance_sample(data) with the data of the fit",
            }.get(kind, f"fit with uncertainty={kind!r}")
            raise ModelError(
                f"this posterior does not have the standard deviations of {kind.replace('_', ' ')}. {found.remark} "
                f"To have them, {how}"
            )
        return found

    def _remark_on(self, shown: Uncertainty) -> str:
        if self.is_exact:
            return ""
        before = "" if self._evaluator.prior is None or shown.kind == "mean_field" else f" {_OF_ROWS_BEFORE}"
        return f"{shown.remark}{before}{self._remark_on_tails()}"

    def _remark_on_tails(self) -> str:
        """Say whose standard deviation is infinite, and that this is not an error."""
        parts = [
            (name + own.part, own.sd)
            for name in self.stated_names
            for own in self[name].entry_marginals((0.05, 0.95))
        ]
        heavy = [name for name, sd in parts if sd is not None and np.isinf(sd).any()]
        if not heavy:
            return ""
        return (
            f" An entry of {' and of '.join(heavy)} has an infinite standard deviation: {HEAVY}. Its interval is that "
            f"of the factor."
        )

    @property
    def interval_remark(self) -> str:
        """A sentence that says where the intervals come from; empty if they are exact."""
        return self._remark_on(self._shown_as("auto"))

    def _repr_html_(self) -> str:
        """Return the summary, for a notebook."""
        return self.summary()._repr_html_()
