"""Starts of one fit side by side: they are groups that share their rows, and leave the batch where they have settled.

The ends are those of one start after the other. What a fit does where it has settled, such as leaving a saddle point,
each start does by itself from there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._typing import AnyArray
from ...numerics.records import replaced
from ..ascent.driver import Progress, Settings
from ..ascent.problem import Factors, Problem
from ..ascent.schedules.batch import BatchState
from ..ascent.state import begin, extended, retold
from ..ascent.status import Status
from ..rows.row_map import RowMap
from .ascent import GroupedEnds, GroupedState, ascend
from .problem import Assemble, GroupedProblem, Groups
from .starts import at_factors

_MOST_NUMBERS = 2**20
"""Responsibilities of all starts together, up to which they are found side by side: of more a pass is long enough."""

_PLAIN = 20
"""Iterations without moves beyond the updates, which take as long as two: most starts have settled by then."""


def are_few(one: Problem, rows: RowMap, n_starts: int) -> bool:
    """Whether passes for several starts are so short that they are made side by side, by this process."""
    numbers = n_starts * rows.source.n_rows * max([own.n_rows for own in one.factors], default=1)
    in_memory = all(isinstance(one.bound.values_of(node), np.ndarray) for node in one.bound.observed)
    return numbers <= _MOST_NUMBERS and in_memory and rows.executor.host is rows.executor


def side_by_side(
    one: Problem,
    assemble: Assemble,
    starts: Sequence[Factors],
    rows: RowMap,
    settings: Settings,
    *,
    moves: bool,
) -> list[BatchState | None]:
    """Return where starts have settled, or after the largest number of iterations; None of those to be fitted alone.

    Parameters
    ----------
    one
        The problem of each.
    assemble
        Returns the problem of the repeated statement.
    starts
        Global factors of each.
    moves
        Whether globals may be moved beyond their updates.
    """
    counts = np.full(len(starts), rows.source.n_rows)
    values = {node.name: np.asarray(one.bound.values_of(node))[None] for node in one.bound.observed}
    floors = {
        node.name: np.broadcast_to(own, (len(starts), *np.shape(own)))
        for node, own in one.bound.floors.items()
    }
    problem = GroupedProblem(one, assemble, Groups(values, counts, {}, floors, is_shared=True))
    ends = GroupedEnds.none(len(starts))
    _climb(at_factors(problem, starts, _PLAIN if moves else np.inf), ends, settings)
    return [_end(problem, ends, group, rows) for group in range(len(starts))]


def _climb(state: GroupedState | None, ends: GroupedEnds, settings: Settings) -> None:
    """Let all starts ascend to their ends, and tell each of their iterations."""
    try:
        for _ in range(settings.max_iter):
            after = ascend(state, ends, 1, settings.tol)
            if state is not None and settings.callback is not None:
                _tell(ends, state, after, settings)
            state = after
            if state is None:
                return
        if state is not None:
            ends.cut(state)
    except KeyboardInterrupt:
        if state is None or not state.natural:
            raise
        _stop(state, ends, state.goes_on.nonzero()[0], Status.INTERRUPTED)


def _tell(ends: GroupedEnds, before: GroupedState, after: GroupedState | None, settings: Settings) -> None:
    """Tell how the starts get on that made an iteration, and stop those that are asked to end."""
    assert settings.callback is not None
    going, known = (
        set(before.places[before.goes_on].tolist()),
        dict(zip(before.places, before.elbo, strict=True)),
    )
    numbers = {} if after is None else {int(place): n for n, place in enumerate(after.places)}
    per_row = float(before.problem.groups.counts[0])
    for place, elbo in zip(*ends.traces[-1], strict=True):
        where = int(place), settings.n_restarts, len(ends.traces) - 1, settings.max_iter
        if place in going:
            told = Progress(*where, float(elbo), float(elbo - known[place]) / per_row)
            if settings.callback(told) is True and place in numbers:
                assert after is not None
                _stop(after, ends, np.array([numbers[int(place)]]), Status.STOPPED)


def _stop(state: GroupedState, ends: GroupedEnds, groups: AnyArray, status: Status) -> None:
    """Let some groups of a state end where they are, if they have not ended."""
    going = groups[[ends.status[place] is None for place in state.places[groups]]]
    state.ended[going] = status
    ends.keep(state, going)


def _end(problem: GroupedProblem, ends: GroupedEnds, group: int, rows: RowMap) -> BatchState | None:
    """Return where a start has come to, as a fit by itself has it; None where it has to be fitted alone."""
    status = ends.status[group]
    if status not in (Status.CONVERGED, Status.MAX_ITER, Status.STOPPED, Status.INTERRUPTED):
        return None
    q, natural = problem.factors_of_one(ends.vector, group)
    place, trace = begin(problem.one, q, rows), tuple(ends.trace(group).tolist())
    state = extended(BatchState, place, memory=None)
    return retold(
        replaced(
            state,
            natural=natural if place.problem is problem.one else {},
            trace=trace,
            change=(trace[-1] - trace[-2]) / state.per_row if len(trace) > 1 else np.inf,
            n_updates=len(trace) - 1,
            status=None if status is Status.CONVERGED else status,
        )
    )
