"""The one loop: a pass over the rows, then each global factor in turn, until the objective settles."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._errors import FallingElboWarning, ImproperError
from .._typing import Array
from .acceleration import Memory
from .collapse import has_collapsed
from .frame import refuse_far_priors
from .passes import Passes
from .plan import Plan
from .state import ROUNDING, Factors, State, advance, begin
from .status import Status

__all__ = ["Progress", "Result", "Settings", "ascend"]

log = logging.getLogger("caviar")

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
    accelerate: bool = False
    """Whether moves beyond the updates are tried."""


def ascend(settings: Settings, plan: Plan, q: Factors, passes: Passes) -> Result:
    """Return where coordinate ascent ends from these global factors.

    The objective is computed after every single update, so that one which lowers it is caught and named; a
    fall never counts as convergence. The returned factors are those of the returned objective.
    """
    passes.forget()
    per_row = passes.source.total_weight if plan.binding.data_plate is not None else 1.0
    state = begin(plan, q, passes)
    trace, change = [state.elbo], np.inf
    memory = Memory() if settings.accelerate else None
    status = Status.MAX_ITER
    try:
        while len(trace) <= settings.max_iter:
            after, memory, stopped = _step(state, passes, memory, change)
            if (after is None or stopped is not None) and passes.refine():
                # in float32; what it means is asked again in float64
                state, memory, change = _renewed(state, passes, settings, trace)
                continue
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
            if passes.is_rough and change < settings.tol:
                # sums in float32 are as far as they lead: the end of a fit is in float64
                passes.refine()
                state, memory, change = _renewed(state, passes, settings, trace)
            elif abs(change) >= settings.tol:
                memory = memory if memory is not None or not settings.accelerate else Memory()
            elif memory is None or not memory.has_moved:
                status = Status.CONVERGED
                break
            else:
                # a move beyond the updates may gain less than they do: only a plain sweep tells that all has settled
                memory = None
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if passes.refine():
        state = _renewed(state, passes, settings, trace)[0]
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
        largest_in if lost > max(_TOLERATED_ERROR, ROUNDING * abs(state.elbo)) else "",
        lost,
    )


def _renewed(
    state: State, passes: Passes, settings: Settings, trace: list[float]
) -> tuple[State, Memory | None, float]:
    """Return a state after a pass in float64, which the trace then ends with; an empty memory; and no change yet."""
    after = begin(state.plan, state.q, passes)
    trace[-1] = after.elbo
    return after, Memory() if settings.accelerate else None, np.inf


def _step(
    state: State, passes: Passes, memory: Memory | None, change: float
) -> tuple[State | None, Memory | None, Status | None]:
    """Return the next state, None if it has no finite numbers, the memory, and the reason to stop, if there is one."""
    try:
        after, memory = advance(state, passes, memory, change)
    except ImproperError as error:
        if not any(variable.is_flat for variable in state.plan.order):
            refuse_far_priors(state.plan.binding, state.plan.frame)
            raise
        log.info("collapsed: %s", error)
        return None, memory, Status.COLLAPSED
    if has_collapsed(after.plan, after.q, after.arrays):
        # at the edge of a family updates may be nonsense: a state that fell is not kept
        kept = np.isfinite(after.elbo) and not after.fell_at
        return after if kept else None, memory, Status.COLLAPSED
    if after.fell_at:
        refuse_far_priors(state.plan.binding, state.plan.frame)
        warnings.warn(
            f"the update of {after.fell_at}. Exact coordinate ascent cannot do that: either widths in the data differ "
            f"by more than double precision holds, or it is a bug; then please report it, with the model and data.",
            FallingElboWarning,
            stacklevel=2,
        )
        return after, memory, Status.FELL
    return after, memory, None
