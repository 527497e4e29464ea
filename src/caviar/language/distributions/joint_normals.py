"""What joint conjugate priors of a location and a precision share: their parts, and a precision tied along a plate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ... import families
from ..._errors import ModelError, PlateError
from ..nodes.node import Part
from ..nodes.plates import Plate, Plates, as_plates
from ..variable import Variable


class Joint(Variable):
    """A joint factor of a location and a precision: what passes its parts on."""

    family: ClassVar[type[Any]]
    has_parts = True

    @property
    def mean(self) -> Part:
        """Its location, for use where a mean may be: beside its precision."""
        return Part(self, "mean")

    @property
    def precision(self) -> Part:
        """Its precision, for use where a precision may be: beside its mean."""
        return Part(self, "precision")

    @abstractmethod
    def _flat(self) -> float | None:
        """Return the shape, or degrees of freedom, of the flat prior; None if the number of locations is unknown."""

    def _states_flat_prior(self) -> bool:
        flat, (size, scale) = self._flat(), self.shared_slots
        zeros = self._holds("mean_precision", 0) and self._holds(scale, 0)
        return flat is not None and zeros and self._holds(size, flat)

    def _refuse_improper(self, above: float, bound: str, rule: str) -> None:
        """Refuse a shape, or degrees of freedom, that only the flat prior may have, of which the rule is told."""
        size, scale = self.shared_slots
        known = self.known(size)
        if not self.is_flat and known is not None and not np.all(known > above):
            raise ModelError(
                f"'{size}' of {type(self).__name__} '{self.name}' must be {bound}; {rule} is possible only with "
                f"mean_precision=0, {scale}=0 (the flat prior)"
            )

    def _tie(self, kind: str, name: str, plates: Plates, tied: Plate | None) -> int | None:
        """Take the plate along which the precision is tied, where its family has one; return its size, if known."""
        if not self.family.is_shared:
            return None
        self.tied = _checked_tie(kind, name, plates, tied)
        return self.tied.size

    def _of_batch(self, plates: tuple[int, ...]) -> tuple[int, ...]:
        """Return the lengths of the plates along which the precision is repeated."""
        return plates if self.tied is None else plates[:-1]

    def distribution_given(self, slots: Mapping[str, Any]) -> families.ExponentialFamily:
        """Return the member of its family with these values of its slots, each with an axis for every plate."""
        if self.tied is None:
            return super().distribution_given(slots)
        ranks = zip(self.shared_slots, self.family.parameter_ndims[2:], strict=True)
        return self.family(
            **{**slots, **{key: np.take(slots[key], 0, axis=-1 - rank) for key, rank in ranks}}
        )

    def _is_along_tie(self, statistic: str) -> bool:
        return self.tied is None or statistic in ("precision_x", "precision_xx")


def _checked_tie(kind: str, name: str, plates: Plates, tied: Any) -> Plate:
    """Return the plate along which a precision is one and the same.

    Raises
    ------
    PlateError
        If it is not a plate, or not the last of the plates: the message says what to write.
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
