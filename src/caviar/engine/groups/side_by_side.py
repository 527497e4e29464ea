"""Starts of one fit side by side: they are groups that share their rows, and leave the batch where they have settled.

The ends are those of one start after the other. What a fit does where it has settled, such as leaving a saddle point,
each start does by itself from there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..._typing import AnyArray, Array
from ...numerics.records import replaced
from ..ascent.driver import Progress, Settings
from ..ascent.problem import Factors, Problem
from ..ascent.schedules.batch import BatchState
from ..ascent.schedules.moves.acceleration import Memory
from ..ascent.state import begin, extended, retold
from ..ascent.status import Status
from ..rows.row_map import RowMap
from .ascent import GOES_ON, GroupedEnds, GroupedState, ascend
from .problem import Assemble, GroupedProblem, Groups
from .starts import at_factors

_MOST_NUMBERS = 2**20
"""Responsibilities of all starts together, up to which they are found side by side: of more a pass is long enough."""

_PLAIN, _FEW_PARAMETERS = 20, 2_000
"""Iterations without moves beyond the updates, and the parameters up to which there are none of these.

With more of them such an iteration takes as long as two, and most starts have settled before.
"""


class SideBySide:
    """Starts of one fit that ascend side by side.

    Parameters
    ----------
    one
        The problem of each.
    assemble
        Returns the problem of the repeated statement.
    starts
        Global factors of each.
    rows
        The map over their rows.
    moves
        Whether globals may be moved beyond their updates.
    """

    def __init__(
        self, one: Problem, assemble: Assemble, starts: Sequence[Factors], rows: RowMap, *, moves: bool
    ) -> None:
        size, n_rows = len(starts), rows.source.n_rows
        columns, weights = rows.source.read(0, n_rows), rows.source.weights(0, n_rows)
        values = {key: column[None] for key, column in columns.items()}
        weights = None if weights is None or (weights == 1.0).all() else weights
        floors = {
            node.name: np.broadcast_to(own, (size, *np.shape(own))) for node, own in one.bound.floors.items()
        }
        groups = Groups(values, np.full(size, n_rows), {}, floors, is_shared=True, weights=weights)
        self.problem, self.ends = GroupedProblem(one, assemble, groups), GroupedEnds.none(size)
        self._state: GroupedState | None = None
        if not self.problem.is_like_one:
            return
        n_plain = np.inf if not moves else _PLAIN if one.n_natural > _FEW_PARAMETERS else 0
        self._state = at_factors(self.problem, starts, n_plain)

    @classmethod
    def of(
        cls, one: Problem, assemble: Assemble, starts: Sequence[Factors], rows: RowMap, *, moves: bool
    ) -> SideBySide | None:
        """Return the starts side by side; None where they are few, long fits, or not in this process."""
        if len(starts) < 2 or rows.executor.host is not rows.executor:
            return None
        numbers = len(starts) * rows.source.n_rows * max([own.n_rows for own in one.factors], default=1)
        made = cls(one, assemble, starts, rows, moves=moves) if numbers <= _MOST_NUMBERS else None
        return made if made is not None and made.problem.is_like_one else None

    def run(self, places: Collection[int], n_iter: int, tol: float) -> None:
        """Let the starts at these places ascend, for so many iterations or until they settle; the others are left."""
        state = self._state
        if state is None:
            return
        self._stop(state, (~np.isin(state.places, list(places))).nonzero()[0], Status.STOPPED)
        self._state = ascend(state, self.ends, n_iter, tol) if state.goes_on.any() else None
        if self._state is not None:
            going = self._state.goes_on
            own = self._state.places[going]
            self.ends.n_iter[own], self.ends.elbo[own] = self._state.n_iter[going], self._state.elbo[going]

    def climb(self, settings: Settings) -> None:
        """Let all starts ascend to their ends, and tell each of their iterations."""
        try:
            for _ in range(settings.max_iter):
                before, after = self._state, ascend(self._state, self.ends, 1, settings.tol)
                if before is not None and settings.callback is not None:
                    self._tell(before, after, settings)
                self._state = after
                if after is None:
                    return
            if self._state is not None:
                self.ends.cut(self._state, settings.max_iter)
        except KeyboardInterrupt:
            if self._state is None or not self._state.natural:
                raise
            self._stop(self._state, self._state.goes_on.nonzero()[0], Status.INTERRUPTED)

    def _tell(self, before: GroupedState, after: GroupedState | None, settings: Settings) -> None:
        """Tell how the starts get on that made an iteration, and stop those that are asked to end."""
        assert settings.callback is not None
        known = {int(place): before.elbo[n] for n, place in enumerate(before.places) if before.goes_on[n]}
        numbers = {} if after is None else {int(place): n for n, place in enumerate(after.places)}
        per_row, traces = float(before.problem.groups.totals[0]), self.ends.traces
        for place, elbo in zip(traces[-1][0].tolist(), traces[-1][1].tolist(), strict=True):
            where = place, settings.n_restarts, len(traces) - 1, settings.max_iter
            if place in known:
                told = Progress(*where, elbo, float(elbo - known[place]) / per_row)
                if settings.callback(told) is True and after is not None and place in numbers:
                    self._stop(after, np.array([numbers[place]]), Status.STOPPED)

    def _stop(self, state: GroupedState, groups: AnyArray, status: Status) -> None:
        """Let some groups of a state end where they are, if they have not ended."""
        going = groups[np.equal(self.ends.status[state.places[groups]], GOES_ON)]
        state.ended[going] = status
        self.ends.keep(state, going)

    def n_iter(self, place: int) -> int:
        """Return the iterations that a start has made."""
        return int(self.ends.n_iter[place])

    def has_settled(self, place: int) -> bool:
        """Whether a start has come to rest."""
        return self.ends.status[place] is Status.CONVERGED

    def has_left(self, place: int) -> bool:
        """Whether a start has left the batch without an end: it has to be made by itself."""
        status = self.ends.status[place]
        if status is None:
            return self._state is None or place not in self._state.places
        return status not in (Status.CONVERGED, Status.MAX_ITER, Status.STOPPED, Status.INTERRUPTED)

    def lately(self, place: int, most: int) -> tuple[float, ...]:
        """Return the objective of a start after its last iterations, so many at the most."""
        last = int(self.ends.n_iter[place])
        found = []
        for places, elbo in self.ends.traces[max(0, last + 1 - most) : last + 1]:
            own = np.searchsorted(places, place)
            if own < len(places) and places[own] == place:
                found.append(float(elbo[own]))
        return tuple(found)

    def reached(self, place: int, rows: RowMap) -> BatchState | None:
        """Return where a start has come to, as a fit by itself has it; None if that has to make it."""
        if self.has_left(place):
            return None
        vector, one = self._vector(place), self.problem.one
        q, natural = self.problem.factors_of_one(vector, place)
        begun, trace = begin(one, q, rows), self.lately(place, len(self.ends.traces))
        state = extended(BatchState, begun, memory=None)
        status = self.ends.status[place]
        return retold(
            replaced(
                state,
                natural=natural if begun.problem is one else {},
                trace=trace,
                change=(trace[-1] - trace[-2]) / state.per_row if len(trace) > 1 else np.inf,
                n_updates=len(trace) - 1,
                status=None if status is Status.CONVERGED else status,
                memory=None if status is not None else Memory(),
            )
        )

    def _vector(self, place: int) -> Array:
        """Return natural parameters of all groups, (G, P), of which those at a place are where it has come to."""
        if self.ends.status[place] is not None:
            return self.ends.vector
        assert self._state is not None
        own = self._state.vector[self._state.places == place]
        return np.broadcast_to(own, (len(self.ends.elbo), own.shape[1]))
