"""Beyond saddles: a fit that has settled at a saddle point goes on from a higher place."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeVar

from ....numerics.records import replaced
from ..schedule import AscentAround
from ..state import AscentState, iterated
from ..status import Status
from .saddles import beyond_saddle

log = logging.getLogger("caviar")

A = TypeVar("A", bound=AscentState)


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

    def judged(self, before: A, after: A, tol: float) -> A:
        """Return the state after an iteration, or after one more where it has settled at a saddle point.

        It has not settled where no iteration is left for that.
        """
        state = self.own.judged(before, after, tol)
        if state.status is not Status.CONVERGED or state.saddles >= self.most:
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
