"""Alternating: the first rounds of a fit in which variables belong to repetitions of an outer plate.

Topics are nothing yet when documents begin to prefer some of them, and a document keeps to what it once preferred:
updated in turn, proportions and topics end in poor optima. So in the first rounds the variables of the outer plate
begin at their prior again and are brought near their optimum before the others are updated once. Of 500 posts with 20
topics the ELBO then ends 0.28 nats a token higher (0.05 higher than where batch updates by document end).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....language import Variable
from ...rows.row_map import RowMap
from ..driver import Result, Settings, ascend
from ..plain_states import fit_of, plain_fit
from ..problem import Factors, Problem
from ..schedule import Beginning, Schedule
from ..state import AscentState, FitState, begin
from ..status import Status
from .batch import Batch
from .mixed_precision import as_exact_as

_OUTER = Settings(max_iter=10, tol=0.0)
_OTHERS = Settings(max_iter=1, tol=0.0)


@dataclass(frozen=True, eq=False)
class Alternating(Schedule[FitState]):
    """Bring the variables of an outer plate near their optimum from their prior, and update the others once.

    Attributes
    ----------
    outer, others
        The problem with updates of the variables of the outer plate only, and of the others only.
    at_prior
        Returns the factors of all, those of the outer plate at their prior, given those of the others.
    """

    outer: Problem
    others: Problem
    at_prior: Callable[[Factors], dict[Variable, Any]]

    def init(self, beginning: Beginning[FitState]) -> FitState:
        """Return the state before the first round; its objective is not used."""
        return FitState(problem=beginning.problem, rows=beginning.rows, q=beginning.q, trace=(np.nan,))

    def step(self, state: FitState) -> FitState:
        """Return the state after a round."""
        others = {variable: state.q[variable] for variable in self.others.order}
        found = _ascended(_OUTER, self.outer, self.at_prior(others), state.rows)
        after = _ascended(_OTHERS, self.others, found.q, state.rows)
        change = (after.elbo - state.trace[-1]) / state.per_row
        n_updates = state.n_updates + found.n_updates + after.n_updates
        q = {variable: after.q[variable] for variable in state.problem.order}
        return replace(state, q=q, trace=(*state.trace, after.elbo), change=change, n_updates=n_updates)

    def judged(self, before: FitState, after: FitState, tol: float) -> FitState:
        """Return the state after a round: there are as many as are asked for."""
        return after

    def finish(self, state: FitState) -> AscentState:
        """Return the state after a pass over all rows."""
        return begin(state.problem, state.q, state.rows)

    def to_plain(self, state: FitState) -> dict[str, Any]:
        """Return a state as values that a checkpoint holds."""
        return plain_fit(state)

    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> FitState:
        """Return the state from these values."""
        return FitState(**fit_of(document, problem, rows))


def _ascended(settings: Settings, problem: Problem, q: Factors, rows: RowMap) -> Result:
    """Return where plain updates lead, unless a user stops them: there is no posterior to give back yet."""
    result = ascend(as_exact_as(rows, Batch(None)), Beginning(problem, q, rows), settings)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result
