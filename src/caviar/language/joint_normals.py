"""What joint conjugate priors of a location and a precision share: their parts, and a precision tied along a plate."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import PlateError
from .nodes import Part
from .plates import Plate, Plates, as_plates
from .variable import Variable

__all__ = ["Joint", "checked_tie", "is_value", "is_zero"]


class Joint(Variable):
    """A joint factor of a location and a precision: what passes its parts on."""

    has_parts = True

    @property
    def mean(self) -> Part:
        """Its location, to stand where a mean may: beside its precision."""
        return Part(self, "mean")

    @property
    def precision(self) -> Part:
        """Its precision, to stand where a precision may: beside its mean."""
        return Part(self, "precision")

    def _is_along_tie(self, statistic: str) -> bool:
        return self.tied is None or statistic in ("precision_x", "precision_xx")


def checked_tie(kind: str, name: str, plates: Plates, tied: Any) -> Plate:
    """Return the plate along which a precision is one and the same.

    Raises
    ------
    PlateError
        If it is no plate, or not the last of the plates: the message says what to write.
    """
    own = as_plates(plates, name)
    if not isinstance(tied, Plate):
        raise PlateError(
            f"tied= of {kind} '{name}' takes the plate over which its locations share one precision; got {tied!r}"
        )
    if not own or own[-1] is not tied:
        others = [plate.name for plate in own if plate is not tied]
        wanted = f"({', '.join([*others, tied.name])})" if others else tied.name
        raise PlateError(
            f"tied= of {kind} '{name}' is plate '{tied.name}', which must be the last of its plates: write "
            f"plates={wanted}, tied={tied.name}"
        )
    return tied


def is_value(variable: Variable, slot: str, value: float) -> bool:
    """Return whether a slot holds a known value that is this number everywhere."""
    known = variable.known(slot)
    return known is not None and bool(np.all(known == value))


def is_zero(variable: Variable, slot: str) -> bool:
    """Return whether a slot holds a known value that is zero everywhere."""
    return is_value(variable, slot, 0.0)
