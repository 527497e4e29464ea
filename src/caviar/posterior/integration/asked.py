"""What a posterior says without the independence of some of its globals and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._errors import ModelError, ParameterError
from ...engine.ascent.problem import Problem
from ...engine.ascent.state import AscentState
from ...engine.evaluation.given_by_passes import GivenByRows, has_one_mode, state_at
from ...engine.factorisation import APART
from ...engine.response.cost import is_cheap_to_integrate, is_cheap_to_probe
from ...engine.response.given import Given, GivenInRows
from ...engine.response.probed import GivenByProbes
from ...engine.rows.row_map import RowMap
from ...language.in_expectation import in_expectation
from ..linear_response import LinearResponse, Responds
from ..prediction.over import Over
from ..prediction.over_draws.mixed import over_draws
from ..prediction.over_precisions.averaged import over_precisions
from ..shown import ShowsUncertainty
from ..uncertainty.known import Corrected, Source, Uncertainty, Widths
from ..uncertainty.pending import Pending
from .at_once import MOST_NUMBERS, integral_of, means_of, of_light_tails, separating_of
from .doubts import doubt_of, doubt_of_series, drawn_if_better, may_be_drawn, may_be_narrower
from .fits_at_values import TO_A_FIXED_POINT, arguments_of, fits_at_values
from .integrated import IntegratedPosterior
from .lattice_of_fits import MOST_DIMENSIONS, integral_of_fits, profiles_of
from .of_mixtures import OVERLAP, integrated_over_scale, is_cheap, scale_shared_by_components
from .over_effects import doubt_of_effects_of_rows, integrated_over_effects_of_rows
from .shown import Integrated

_MOST_BY_ROWS = 4
"""Numbers integrated over where each value takes a pass: of effects and the spread they depend on weights are poor."""

_SKEWED = 0.25
"""Standard deviation of a positive number, relative to its mean, above which its density is integrated where second
order holds, too: a Gamma with these moments has half the skewness of the density of a precision of noise in 20 rows."""


class Integrates(ShowsUncertainty, Responds):
    """A posterior that is integrated over some globals."""

    _over: tuple[Source, Over | None] | None = None
    """What predictions are integrated over, with where the figures shown then came from."""

    def integrated(
        self, data: Any, over: str | Sequence[str], *, sample_weight: Any = None, executor: Any = None
    ) -> IntegratedPosterior:
        r"""Return the posterior integrated over some globals, which are then no longer independent of the others.

        The model is fitted again with these globals fixed at each point of a grid of values. Their density follows from
        the second-order evidence of the fits. All other globals are mixtures of the fits, with the standard deviations
        of linear response. The result is exact if the others are Normal, for example if all precisions of a Gaussian
        model are integrated over.

        Parameters
        ----------
        data
            The data of the fit.
        over
            One or several names of global variables with at most three numbers in all. It helps most for precisions of
            effects of few groups, because these depend on each other.
        sample_weight, executor
            As for the fit.

        Returns
        -------
        IntegratedPosterior
            With ``.mean(name)``, ``.sd(name)``, ``.interval(name, level)`` and ``.transformed(function, name)`` for all
            globals, ``.predict(new)``, ``.log_evidence``, and ``.elbo``, which is at least that of this posterior.

        Raises
        ------
        ParameterError
            If a name is not a global variable, or they have more than three numbers.
        ModelError
            If one of them is a point mass, a label or partly known, if their density does not decay, or if the prior of
            the fit was an earlier posterior.

        Notes
        -----
        It takes about 30 fits for one number, 150 for two and 500 for three, each started at a neighbour, and linear
        response for those with weight.

        Examples
        --------
        The mean of five values whose noise is not known has a Student-t distribution if its prior is flat:

        >>> import numpy as np, caviar as cv
        >>> x = cv.Normal("x", cv.Normal("m", 0, 1e-8), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
        >>> data = {"x": [0.2, -0.5, 1.0, 0.3, 0.0]}
        >>> posterior = cv.Model(x).fit(data)
        >>> found = posterior.integrated(data, "tau")
        >>> print(round(float(np.sqrt(posterior["m"].variance)), 4), found.sd("m").round(4))
        0.3599 0.4155
        """
        names = _checked(over, self._factors)
        if self._evaluator.prior is not None:
            raise ModelError(
                "the prior of this posterior was an earlier posterior, whose rows are not in these data; fit "
                "the model to all rows at once to integrate over its globals"
            )
        return fits_at_values(self, names, data, {"sample_weight": sample_weight, "executor": executor})

    @property
    def _mixed_over(self) -> Over | None:
        """What predictions are mixtures over, as summaries are; None if those of the factors are made."""
        if self._over is None or self._over[0] is not self._uncertainty:
            # the figures that are shown may be found only now
            found: Over | None = over_precisions(self)
            if found is None and self._uncertainty.may_have_draws(self):
                found = over_draws(self, self._shown_as("auto"))
            self._over = self._uncertainty, found
        return self._over[1]

    def _drawn_to_predict(self, n: int, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return draws of all globals that count alike: weighted draws if predictions are made by these, or of q."""
        drawn, over = partial(self._shared.drawn, self._factors), self._mixed_over
        return (over.drawn(drawn) if over else drawn)(n, rng)

    def _show_profiled(self, names: Sequence[str]) -> None:
        """Show figures integrated over each of some globals, where these cost little, instead of second order.

        Elsewhere linear response is shown.
        """
        self._uncertainty = self._uncertainty.told_by(partial(self._profiled, names))

    def _integrated(self, pending: Pending) -> Integrated | None:
        """Return the figures integrated over the fewest globals without which the others are independent.

        None where rows hide something, where it costs more than a fraction of a second, or if weights are poor.
        """
        problem, row_map = self._bound(pending)
        return None if problem.factors else self._integrated_from(Given, problem, row_map)

    def _integrated_by_rows(self, pending: Pending) -> Integrated | None:
        """Return the same where rows hide something with a single mode, from a pass for each value."""
        problem, row_map = self._bound(pending)
        if not has_one_mode(problem):
            return None
        return self._integrated_from(GivenByRows, problem, row_map, most=_MOST_BY_ROWS)

    def _integrated_in_rows(self, pending: Pending, *, at_any_cost: bool = False) -> Integrated | None:
        """Return the same where Normal globals meet what the rows hide, with linear response of a fit at each value.

        Binary outcomes and counts have the expected logarithms of their links in these fits.
        """
        problem, row_map = self._bound(pending)
        if not has_one_mode(problem):
            return None
        names = separating_of(problem, self._factors, most=MOST_DIMENSIONS, is_normal_apart=False)
        if not names:
            return None
        fit = self._in_expectation(pending)
        if fit is not self:
            problem, row_map = fit._bound(replace(pending, bound=None))
        state = fit._state(problem, row_map)
        n_numbers = sum(int(np.size(self._factors[name].mean)) for name in names)
        n_rows = row_map.source.n_rows
        given: GivenInRows | GivenByProbes = GivenInRows(state, names)
        if not given.is_available or not is_cheap_to_integrate(problem, state.q, n_rows, n_numbers):
            by_probes = GivenByProbes(state, names)
            if by_probes.is_available and (at_any_cost or is_cheap_to_probe(problem, n_rows, n_numbers)):
                given = by_probes
            elif not (at_any_cost and given.is_available):
                return None
        integral = integral_of_fits(fit._factors, given, names).beside(fit._factors, self._factors)
        return Integrated.of(integral, self._factors, of_light_tails(problem, names))

    def _integrated_over_effects(self, pending: Pending) -> Integrated | None:
        """Return the figures of a fit whose effects of rows behind a link are globals; None without such effects."""
        return integrated_over_effects_of_rows(self, pending)

    def _beside(self, pending: Pending, response: Any, corrected: Corrected) -> Integrated | None:
        """Return better figures than those to second order where these hold; None if there are none.

        A single number that separates the others is integrated over: few rows leave its density more skewed than its
        factor is, which two moments do not tell. Of a mixture whose components overlap all figures are integrated.
        """
        problem, row_map = self._bound(pending)
        if not problem.factors:
            return None
        if not has_one_mode(problem):
            return None if response.smallest_eigenvalue > OVERLAP else self._integrated_over_scale(pending)
        names = separating_of(problem, self._factors, most=1, is_normal_apart=False)
        if not names or not is_cheap_to_integrate(problem, self._factors, row_map.source.n_rows, 1):
            return None
        (name,) = names
        mean = means_of(self._factors[name]) + corrected.shifts[name]
        if not corrected.sds[name].item() > _SKEWED * abs(mean.item()):
            return None
        found = self._integrated_in_rows(pending)
        return None if found is None else found.beside(corrected)

    def _integrated_over_scale(self, pending: Pending, *, at_any_cost: bool = False) -> Integrated | None:
        """Return the figures of a mixture integrated over the scale that its components share."""
        problem, row_map = self._bound(pending)
        name = scale_shared_by_components(problem, self._factors)
        if name is None or not (at_any_cost or is_cheap(problem, row_map.source.n_rows)):
            return None
        return integrated_over_scale(self, pending, name)

    def _doubt(self, pending: Pending, shown: Uncertainty) -> str:
        """Say why figures of linear response or of the factors may be wrong; empty if nothing says so."""
        doubt = doubt_of_effects_of_rows(self, pending)
        # figures to second order are in doubt by themselves elsewhere
        return doubt or ("" if shown.kind == Corrected.kind else doubt_of(self, pending, shown))

    def _doubt_of_series(self, pending: Pending, response: Any, shown: Widths) -> str:
        """Say how far second order would change figures of linear response; empty if not by much."""
        return doubt_of_series(self, pending, response._response, shown)

    def _may_be_drawn(self, pending: Pending) -> bool:
        """Whether figures of weighted draws may be shown."""
        return may_be_drawn(self, pending)

    def _may_be_narrower(self, pending: Pending, response: LinearResponse) -> bool:
        """Whether predictions by the factors may be narrower than those of weighted draws."""
        return may_be_narrower(self, pending, response)

    def _drawn_if_better(self, pending: Pending, response: LinearResponse, shown: Widths) -> Widths:
        """Return figures of weighted draws of few rows whose intervals contain too few or too many of these."""
        return drawn_if_better(self, pending, response, shown)

    def _in_expectation(self, pending: Pending) -> Integrates:
        """Return the fit with the expected logarithms of links in the ELBO, and sums in one factor.

        This one if it is that.
        """
        try:
            leaves = [in_expectation(leaf) for leaf in self.model.leaves]
        except ModelError:
            leaves = list(self.model.leaves)
        arguments = {**arguments_of(self), "sample_weight": pending.sample_weight}
        is_same = all(one is other for one, other in zip(leaves, self.model.leaves, strict=True))
        if is_same and arguments["factors"] is not APART:
            return self
        if arguments["factors"] is APART:
            del arguments["factors"]
        model = type(self.model)(*leaves)
        # a link has no Polya-Gamma variable there; where rows are no data plate, that is a global of this fit
        init = {name: own for name, own in self._factors.items() if name in model.variables}
        return model.fit(
            pending.data,
            init=init,
            **TO_A_FIXED_POINT,
            **arguments,
        )

    def _integrated_from(
        self,
        kind: type[Given] | type[GivenByRows],
        problem: Problem,
        row_map: RowMap,
        most: float = MOST_NUMBERS,
    ) -> Integrated | None:
        names = separating_of(problem, self._factors, most=most)
        if not names:
            return None
        given = kind(self._state(problem, row_map), names)
        integral = integral_of(self._factors, given, names)
        if integral is None:
            return None
        found = Integrated.of(integral, self._factors, of_light_tails(problem, names))
        return replace(found, is_exact=True)

    def _profiled(self, names: Sequence[str], pending: Pending) -> Integrated | None:
        with suppress(ModelError, np.linalg.LinAlgError):
            found = self._integrated_in_rows(pending)
            if found is not None:
                return found
        problem, row_map = self._bound(pending)
        integral = profiles_of(self._factors, self._state(problem, row_map), names)
        if integral is None:
            return None
        # what the rows hide makes other figures wider than their factors, which linear response tells
        response = self._responding(
            pending.data, pending.sample_weight, bound=pending.bound, is_whole=not pending.left_out
        )
        found = Integrated.of(integral, self._factors, of_light_tails(problem, names))
        return found.at_least(response.widths(pending.left_out))

    def _bound(self, pending: Pending) -> tuple[Problem, RowMap]:
        """Return the problem of the fit, and the map over its rows."""
        return pending.bound or self._evaluator.bind(pending.data, pending.sample_weight)

    def _state(self, problem: Problem, row_map: RowMap) -> AscentState:
        """Return the state of the fit, after refusing other data."""
        state = state_at(problem, {**self._factors, **self._shared.independent(self._factors)}, row_map)
        self._refuse_other_data(state.elbo)
        return state


def _checked(over: str | Sequence[str], factors: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names to integrate over."""
    names = (over,) if isinstance(over, str) else tuple(over)
    unknown = [name for name in names if name not in factors]
    if unknown or not names or len(set(names)) < len(names):
        raise ParameterError(
            f"over takes names of global variables, each once: {', '.join(map(repr, factors))}; got {over!r}"
        )
    return names
