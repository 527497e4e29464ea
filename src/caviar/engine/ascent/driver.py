"""The driver takes steps of a schedule until the schedule ends the fit; it knows only the interface of schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..._typing import Array
from ...families import ExponentialFamily
from ...numerics.records import replaced
from .beliefs import BeliefsOfPoints
from .elbo import impossible_variable
from .lost_digits import lost_in_updates
from .problem import Factors, Problem
from .schedule import Beginning, Schedule
from .state import AscentState, FitState
from .status import Status

S = TypeVar("S", bound=FitState)

_EPS = float(np.finfo(float).eps)

_FEW_ROWS = 4096
"""Rows that a result may hold, to tell later what few ask for; of more it is told at once."""

_TOLERATED_ERROR = 1e-3
"""Rounding error of the objective (nats) that is told to the user."""


@dataclass(frozen=True)
class Search:
    """How far a search for the number of components, states or topics is.

    Attributes
    ----------
    n_components
        Of the best fit so far; 0 before the first.
    elbo
        Its objective, in nats.
    n_moves
        Moves that were tried.
    seconds_left
        How long it takes at least, in seconds; None where nothing is known of it.
    """

    n_components: int
    elbo: float
    n_moves: int
    seconds_left: float | None


@dataclass(frozen=True)
class Progress:
    """The progress of a fit, as a callback receives it after each pass.

    Attributes
    ----------
    restart, n_restarts
        Which start, from 0, of how many.
    iteration, max_iter
        Which iteration of it, of how many at most.
    elbo
        The objective, in nats.
    change_per_row
        By how much the iteration changed it, in nats a row.
    fit, n_fits
        Which fit, from 0, of how many that are compared.
    search
        Where the fit is one of a search for the number of components: ``n_components``, ``elbo`` and ``n_moves`` of the
        search, and ``seconds_left``, how long it takes at least, or None.

    Examples
    --------
    >>> import caviar as cv
    >>> def tell(progress: cv.Progress) -> None:
    ...     print(f"{progress.iteration}: {progress.elbo:.1f}")
    >>> mu, x = cv.Normal("mu", 0, 0.1), [4.0, 6.0]
    >>> posterior = cv.Model(cv.Normal("x", mu, 1.0, plates=cv.Plate("n"))).fit({"x": x}, progress=tell)
    1: -5.6
    2: -5.6
    """

    restart: int
    n_restarts: int
    iteration: int
    max_iter: int
    elbo: float
    change_per_row: float
    fit: int = 0
    n_fits: int = 1
    search: Search | None = None


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
    by_factor
        Returns the objective by factor name; few ask.
    status
        Why it ended.
    n_iter
        Iterations made.
    fell_at
        Which update lowered the objective, and by how much, if any did.
    lost_in
        The variable in whose terms or update double precision loses digits that the user should know of, or empty.
    lost
        Rounding error of the objective (nats) that this leaves.
    beliefs
        Of point masses, by name, the distributions whose modes they are, measured from the user's origin.
    impossible
        A variable in whose density the factors meet known probabilities of zero, or empty.
    n_updates
        Times that the globals were updated: once an iteration, or once for each batch of rows.
    """

    problem: Problem
    q: Factors
    elbo: float
    trace: Array
    by_factor: Callable[[], dict[str, float]]
    status: Status
    n_iter: int
    fell_at: str = ""
    lost_in: str = ""
    lost: float = 0.0
    beliefs: Mapping[str, ExponentialFamily] = field(default_factory=dict)
    impossible: str = ""
    n_updates: int = 0


@dataclass(frozen=True)
class EndedBy:
    """A callback that tells the progress of a fit, and asks for its end where either that or ``until`` does.

    ``until`` is asked again where a fit goes on that was broken off while its progress was told.
    """

    progress: bool | Callable[[Progress], object]
    until: Callable[[Progress], bool]

    def __call__(self, event: Progress) -> bool:
        """Tell the progress; return whether the fit is to end."""
        asked = callable(self.progress) and self.progress(event) is True
        return self.until(event) or asked


@dataclass(frozen=True)
class Settings:
    """When a fit stops, and where it reports."""

    max_iter: int
    tol: float
    callback: Callable[[Progress], object] | None = None
    """Told of each iteration; where it returns True no other follows."""
    restart: int = 0
    n_restarts: int = 1
    recorder: Callable[[Any], None] | None = None
    """Told each state."""

    def record(self, state: FitState) -> None:
        """Tell the recorder where a fit is."""
        if self.recorder is not None:
            self.recorder(state)

    def asks_for_the_end(self, state: FitState) -> bool:
        """Tell the callback how a fit gets on; return whether it asks for the end."""
        if self.callback is None:
            return False
        return self.callback(self._progress(state)) is True

    def asked_for_the_end(self, state: FitState) -> bool:
        """Return whether the fit was to end at a state that it goes on from, and was broken off while this was told."""
        own, is_begun = self.callback, state.status is None and state.n_iter > 0
        return isinstance(own, EndedBy) and is_begun and own.until(self._progress(state))

    def _progress(self, state: FitState) -> Progress:
        where = (self.restart, self.n_restarts, state.n_iter, self.max_iter)
        return Progress(*where, state.trace[-1], state.change)


def iterate(schedule: Schedule[S], state: S, settings: Settings) -> S:
    """Return the state after the last step; its status is None where more steps may follow."""
    try:
        if settings.asked_for_the_end(state):
            state = replace(state, status=Status.STOPPED)
        settings.record(state)
        while state.status is None and state.n_iter < settings.max_iter:
            before, after = state, schedule.step(state)
            if after.status is None and after.n_iter > before.n_iter:
                after = schedule.judged(before, after, settings.tol)
            state = after
            settings.record(state)
            if state.n_iter > before.n_iter and settings.asks_for_the_end(state):
                state = replace(state, status=state.status or Status.STOPPED)
                settings.record(state)
        return state
    except KeyboardInterrupt:
        return replace(state, status=Status.INTERRUPTED)


def go_on(schedule: Schedule[S], state: S, settings: Settings) -> Result:
    """Return the end of a fit that continues from a state.

    The returned factors are those of the returned objective.
    """
    state = iterate(schedule, state, settings)
    try:
        return result_of(schedule.finish(replaced(state, status=state.status or Status.MAX_ITER)))
    except KeyboardInterrupt:
        return result_of(schedule.finish(replace(state, status=Status.INTERRUPTED)))


def ascend(schedule: Schedule[S], beginning: Beginning[S], settings: Settings) -> Result:
    """Return where a fit ends that begins here."""
    state = schedule.init(beginning)
    if beginning.is_settled and state.status is None:
        try:
            state = schedule.judged(state, state, settings.tol)
        except KeyboardInterrupt:
            state = replace(state, status=Status.INTERRUPTED)
    return go_on(schedule, state, settings)


def result_of(state: AscentState) -> Result:
    """Return the result that the end of a fit is."""
    lost_in, lost = _lost(state)
    by_factor = state.objective.by_factor
    if state.rows.source.n_rows > _FEW_ROWS:
        by_factor = partial(dict, by_factor())
    return Result(
        state.problem,
        state.q,
        state.elbo,
        np.array(state.trace),
        by_factor,
        state.status or Status.MAX_ITER,
        state.n_iter,
        state.fell_at,
        lost_in if lost > _TOLERATED_ERROR else "",
        lost,
        BeliefsOfPoints(state),
        impossible_variable(state.problem, state.arrays),
        state.n_updates,
    )


def _lost(state: AscentState) -> tuple[str, float]:
    """Return the variable whose rounding changes the objective most, and by how many nats."""
    if state.objective.is_small(_TOLERATED_ERROR / _EPS):
        return "", 0.0
    name, largest = state.objective.largest()
    rounded, of_update = lost_in_updates(state)
    return (rounded, of_update) if of_update > _EPS * largest else (name, _EPS * largest)
