"""The protocol by which a posterior binds the fitted model to other data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..engine.ascent.beliefs import Beliefs
from ..engine.ascent.problem import Problem
from ..engine.rows.row_map import RowMap
from ..language import Plate, Variable
from ..names import NamedData, Names


class Binds(Protocol):
    """Binds the fitted model to other data."""

    @property
    def data_plate(self) -> Plate | None:
        """The plate that runs over rows."""
        ...

    @property
    def point(self) -> Sequence[str]:
        """Names of the globals that are point masses."""
        ...

    @property
    def factors(self) -> Sequence[Sequence[str]] | None:
        """Groups of variables that share one factor."""
        ...

    @property
    def on_factors(self) -> str:
        """Which variables were left with independent factors, and why; empty if none."""
        ...

    @property
    def prior(self) -> Beliefs | None:
        """Beliefs of an earlier fit that replace the priors."""
        ...

    @property
    def names(self) -> Names:
        """Names of the places along the axes of the model."""
        ...

    def named(self, data: Any) -> NamedData:
        """Return data as arrays, their labels and columns in the order of the names of the fit."""
        ...

    def bind(self, data: Any, sample_weight: Any = None, executor: Any = None) -> tuple[Problem, RowMap]:
        """Return the problem for other data, and the map over its rows."""
        ...

    def at_points(self, data: Any, sample_weight: Any = None) -> tuple[Problem, RowMap]:
        """Return the problem for data with every global a point mass, and the map over its rows."""
        ...

    def above(self, leaves: Sequence[Variable], point: Sequence[str] | None = None) -> Binds:
        """Return the same for the part of the model above some of its leaves, or copies of these.

        ``point`` names the globals that are point masses there, if these are not those of the fit.
        """
        ...
