"""Which standard deviations and intervals a posterior will show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._errors import ModelError, ParameterError
from ..engine.ascent.driver import Result
from ..engine.ascent.problem import Problem
from ..engine.response.cost import is_cheap
from ..engine.rows.row_map import RowMap
from ..lazy.graph_rows import is_graph
from ..posterior.uncertainty import KINDS, Asked, MeanField, Pending, Uncertainty

ASK = "uncertainty='linear_response' of the fit has them"


def check_uncertainty(kind: str, problem: Problem) -> None:
    """Refuse a kind of uncertainty that there is not, before the fit.

    Raises
    ------
    ParameterError
        If there is no such kind.
    ModelError
        If the model has no linear response.
    """
    if kind not in KINDS:
        raise ParameterError(f"uncertainty is one of {', '.join(map(repr, KINDS))}; got {kind!r}")
    why = _why_no_response(problem)
    if kind == "linear_response" and why:
        raise ModelError(
            f"uncertainty='linear_response' is not there for this model: {why}; leave uncertainty= out"
        )


def uncertainty_after(
    kind: str,
    best: Result,
    row_map: RowMap,
    data: Mapping[str, Any],
    sample_weight: Any,
    *,
    executor: Any,
    n_iterations: int,
    settles: bool,
    has_prior: bool,
) -> Uncertainty:
    """Return where a posterior has its standard deviations and intervals from.

    By default they are those of linear response where it costs at most as much as the fit, and are found when they are
    first asked for.

    Parameters
    ----------
    kind
        As the user asked for it.
    best, row_map
        The end of the fit, and the map over its rows.
    data, sample_weight, executor
        As the user gave them.
    n_iterations
        Of all starts.
    settles
        Whether the schedule ends where the objective settles.
    has_prior
        Whether an earlier posterior was the prior.
    """
    if kind == "linear_response":
        return Asked(data, sample_weight, executor)
    if kind == "mean_field":
        return MeanField()
    why = _why_no_response(best.problem)
    if why:
        return MeanField(f"no linear response: {why}")
    if not settles:
        return MeanField("a stochastic fit does not settle")
    if has_prior:
        return MeanField("a posterior was the prior, whose factors were taken for independent")
    if is_graph(row_map.source):
        return MeanField(f"the rows are on a cluster; {ASK}")
    if not any(factor.learnt is not None for factor in best.q.values()):
        return MeanField(f"points have none; {ASK}, as standard errors")
    statistics = (factor.expected_statistics for factor in best.q.values())
    if not is_cheap(best.problem, statistics, row_map.source.n_rows, n_iterations):
        return MeanField(f"linear response would cost more than the fit; {ASK}")
    return Pending(data, sample_weight)


def _why_no_response(problem: Problem) -> str:
    return problem.rows.why_no_response() if problem.factors else ""
