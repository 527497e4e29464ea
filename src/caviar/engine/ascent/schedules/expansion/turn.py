"""Turns: moves of factors along directions that the data do not determine, to the optimum of the priors."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from ....._typing import Array, Statistics
from .....language import Variable
from ....rows.row_map import Warm
from ...state import AscentState


@dataclass
class Turned:
    """Where turns have led: what the next pass over the rows starts from.

    Attributes
    ----------
    naturals
        Natural parameters of the globals.
    arrays
        Expected statistics of these, and sums over rows as they were.
    warm
        Local factors.
    """

    naturals: dict[Variable, Statistics]
    arrays: dict[Hashable, Array]
    warm: Warm

    @classmethod
    def of(cls, state: AscentState) -> Turned:
        """Return a state before any turn."""
        return cls(dict(state.natural), dict(state.arrays), state.warm)


class Turn(Protocol):
    """Factors that can be moved together without any change of what the data say of them."""

    def made(self, state: AscentState, gained: float, place: Turned) -> float:
        """Write to ``place`` where the best turn leads, and return by how much it raises the objective.

        Parameters
        ----------
        state
            Before all turns.
        gained
            By how much the last step has raised the objective, in nats.
        place
            Where turns of other factors have led.

        Raises
        ------
        ImproperError, numpy.linalg.LinAlgError
            If double precision has no such factors.
        """
        ...
