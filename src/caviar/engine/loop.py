"""The one loop: a pass over the rows, then each global factor in turn, until the objective settles."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .._errors import FallingElboWarning, ImproperError
from .._typing import Array
from ..language import Variable
from .centres import TOLERATED_LOSS
from .collapse import has_collapsed
from .frame import refuse_far_priors
from .objective import Objective
from .passes import Passes
from .plan import Plan
from .status import Status
from .sums import Coefficients

__all__ = ["Progress", "Result", "Settings", "ascend"]

log = logging.getLogger("caviar")

Factors: TypeAlias = Mapping[Variable, Any]

_ROUNDING = 1e-10
"""Fall of the objective, relative to the sum of its absolute terms, that counts as rounding."""

_TOLERATED_ERROR = 1e-3
"""Rounding error of the objective (nats) that is told to the user, unless the objective itself is huge."""


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each pass."""

    restart: int
    n_restarts: int
    iteration: int
    max_iter: int
    elbo: float
    change_per_row: float


@dataclass(frozen=True)
class Result:
    """Where the loop ended.

    Attributes
    ----------
    plan
        The plan, with the frame that the factors refer to.
    q
        Global factors.
    elbo
        Objective of ``q`` with the local factors at their optimum.
    trace
        Objective after each iteration; the first entry is that of the start.
    terms
        Objective by factor name.
    status
        Why it ended.
    n_iter
        Iterations made.
    fell_at
        Which update lowered the objective, and by how much, if any did.
    lost_in
        The variable whose sums over the data are too large for double precision, or empty.
    lost
        Rounding error of the objective (nats) that these sums leave.
    """

    plan: Plan
    q: Factors
    elbo: float
    trace: Array
    terms: dict[str, float]
    status: Status
    n_iter: int
    fell_at: str = ""
    lost_in: str = ""
    lost: float = 0.0


@dataclass(frozen=True)
class Settings:
    """Settings of the loop, and what it reports to."""

    max_iter: int
    tol: float
    callback: Callable[[Progress], None] | None = None
    restart: int = 0
    n_restarts: int = 1


@dataclass(frozen=True)
class State:
    """Global factors, with the local factors at their optimum, and the objective of the two."""

    plan: Plan
    q: Factors
    arrays: Mapping[Hashable, Array]
    objective: Objective
    fell_at: str = ""

    @property
    def elbo(self) -> float:
        """The objective."""
        return self.objective.value


def ready(
    plan: Plan, q: Factors, arrays: dict[Hashable, Array], *, may_return: bool = False
) -> tuple[Plan, Factors, dict[Hashable, Array], Coefficients]:
    """Return what a pass over the rows needs, measured from centres where digits would be lost otherwise."""
    return _settled(plan, q, arrays, plan.rows.coefficients(arrays), may_return=may_return)


def _settled(
    plan: Plan,
    q: Factors,
    arrays: dict[Hashable, Array],
    coefficients: Coefficients,
    *,
    may_return: bool = False,
) -> tuple[Plan, Factors, dict[Hashable, Array], Coefficients]:
    moved, q = plan.recentred(q, coefficients, may_return=may_return)
    if moved is not plan:
        arrays = statistics_of(moved, q)
        coefficients = moved.rows.coefficients(arrays)
    return moved, q, arrays, coefficients


def statistics_of(plan: Plan, q: Factors) -> dict[Hashable, Array]:
    """Return the expected statistics of all global factors, by key."""
    arrays: dict[Hashable, Array] = {}
    for variable, factor in q.items():
        arrays.update(plan.statistics(variable, factor))
    return arrays


def begin(plan: Plan, q: Factors, passes: Passes) -> State:
    """Return the state at a start: a pass over the rows with the given global factors."""
    plan, q, arrays, coefficients = ready(plan, q, statistics_of(plan, q), may_return=True)
    return _complete(plan, q, arrays, coefficients, passes)


def _complete(
    plan: Plan, q: Factors, arrays: dict[Hashable, Array], coefficients: Coefficients, passes: Passes
) -> State:
    """Return the state of global factors after a pass over the rows."""
    summary = passes.summarize(plan, coefficients)
    arrays.update(summary.parts)
    objective = Objective(plan)
    objective.set_all(q, arrays, summary)
    return State(plan, q, arrays, objective)


def advance(state: State, passes: Passes) -> State:
    """Return the state after each global factor was updated in turn, and the local factors in a pass."""
    # an error of a logit that is tolerated is one of the objective, times the rows
    slack = TOLERATED_LOSS * passes.source.total_weight if state.plan.centres else 0.0
    before = state
    try:
        after = _update_globals(before, slack)
        coefficients, loss = _coefficients(after)
    except ImproperError:
        after, coefficients, loss = None, None, np.inf
    if loss > TOLERATED_LOSS:
        # sums over a component that shrank at once have no digits left: take them again, from its own mean
        again = _recentred(state, passes)
        if again is not None or after is None:
            before = again or state
            after = _update_globals(before, slack)
            coefficients, loss = _coefficients(after)
    assert after is not None
    assert coefficients is not None
    # the entropy of the labels has no more digits than the terms that it was found beside
    size = before.objective.scale
    slack = max(slack, 4 * np.finfo(float).eps * size if np.isfinite(size) else 0.0)
    return _update_locals(after, coefficients, passes, slack, loss * passes.source.total_weight)


def _coefficients(state: State) -> tuple[Coefficients, float]:
    """Return what a pass needs of a state, and the largest error (nats) that a logit has in it."""
    coefficients = state.plan.rows.coefficients(state.arrays)
    return coefficients, state.plan.worst_loss(state.q, coefficients)


def _recentred(state: State, passes: Passes) -> State | None:
    """Return the same factors with sums from each component's own mean; None if they are that already."""
    plan, q = state.plan.centred_on(state.arrays, state.q)
    if plan is state.plan:
        return None
    arrays = statistics_of(plan, q)
    return _complete(plan, q, arrays, plan.rows.coefficients(arrays), passes)


def _update_globals(state: State, slack: float) -> State:
    """Return the state with each global factor updated in turn, the sums over rows as they are.

    A fall of the objective by ``slack`` or by rounding is none.
    """
    plan, objective = state.plan, state.objective.copy()
    q, arrays = dict(state.q), dict(state.arrays)
    value, fell_at = objective.value, ""
    for variable in plan.order:
        q[variable] = plan.update(variable, arrays)
        arrays.update(plan.statistics(variable, q[variable]))
        before, value = value, objective.set_factor(variable, q[variable], arrays)
        if value < before and value < before - _ROUNDING * objective.scale - slack:
            fell_at = fell_at or _fall(variable.name, before - value)
    return State(plan, q, arrays, objective, fell_at)


def _fall(name: str, amount: float) -> str:
    return f"'{name}' lowered the objective by {amount:.3g}"


def _update_locals(
    state: State, coefficients: Coefficients, passes: Passes, slack: float, inexact: float
) -> State:
    """Return the state with the local factors at their optimum; a fall by ``slack`` or by rounding is none.

    Where reference points move, the objective is computed anew; the one before may have been ``inexact`` by so much.
    """
    plan, q, arrays, coefficients = _settled(state.plan, state.q, dict(state.arrays), coefficients)
    before, fell_at = state.elbo, state.fell_at
    if plan is state.plan:
        summary = passes.summarize(plan, coefficients)
        arrays.update(summary.parts)
        objective = state.objective
        objective.set_rows(arrays, summary)
    else:
        objective = _complete(plan, q, arrays, coefficients, passes).objective
        slack = max(slack, inexact)
    if objective.value < before - _ROUNDING * objective.scale - slack:
        names = ",".join(factor.name for factor in plan.factors)
        fell_at = fell_at or _fall(names, before - objective.value)
    return State(plan, q, arrays, objective, fell_at)


def ascend(settings: Settings, plan: Plan, q: Factors, passes: Passes) -> Result:
    """Return where coordinate ascent ends from these global factors.

    The objective is computed after every single update, so that one which lowers it is caught and named; a
    fall never counts as convergence. The returned factors are those of the returned objective.
    """
    passes.forget()
    per_row = passes.source.total_weight if plan.binding.data_plate is not None else 1.0
    state = begin(plan, q, passes)
    trace = [state.elbo]
    status = Status.MAX_ITER
    try:
        while len(trace) <= settings.max_iter:
            after, stopped = _step(state, passes)
            if after is None:
                status = stopped or status
                break
            change = (after.elbo - state.elbo) / per_row
            state = after
            trace.append(state.elbo)
            if settings.callback is not None:
                told = (
                    settings.restart,
                    settings.n_restarts,
                    len(trace) - 1,
                    settings.max_iter,
                    state.elbo,
                    change,
                )
                settings.callback(Progress(*told))
            if stopped is not None:
                status = stopped
                break
            if abs(change) < settings.tol:
                status = Status.CONVERGED
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    terms = state.objective.by_factor()
    largest_in, largest = state.objective.largest()
    lost = float(np.finfo(float).eps * largest)
    return Result(
        state.plan,
        state.q,
        state.elbo,
        np.array(trace),
        terms,
        status,
        len(trace) - 1,
        state.fell_at,
        largest_in if lost > max(_TOLERATED_ERROR, _ROUNDING * abs(state.elbo)) else "",
        lost,
    )


def _step(state: State, passes: Passes) -> tuple[State | None, Status | None]:
    """Return the next state, None if it has no finite numbers, and the reason to stop, if there is one."""
    try:
        after = advance(state, passes)
    except ImproperError as error:
        if not any(variable.is_flat for variable in state.plan.order):
            refuse_far_priors(state.plan.binding, state.plan.frame)
            raise
        log.info("collapsed: %s", error)
        return None, Status.COLLAPSED
    if has_collapsed(after.plan, after.q, after.arrays):
        # at the edge of a family updates may be nonsense: a state that fell is not kept
        kept = np.isfinite(after.elbo) and not after.fell_at
        return after if kept else None, Status.COLLAPSED
    if after.fell_at:
        refuse_far_priors(state.plan.binding, state.plan.frame)
        warnings.warn(
            f"the update of {after.fell_at}. Exact coordinate ascent cannot do that: either widths in the data differ "
            f"by more than double precision holds, or it is a bug; then please report it, with the model and data.",
            FallingElboWarning,
            stacklevel=2,
        )
        return after, Status.FELL
    return after, None
