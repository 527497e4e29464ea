"""Beyond saddles: a fit that has converged to a saddle point leaves it and continues."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeVar

from ....numerics.records import replaced
from ..schedule import AscentAround, Beginning
from ..state import AscentState, iterated
from ..status import Status
from .moves.saddles import beyond_saddle

log = logging.getLogger("caviar")

A = TypeVar("A", bound=AscentState)

_LEFT = 1e-3
"""Share of the rise of a fit that steps away from a saddle point may have had, and count as none."""


@dataclass(frozen=True)
class BeyondSaddles(AscentAround[A]):
    """Another schedule, with one more iteration away from each saddle point that it settles at.

    Attributes
    ----------
    own
        The other schedule.
    most
        Saddle points that are left behind: of more it would not be known whether the fit ends.
    max_iter
        Iterations of the fit.
    """

    most: int
    max_iter: int

    @property
    def batch_moves(self) -> bool | None:
        """As of the other schedule."""
        return self.own.batch_moves

    def init(self, beginning: Beginning[A]) -> A:
        """Return the state before the first step, which knows whether the fit begins at plain clusters."""
        return replaced(self.own.init(beginning), is_from_clusters=beginning.is_from_clusters)

    def judged(self, before: A, after: A, tol: float) -> A:
        """Return the state after an iteration, or after one more where it has settled at a saddle point.

        It has not settled where no iteration is left for that.
        """
        state = self.own.judged(before, after, tol)
        if state.status is not Status.CONVERGED or state.saddles >= self.most or _is_at_maximum(state):
            return state
        found = beyond_saddle(state, tol * state.per_row, state.saddles)
        if found is None:
            return state
        if state.n_iter >= self.max_iter:
            return replaced(state, status=None)
        log.info(
            "the fit had settled at a saddle point; it goes on %.4g nats higher", found.elbo - state.elbo
        )
        beyond = replaced(found, status=None, saddles=state.saddles + 1)
        return self.own.at(iterated(state, beyond, max(1, state.rows.n_batches_made)))


def _is_at_maximum(state: AscentState) -> bool:
    """Whether a fit has come so fast from plain clusters that it has not settled at a saddle point.

    In the direction away from a saddle point each iteration gains more than the one before. So there all iterations
    together have gained at most as many times the last gain. Labels of clusters leave no direction out, unlike a prior,
    at which all components are equal, and if one of them has next to no part in the way it is by chance.
    """
    if not state.is_from_clusters or state.saddles or state.swaps:
        return False
    return state.n_iter * abs(state.trace[-1] - state.trace[-2]) < _LEFT * (state.trace[-1] - state.trace[0])
