"""Renewing: rows with few responsibilities get other components, where a step from there ends higher.

A search exchanges the components of a cell only where that raises the objective with the present globals. So components
and the rows of their cells come to suit each other, and keep to each other: what a search would choose if a cell had
none is lower at first, and a few updates later mostly higher. Here the cells get that, and the globals their update.
Where the objective is then higher than before, the fit goes on from there; otherwise all is as it was, and that is not
tried again. The objective after each iteration is a bound, and does not fall.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....numerics.records import replaced
from ..schedule import Ascent, AscentAround
from ..state import after_look
from .batch import BatchState
from .relaxed import Relaxed

_FIRST, _BETWEEN, _BETWEEN_NEAR = 2, 3, 30
"""Iterations before components are renewed for the first time, and between two times, or after passes of a start."""


def renewing(schedule: Ascent[BatchState]) -> Ascent[BatchState]:
    """Return a schedule that renews components and moves each by itself, in the place of batch ascent with moves."""
    return Renewing(Relaxed()) if schedule.batch_moves else schedule


@dataclass(frozen=True)
class Renewing(AscentAround[BatchState]):
    """Another schedule, in some steps of which rows get other components first.

    Attributes
    ----------
    own
        The other schedule.
    """

    def step(self, state: BatchState) -> BatchState:
        """Return the state after a step, from other components of each row where that leads higher."""
        model = state.problem.rows.with_new_sets
        between = _BETWEEN_NEAR if state.rows_raced else _BETWEEN
        if model is None or state.n_iter != _FIRST + between * state.renewals:
            return self.own.step(state)
        coefficients = state.problem.rows.coefficients(state.arrays)
        look = state.rows.at(model).look(coefficients, state.warm)
        renewed = replaced(after_look(state, look), renewals=state.renewals + 1)
        after = self.own.step(renewed)
        return after if after.status is None and after.elbo > state.elbo else self.own.step(state)
