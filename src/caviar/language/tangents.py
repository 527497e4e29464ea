"""The point at which a tangent bounds the normaliser of a Dirichlet with an unknown number for each category."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from .. import families
from .._typing import AnyArray, Array
from .algebra import Addend, PredictorAlong
from .nodes import Indexed, Node
from .plates import Plate
from .roles import SCALAR
from .slots import Slot
from .templates import template
from .variable import Variable


class TangentAtTotal(Variable):
    """The point at which the tangent touches the log-gamma function of the sum of unknown concentrations."""

    family = families.LogGammaTangent
    letters: ClassVar = {"x": "", "constant": ""}
    takes_data = False
    is_brought = True
    density = template()

    def __init__(self, name: str, numbers: Node, along: Plate, scale: float) -> None:
        self._state(name, [plate for plate in numbers.plates if plate is not along], {}, dimension=1)
        self.slots = {"concentration.0": Slot("concentration", numbers, SCALAR, along=along)}
        self.stated = {"concentration": PredictorAlong((Addend(scale, (numbers,), ()),), along)}

    @classmethod
    def of(cls, owner: Node, predictor: PredictorAlong) -> TangentAtTotal | Indexed:
        """Return the point that belongs to a concentration, chosen from as that is."""
        (addend,) = predictor.addends
        number: Any = addend.numbers[0]
        name = f"{owner.name}.tangent"
        if isinstance(number, Indexed):
            own = cls(name, number.node, predictor.along, addend.coefficient)
            return Indexed(own, *number.indices)
        return cls(name, number, predictor.along, addend.coefficient)

    def distribution_given(self, slots: Mapping[str, Any]) -> families.LogGammaTangent:
        """Return the sum of the concentrations: there the bound is exact."""
        return families.LogGammaTangent(slots["concentration"].sum(axis=-1))

    def best_given(self, values: Mapping[str, Any]) -> Array | None:
        """Return the sums of values of the concentrations, (n, plates...): there the bound is exact."""
        slot = self.slots["concentration.0"]
        if slot.along is None or slot.node.name not in values:
            return None
        own = np.asarray(values[slot.node.name]).sum(axis=1 + slot.node.plates.index(slot.along))
        return self.stated["concentration"].addends[0].coefficient * own

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with numbers that are not positive."""
        return "" if (value > 0).all() else "must be positive"
