"""Mixed precision: sums over the rows in float32 until the objective no longer rises, then in float64."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from ...._errors import ImproperError
from ...rows.row_map import Precision, RowMap
from ..schedule import Ascent, AscentAround, Beginning
from ..state import AscentState, retold, with_optimal_locals

A = TypeVar("A", bound=AscentState)


def as_exact_as(rows: RowMap, schedule: Ascent[A]) -> Ascent[A]:
    """Return a schedule that begins with the digits that the executor of the rows begins with."""
    return MixedPrecision(schedule) if rows.executor.is_single else schedule


@dataclass(frozen=True)
class MixedPrecision(AscentAround[A]):
    """Another schedule with sums in float32, until an iteration gains less than the tolerance or something goes wrong.

    What that means is asked again in float64, which the fit goes on and ends in.

    Attributes
    ----------
    own
        The other schedule.
    """

    def init(self, beginning: Beginning[A]) -> A:
        """Return the state after a pass over the rows in float32: where a race has come to was found in float64."""
        rows = replace(beginning.rows, precision=Precision.SINGLE)
        return self.own.init(replace(beginning, rows=rows, raced=None))

    def step(self, state: A) -> A:
        """Return the state after a step, or the state before it in float64 if a step in float32 goes wrong."""
        if not state.rows.is_single:
            return self.own.step(state)
        try:
            after = self.own.step(state)
        except ImproperError:
            return self._refined(state)
        return after if after.status is None else self._refined(state)

    def judged(self, before: A, after: A, tol: float) -> A:
        """Return the state after an iteration, in float64 where one in float32 has gained less than the tolerance."""
        state = self.own.judged(before, after, tol)
        return self._refined(state) if state.rows.is_single and state.change < tol else state

    def finish(self, state: A) -> AscentState:
        """Return the end of a fit, in float64."""
        return self.own.finish(replace(self._refined(state), status=state.status))

    def _refined(self, state: A) -> A:
        """Return a state with sums in float64, whose objective ends the trace; unchanged if it has them."""
        if not state.rows.is_single:
            return state
        exact = with_optimal_locals(replace(state, rows=state.rows.in_double(), status=None))
        return self.own.at(retold(exact))
