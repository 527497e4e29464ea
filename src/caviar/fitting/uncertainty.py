"""Which standard deviations and intervals a posterior will show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .._errors import ModelError, ParameterError
from ..engine.ascent.driver import Result
from ..engine.ascent.problem import Problem
from ..engine.response.cost import is_cheap_to_second_order, left_out, may_be_probed
from ..engine.rows.row_map import RowMap
from ..execution.threads import Threads
from ..lazy.graph_rows import is_graph
from ..posterior.integration.doubts import MOST_PREDICTED
from ..posterior.posterior import Posterior
from ..posterior.uncertainty.known import AFTER_EARLIER_ROWS, KINDS, MeanField, Source
from ..posterior.uncertainty.pending import ASKED, Judged, Pending, PendingIntegrated, PendingToSecondOrder

ASK = "fit with uncertainty='linear_response' to have it"


@dataclass(frozen=True, eq=False)
class Wanted:
    """The uncertainty that a user asked for, and the arguments of the fit from which it is computed.

    Attributes
    ----------
    kind
        ``"auto"``, ``"linear_response"``, ``"second_order"`` or ``"mean_field"``.
    data, sample_weight, executor
        Arguments of the fit, as the user gave them.
    """

    kind: str
    data: Mapping[str, Any]
    sample_weight: Any
    executor: Any

    def checked(self, problem: Problem) -> Wanted:
        """Return this, after refusing before the fit a kind that is not available.

        Raises
        ------
        ParameterError
            If the kind is unknown.
        ModelError
            If the model has no linear response.
        """
        if self.kind not in KINDS:
            raise ParameterError(
                f"uncertainty must be one of {', '.join(map(repr, KINDS))}; got {self.kind!r}"
            )
        why = _why_no_response(problem)
        if self.kind in ASKED and why:
            raise ModelError(
                f"uncertainty={self.kind!r} is not available for this model: {why}; leave uncertainty= out"
            )
        return self

    def after(
        self,
        best: Result,
        problem: Problem,
        row_map: RowMap,
        settles: bool,
        prior: Posterior | None,
    ) -> Source:
        """Return where the posterior of a fit gets its standard deviations and intervals.

        By default second order, or else linear response, is computed when it is first asked for, if it costs at most
        as much as all iterations of the fit: those of all starts, and of the fits that it continues.

        Parameters
        ----------
        best
            The end of the fit.
        problem, row_map
            Of the fit at its beginning, and the map over its rows.
        settles
            Whether the schedule ends where the objective settles.
        prior
            The earlier posterior that was the prior, if there was one.
        """
        narrower = _on_predictions(problem, row_map, prior)
        if self.kind in ASKED:
            # rows elsewhere are bound to where they are
            is_here = self.executor is None and prior is None and not is_graph(row_map.source)
            bound = self._bound(problem, row_map) if is_here else None
            arguments = {"bound": bound, "executor": self.executor, "narrower": narrower}
            return ASKED[self.kind](self.data, self.sample_weight, **arguments)
        if self.kind == "mean_field":
            return MeanField()
        why = _why_not_by_default(best, row_map, settles, prior)
        if why:
            return MeanField(why + _of_shared(best), narrower=narrower)
        return Judged(partial(self._within, best, problem, row_map))

    def _within(self, best: Result, problem: Problem, row_map: RowMap, n_iterations: int) -> Source:
        """Return the best that costs at most as much as so many iterations."""
        statistics = (factor.expected_statistics for factor in best.q.values())
        left = left_out(best.problem, statistics, row_map.source.n_rows, n_iterations)
        names = tuple(variable.name for variable in left or ())
        arguments = self.data, self.sample_weight, names, self._bound(problem, row_map)
        if left is None:
            of_factors = MeanField(f"linear response would cost more than the fit; {ASK}{_of_shared(best)}")
            may_be = may_be_probed(best.problem, row_map.source.n_rows)
            is_told = may_be or problem.bound.has_links
            return PendingIntegrated(*arguments, of_factors, may_be) if is_told else of_factors
        if names:
            return Pending(*arguments)
        told = best.problem, best.q, row_map.source.n_rows, n_iterations
        return PendingToSecondOrder(*arguments, partial(is_cheap_to_second_order, *told))

    def _bound(self, problem: Problem, row_map: RowMap) -> tuple[Problem, RowMap]:
        """Return what binding the data of the fit again would."""
        together = problem.together
        return together, RowMap(together.rows, row_map.source, Threads())


def _why_not_by_default(best: Result, row_map: RowMap, settles: bool, prior: Posterior | None) -> str:
    """Return why linear response is not shown by default, apart from its cost; empty if it is."""
    why = _why_no_response(best.problem)
    if why:
        return f"no linear response: {why}"
    if not settles:
        return "a stochastic fit does not settle"
    if prior is not None:
        return "the prior was an earlier posterior, whose factors were treated as independent"
    if is_graph(row_map.source):
        return f"the rows are on a cluster; {ASK}"
    if all(factor.learnt is None for factor in best.q.values()):
        return "all variables are point masses; fit with uncertainty='linear_response' for standard errors"
    return ""


def _on_predictions(problem: Problem, row_map: RowMap, prior: Posterior | None) -> str:
    """Return a sentence on predictions after few rows that hide something, some of them in an earlier posterior."""
    if prior is None or prior.data_summary is None or not problem.factors:
        return ""
    n_rows = row_map.source.n_rows + prior.data_summary["rows"]
    return AFTER_EARLIER_ROWS if n_rows <= MOST_PREDICTED else ""


def _of_shared(best: Result) -> str:
    """Say whose intervals are wide enough all the same: those of variables that share a factor."""
    shared = [variable.name for variable in best.q if variable.members]
    return f"; those of {', '.join(shared)} have the covariances of their shared factor" if shared else ""


def _why_no_response(problem: Problem) -> str:
    return problem.rows.why_no_response() if problem.factors else ""
