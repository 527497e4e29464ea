"""The one loop: a pass over the rows, then each global factor in turn, until the objective settles."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..._errors import FallingElboWarning, ImproperError
from ..._typing import Array
from ...families import ExponentialFamily
from ...language import Variable
from ..binding.coordinates import refuse_far_priors
from ..rows.row_map import Precision, RowMap
from .acceleration import Memory
from .beliefs import beliefs_of_points
from .collapse import has_collapsed
from .elbo import impossible_variable
from .lost_digits import lost_in_updates
from .moment import Moment, Visits, Walk
from .problem import Factors, Problem
from .saddles import beyond_saddle
from .state import State, Visit, advance, advance_by_batch, begin, updated, with_optimal_locals
from .status import Status

__all__ = [
    "Progress",
    "Result",
    "Settings",
    "ascend",
    "first_moment",
    "further",
    "record",
    "result_of",
    "tell",
]


log = logging.getLogger("caviar")

_EPS = float(np.finfo(float).eps)

_TOLERATED_ERROR = 1e-3
"""Rounding error of the objective (nats) that is told to the user."""


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
    problem
        The problem, with the frame that the factors refer to.
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
        The variable in whose terms, or update, double precision loses what is told to the user, or empty.
    lost
        Rounding error of the objective (nats) that this leaves.
    beliefs
        Of point masses, the distributions whose modes they are, measured from the user's origin.
    impossible
        A variable in whose density the factors meet known probabilities of zero, or empty.
    n_updates
        Times that the globals were updated: once an iteration, or once for each batch of rows.
    """

    problem: Problem
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
    impossible: str = ""
    n_updates: int = 0


@dataclass(frozen=True)
class Settings:
    """Settings of the loop, and what it reports to."""

    max_iter: int
    tol: float
    callback: Callable[[Progress], object] | None = None
    """Told of each iteration; where it returns True no other follows."""
    restart: int = 0
    n_restarts: int = 1
    accelerate: bool = False
    """Whether moves beyond the updates are tried."""
    n_batches: int = 0
    """Batches of the rows after each of which the globals are updated; 0 to update them once a pass."""
    recorder: Callable[[Moment | Walk], None] | None = None
    """Told where the fit stands before the first iteration and after each."""
    most_saddles: int = 0
    """Saddle points that a fit which has settled leaves behind; of more it would not be known whether it ends."""

    @property
    def moves_further(self) -> bool:
        """Whether moves beyond the updates are tried: only where these are made once a pass."""
        return self.accelerate and not self.n_batches


def ascend(
    settings: Settings, problem: Problem, q: Factors, rows: RowMap, resumed: Moment | None = None
) -> Result:
    """Return where coordinate ascent ends from these global factors, or from where an earlier one stood.

    The objective is computed after every single update, so that one which lowers it is caught and named; a
    fall never counts as convergence. The returned factors are those of the returned objective.
    """
    moment = first_moment(settings, problem, q, rows) if resumed is None else resumed
    moment = further(settings, moment)
    if moment.status is Status.INTERRUPTED:
        return _result(moment, Status.INTERRUPTED)
    try:
        return _ended(settings, moment)
    except KeyboardInterrupt:
        return _result(_refined(settings, moment), Status.INTERRUPTED)


def further(settings: Settings, moment: Moment) -> Moment:
    """Return the moment after the last iteration of an ascent that goes on from an earlier one.

    Its status is None where more iterations may follow.
    """
    bound, rows = moment.state.problem.bound, moment.state.rows
    per_row = rows.source.total_weight if bound.data_plate is not None else 1.0
    trace = moment.trace
    try:
        record(settings, moment)
        while moment.status is None and moment.n_iter < settings.max_iter:
            after, memory, visits, stopped = _iterated(settings, moment)
            if moment.state.rows.is_single and (after is None or stopped is not None):
                # in float32; what it means is asked again in float64
                moment = _refined(settings, moment)
                trace = moment.trace
                continue
            if after is None:
                moment = replace(moment, status=stopped)
                record(settings, moment)
                break
            change = (after.elbo - moment.state.elbo) / per_row
            trace.append(after.elbo)
            memory, settled = _judged(settings, memory, change)
            if settled is not None:
                # local factors that restart from scratch stop short of their optimum alike in each pass
                settled = None if after.restarts_cold else settled
                after = replace(after, is_fresh=False)
            why = stopped or settled
            moment = Moment(after, trace, len(trace) - 1, change, memory, visits, why, moment.saddles)
            if after.rows.is_single and change < settings.tol:
                # sums in float32 are as far as they lead: the end of a fit is in float64
                moment = _refined(settings, moment)
                trace = moment.trace
            if moment.status is Status.CONVERGED:
                settled = moment
                moment = _away_from_saddle(settings, settled, settings.tol * per_row)
                trace = moment.trace
                if moment.n_iter > settled.n_iter:
                    change = (moment.state.elbo - settled.state.elbo) / per_row
            record(settings, moment)
            if tell(settings, moment.n_iter, moment.state.elbo, change):
                moment = replace(moment, status=moment.status or Status.STOPPED)
                record(settings, moment)
        return moment
    except KeyboardInterrupt:
        return replace(_refined(settings, moment), status=Status.INTERRUPTED)


def _away_from_saddle(settings: Settings, moment: Moment, least: float) -> Moment:
    """Return the moment after one more iteration, away from the saddle point that a fit has settled at.

    It is the moment as it is where there is none, and one that has not settled where no iteration is left.
    """
    if moment.saddles >= settings.most_saddles:
        return moment
    found = beyond_saddle(moment.state, least, moment.saddles)
    if found is None:
        return moment
    if moment.n_iter >= settings.max_iter:
        return replace(moment, status=None)
    log.info(
        "the fit had settled at a saddle point; it goes on %.4g nats higher", found.elbo - moment.state.elbo
    )
    return Moment(
        found,
        [*moment.trace, found.elbo],
        moment.n_iter + 1,
        np.inf,
        Memory() if settings.moves_further else None,
        saddles=moment.saddles + 1,
    )


def _ended(settings: Settings, moment: Moment) -> Result:
    """Return the result after the last iteration; local factors that are those of earlier visits get their optimum."""
    status = moment.status or Status.MAX_ITER
    moment = _refined(settings, moment)
    if not settings.n_batches or status not in (Status.CONVERGED, Status.MAX_ITER, Status.STOPPED):
        return _result(moment, status)
    state = with_optimal_locals(moment.state)
    return _result(replace(moment, state=state, objectives=[*moment.trace[:-1], state.elbo]), status)


def _result(moment: Moment, status: Status) -> Result:
    """Return the result that a moment is: the globals were updated once an iteration, or once for each batch in it."""
    n_updates = moment.n_iter * max(1, moment.state.rows.n_batches_made)
    return result_of(moment.state, moment.trace, status, n_updates)


def _refined(settings: Settings, moment: Moment) -> Moment:
    """Return the moment with the rows in float64, where the trace then ends; as it is if they are that already."""
    if not moment.state.rows.is_single:
        return moment
    state = with_optimal_locals(replace(moment.state, rows=moment.state.rows.in_double()))
    memory = Memory() if settings.moves_further else None
    trace = [*moment.trace[:-1], state.elbo]
    return Moment(state, trace, moment.n_iter, np.inf, memory, saddles=moment.saddles)


def first_moment(settings: Settings, problem: Problem, q: Factors, rows: RowMap) -> Moment:
    """Return the moment before the first iteration: after a pass with the global factors of a start."""
    precision = Precision.SINGLE if rows.executor.is_single else Precision.DOUBLE
    state = begin(problem, q, replace(rows, precision=precision, n_batches=settings.n_batches))
    memory = Memory() if settings.moves_further else None
    return Moment(state, [state.elbo], 0, np.inf, memory)


def _judged(settings: Settings, memory: Memory | None, change: float) -> tuple[Memory | None, Status | None]:
    """Return the memory for the next iteration, and CONVERGED if there needs to be none."""
    if np.isnan(change):
        # between two objectives of which one at least is not finite nothing has settled
        return memory, None
    if abs(change) >= settings.tol:
        return memory if memory is not None or not settings.moves_further else Memory(), None
    if memory is None or not memory.has_moved:
        return memory, Status.CONVERGED
    # a move beyond the updates may gain less than they do: only a plain sweep tells that all has settled
    return None, None


def record(settings: Settings, moment: Moment | Walk) -> None:
    """Tell the recorder where a fit stands."""
    if settings.recorder is not None:
        settings.recorder(moment)


def tell(settings: Settings, n_iter: int, elbo: float, change: float) -> bool:
    """Tell the callback how a fit gets on; return whether it asks for the end."""
    if settings.callback is None:
        return False
    where = (settings.restart, settings.n_restarts, n_iter, settings.max_iter)
    return settings.callback(Progress(*where, elbo, change)) is True


def result_of(state: State, trace: list[float], status: Status, n_updates: int) -> Result:
    """Return the result that a state is, after so many updates of the globals."""
    terms = state.objective.by_factor()
    lost_in, lost = _lost(state)
    return Result(
        state.problem,
        state.q,
        state.elbo,
        np.array(trace),
        terms,
        status,
        len(trace) - 1,
        state.fell_at,
        lost_in if lost > _TOLERATED_ERROR else "",
        lost,
        beliefs_of_points(state),
        impossible_variable(state.problem, state.arrays),
        n_updates,
    )


def _lost(state: State) -> tuple[str, float]:
    """Return the variable whose rounding changes the objective most, and by how many nats."""
    if state.objective.is_small(state.arrays, _TOLERATED_ERROR / _EPS):
        return "", 0.0
    name, largest = state.objective.largest(state.arrays)
    rounded, of_update = lost_in_updates(state)
    return (rounded, of_update) if of_update > _EPS * largest else (name, _EPS * largest)


def _iterated(
    settings: Settings, moment: Moment
) -> tuple[State | None, Memory | None, Visits, Status | None]:
    """Return the state after an iteration, None if it is not finite, what is remembered, and the reason to stop."""
    try:
        if settings.n_batches:
            after, visits, stopped = _step_by_batches(settings, moment)
            return after, None, visits, stopped
        after, memory, stopped = _step(moment.state, moment.memory, moment.change)
    except ImproperError:
        if not moment.state.rows.is_single:
            raise
        return None, None, moment.visits, None
    return after, memory, moment.visits, stopped


def _step_by_batches(settings: Settings, moment: Moment) -> tuple[State | None, Visits, Status | None]:
    """Return the state after a visit to each batch, None if it is not finite, the visits, and the reason to stop."""
    state, now, last_time = moment.state, moment.visits.now, dict(moment.visits.last_time)

    def visit(state: State, batch: int) -> tuple[State, None]:
        nonlocal now
        before, half = (state, now) if now is not None else updated(state)
        earlier = last_time.get(batch)
        if settings.accelerate:
            last_time[batch] = Visit(before.problem, before.natural)
        after, now = advance_by_batch(before, half, batch, earlier)
        return after, None

    for batch in range(state.rows.n_batches_made):
        after, _, stopped = _checked(state, lambda state, batch=batch: visit(state, batch))
        if after is None or stopped is not None:
            return after, Visits(now, last_time), stopped
        state = after
    return state, Visits(now, last_time), None


def _step(
    state: State, memory: Memory | None, change: float
) -> tuple[State | None, Memory | None, Status | None]:
    """Return the next state, None if it has no finite numbers, the memory, and the reason to stop, if there is one."""
    return _checked(state, lambda state: advance(state, memory, change))


def _checked(
    state: State, step: Callable[[State], tuple[State, Memory | None]]
) -> tuple[State | None, Memory | None, Status | None]:
    """Return the state after a step, None if it has no finite numbers, the memory, and the reason to stop, if any."""
    try:
        after, memory = step(state)
    except ImproperError as error:
        if not any(state.problem.bound.is_flat(variable) for variable in state.problem.order):
            refuse_far_priors(state.problem.bound, state.problem.coordinates)
            raise
        log.info("collapsed: %s", error)
        return None, None, Status.COLLAPSED
    if has_collapsed(after.problem, after.q, after.arrays):
        # at the edge of a family updates may be nonsense: a state that fell is not kept
        kept = np.isfinite(after.elbo) and not after.fell_at
        return after if kept else None, memory, Status.COLLAPSED
    if after.fell_at:
        refuse_far_priors(state.problem.bound, state.problem.coordinates)
        warnings.warn(
            f"the update of {after.fell_at}. Exact coordinate ascent cannot do that: either widths in the data differ "
            f"by more than double precision holds, or it is a bug; then please report it, with the model and data.",
            FallingElboWarning,
            stacklevel=2,
        )
        return after, memory, Status.FELL
    return after, memory, None
