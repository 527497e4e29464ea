"""The one loop: a pass over the rows, then each global factor in turn, until the objective settles."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from .._errors import FallingElboWarning, ImproperError
from .._typing import Array
from ..families import ExponentialFamily
from ..language import Variable
from .acceleration import Memory
from .beliefs import beliefs_of_points
from .collapse import has_collapsed
from .frame import refuse_far_priors
from .passes import Passes
from .plan import Plan
from .state import (
    ROUNDING,
    Factors,
    State,
    Updated,
    advance,
    advance_by_batch,
    begin,
    updated,
    with_optimal_locals,
)
from .status import Status

__all__ = ["Progress", "Result", "Settings", "ascend", "result_of"]

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
    beliefs
        Of point masses, the distributions whose modes they are, measured from the user's origin.
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
    beliefs: Mapping[Variable, ExponentialFamily] = field(default_factory=dict)


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
    n_batches: int = 0
    """Batches of the rows after each of which the globals are updated; 0 to update them once a pass."""


def ascend(settings: Settings, plan: Plan, q: Factors, passes: Passes) -> Result:
    """Return where coordinate ascent ends from these global factors.

    The objective is computed after every single update, so that one which lowers it is caught and named; a
    fall never counts as convergence. The returned factors are those of the returned objective.
    """
    passes.forget()
    passes.memoize(settings.n_batches)
    per_row = passes.source.total_weight if plan.binding.data_plate is not None else 1.0
    state = begin(plan, q, passes)
    trace, change = [state.elbo], np.inf
    memory = Memory() if settings.accelerate and not settings.n_batches else None
    status = Status.MAX_ITER
    batches = _Batches(accelerate=settings.accelerate)
    try:
        while len(trace) <= settings.max_iter:
            try:
                if settings.n_batches:
                    after, stopped = batches.step(state, passes)
                else:
                    after, memory, stopped = _step(state, passes, memory, change)
            except ImproperError:
                if not passes.is_rough:
                    raise
                after, stopped = None, None
            if (after is None or stopped is not None) and passes.refine():
                # in float32; what it means is asked again in float64
                state, memory, change = _renewed(state, passes, settings, trace)
                batches = _Batches(accelerate=settings.accelerate)
                continue
            if after is None:
                status = stopped or status
                break
            change = (after.elbo - state.elbo) / per_row
            state = after
            trace.append(state.elbo)
            if settings.callback is not None:
                settings.callback(_progress(settings, trace, change))
            if stopped is not None:
                status = stopped
                break
            if passes.is_rough and change < settings.tol:
                # sums in float32 are as far as they lead: the end of a fit is in float64
                passes.refine()
                state, memory, change = _renewed(state, passes, settings, trace)
                batches = _Batches(accelerate=settings.accelerate)
            elif abs(change) >= settings.tol:
                memory = memory if memory is not None or not settings.accelerate else Memory()
            elif memory is None or not memory.has_moved:
                status = Status.CONVERGED
                break
            else:
                # a move beyond the updates may gain less than they do: only a plain sweep tells that all has settled
                memory = None
        if settings.n_batches and status in (Status.CONVERGED, Status.MAX_ITER):
            state = with_optimal_locals(state, passes)
            trace[-1] = state.elbo
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if passes.refine():
        state = _renewed(state, passes, settings, trace)[0]
    return result_of(state, trace, status)


def _progress(settings: Settings, trace: list[float], change: float) -> Progress:
    n_iter = len(trace) - 1
    return Progress(settings.restart, settings.n_restarts, n_iter, settings.max_iter, trace[-1], change)


def result_of(state: State, trace: list[float], status: Status) -> Result:
    """Return the result that a state is."""
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
        beliefs_of_points(state),
    )


def _renewed(
    state: State, passes: Passes, settings: Settings, trace: list[float]
) -> tuple[State, Memory | None, float]:
    """Return a state after a pass in float64, which the trace then ends with; an empty memory; and no change yet."""
    after = begin(state.plan, state.q, passes)
    trace[-1] = after.elbo
    return after, Memory() if settings.accelerate and not settings.n_batches else None, np.inf


class _Batches:
    """A pass over batches of the rows, the globals updated after each, and where each batch was visited last."""

    def __init__(self, *, accelerate: bool) -> None:
        self._accelerate = accelerate
        self._last_time: dict[int, State] = {}
        self._now: Updated | None = None

    def step(self, state: State, passes: Passes) -> tuple[State | None, Status | None]:
        """Return the state after all batches, None if it is not finite, and the reason to stop, if there is one."""
        for batch in range(passes.n_batches(state.plan)):
            after, _, stopped = _checked(
                state, lambda state, batch=batch: (self._visit(state, passes, batch), None)
            )
            if after is None or stopped is not None:
                return after, stopped
            state = after
        return state, None

    def _visit(self, state: State, passes: Passes, batch: int) -> State:
        now = self._now or updated(state, passes)
        last_time = self._last_time.get(batch)
        if self._accelerate:
            self._last_time[batch] = now.after
        self._now = advance_by_batch(now, passes, batch, last_time)
        return self._now.after


def _step(
    state: State, passes: Passes, memory: Memory | None, change: float
) -> tuple[State | None, Memory | None, Status | None]:
    """Return the next state, None if it has no finite numbers, the memory, and the reason to stop, if there is one."""
    return _checked(state, lambda state: advance(state, passes, memory, change))


def _checked(
    state: State, step: Callable[[State], tuple[State, Memory | None]]
) -> tuple[State | None, Memory | None, Status | None]:
    """Return the state after a step, None if it has no finite numbers, the memory, and the reason to stop, if any."""
    try:
        after, memory = step(state)
    except ImproperError as error:
        if not any(state.plan.binding.is_flat(variable) for variable in state.plan.order):
            refuse_far_priors(state.plan.binding, state.plan.frame)
            raise
        log.info("collapsed: %s", error)
        return None, None, Status.COLLAPSED
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
