"""Known statistics: what the values of an observed variable, a constant or an array of the data give to a term."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Axis, Constant, Data, Node, Operand, Plate, Variable
from ...language.nodes.roles import Role, labels_of
from .bound_model import BoundModel
from .coordinates import SHIFT, SHIFT_SQUARED, Coordinates
from .missing.values import OBSERVED
from .values import along_plates, whole_beside

BESIDE_VALUES = (OBSERVED, SHIFT, SHIFT_SQUARED)
"""Statistics of a variable that do not depend on its values."""


def known_statistic(
    bound: BoundModel, coordinates: Coordinates, owner: Variable, operand: Operand
) -> tuple[Array, tuple[Axis, ...]]:
    """Return a statistic of known values in a term of ``owner``, measured from the frame, and what its axes mean.

    Missing values of an observed variable have the statistic 0.
    """
    node, slot = operand.node, operand.slot
    if operand.statistic in (SHIFT, SHIFT_SQUARED):
        shift = coordinates.shift_of(owner)
        if operand.statistic == SHIFT:
            return shift, operand.axes
        squared = shift[..., :, None] * shift[..., None, :] if owner.value_rank else np.square(shift)
        return squared, operand.axes
    if isinstance(node, Variable):
        return _of_observed(bound, coordinates, node, operand.statistic), operand.axes
    assert isinstance(node, (Constant, Data))
    value = np.asarray(bound.values_of(node), dtype=np.float64)
    role, name = role_of(bound, operand), operand.statistic
    if slot is None:
        return role.of_known(name, value), operand.axes
    if slot.role.moves and coordinates.origin_of(node) is not None:
        # what the rows are measured from themselves
        return role.of_known(name, np.zeros(value.shape)), operand.axes
    moved = coordinates.of_known(owner, slot) if slot.role.moves else None
    n_plates = len(node.plates)
    plates, events = operand.axes[:n_plates], operand.axes[n_plates:]
    if moved is not None:
        reference, reference_plates = moved
        if plates == reference_plates:
            return role.of_known(name, value - reference), operand.axes
        beside = Beside.of(plates, reference_plates)
        value, plates = beside.difference(value, reference), beside.plates
    return role.of_known(name, value), (*plates, *events)


class Beside(NamedTuple):
    """How a value and the point that it is measured from lie along the plates of both.

    Attributes
    ----------
    plates
        Those of the value, and then the others of the point.
    of_value
        What index gives the value axes of length one along the others.
    order, of_point
        The plates of the point in that order, and the same index of it then.
    """

    plates: tuple[Axis, ...]
    of_value: tuple[slice | None, ...]
    order: tuple[int, ...]
    of_point: tuple[slice | None, ...]

    @classmethod
    def of(cls, plates: tuple[Axis, ...], of_point: tuple[Axis, ...]) -> Beside:
        """Return how a value with some plates, and a point, lie beside each other."""
        every = (*plates, *(axis for axis in of_point if axis not in plates))
        return cls(
            every,
            tuple([slice(None) if axis in plates else None for axis in every]),
            tuple([of_point.index(axis) for axis in every if axis in of_point]),
            tuple([slice(None) if axis in of_point else None for axis in every]),
        )

    def difference(self, value: AnyArray, point: Array) -> Array:
        """Return the value measured from the point."""
        events = range(len(self.order), point.ndim)
        return value[self.of_value] - point.transpose(*self.order, *events)[self.of_point]


def role_of(bound: BoundModel, operand: Operand) -> Role:
    """Return the role of a known array; labels choose from a plate, whose size the data may have settled."""
    return labels_of(bound.size(operand.axes[-1])) if operand.slot is None else operand.slot.role


def _of_observed(bound: BoundModel, coordinates: Coordinates, node: Variable, name: str) -> Array:
    mask = bound.of(node).observed
    if name == OBSERVED:
        assert mask is not None
        return mask.astype(np.float64)
    value, reference, origin = bound.values_of(node), coordinates.of(node), coordinates.origin_of(node)
    if origin is not None:
        assert bound.data_plate is not None
        reference = np.moveaxis(origin.of(bound.values_of), 0, node.plates.index(bound.data_plate))
    elif reference is not None and bound.data_plate in node.plates:
        reference = np.expand_dims(reference, node.plates.index(bound.data_plate))
    if reference is not None:
        value = value - reference
    if node.beside:
        statistic = node.statistic_beside(name, value, whole_beside(node, bound.values_of))
    else:
        statistic = node.statistic(name, value)
    return (
        statistic
        if mask is None
        else statistic * mask.reshape(mask.shape + (1,) * (statistic.ndim - mask.ndim))
    )


@dataclass(frozen=True, eq=False)
class KnownBeside:
    """Known arrays that go into the statistics of a variable, by the slot that each is in.

    Attributes
    ----------
    of_rows
        Slot -> the array of the rows, its plates with the rows first, and those of the variable.
    fixed
        Slot -> an array that is the same for all rows, with an axis of length 1 for these.
    """

    of_rows: Mapping[str, tuple[Node, tuple[Plate, ...], tuple[Plate, ...]]] = field(default_factory=dict)
    fixed: Mapping[str, AnyArray] = field(default_factory=dict)

    def of(self, known: Callable[[Node], AnyArray]) -> dict[str, AnyArray]:
        """Return the arrays of a block of rows, (B, ...), from the known arrays of the rows."""
        found = {
            slot: along_plates(np.asarray(known(node), dtype=np.float64), own, plates)
            for slot, (node, own, plates) in self.of_rows.items()
        }
        return {**self.fixed, **found}

    def of_one(self) -> dict[str, AnyArray]:
        """Return arrays of the shapes that they have for one row, of zeros."""
        return {slot: np.zeros(1) for slot in (*self.of_rows, *self.fixed)}


def beside(bound: BoundModel, variable: Variable) -> KnownBeside | None:
    """Return what is known beside the values of a variable of the rows; None where nothing goes into its statistics."""
    if not variable.beside:
        return None
    rows = bound.data_plate
    others = tuple(plate for plate in variable.plates if plate is not rows)
    of_rows, fixed = {}, {}
    for name in variable.beside:
        node = variable.slots[name].node
        if rows is not None and rows in node.plates:
            own = tuple(plate for plate in node.plates if plate is not rows)
            of_rows[name] = node, (rows, *own), (rows, *others)
        else:
            known = np.asarray(bound.values_of(node), dtype=np.float64)
            fixed[name] = along_plates(known, node.plates, others)[None]
    return KnownBeside(of_rows, fixed)
