"""Values of the slots of a variable, given values of the nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._typing import AnyArray
from .expansion.rate_sums import Rates
from .nodes.algebra import Addend, Diagonal, Link, Predictor, PredictorAlong, as_predictor
from .nodes.node import Indexed, Node, Part, SecondLabel, placed
from .nodes.plates import Plate
from .nodes.slots import Slot
from .nodes.weighted_sums import WeightedSum
from .variable import Variable


def stated_value(owner: Variable, name: str, stated: Any, values: Mapping[str, Any]) -> Any:
    """Return the value of what was stated in a slot: of a link, its natural parameter."""
    if isinstance(stated, Link):
        return stated.natural(stated_value(owner, name, stated.predictor, values))
    if isinstance(stated, PredictorAlong):
        if stated.n_states:
            # of a chain: predictors of each step, from each present state
            states = [{**values, owner.name: np.array([state])} for state in range(stated.n_states)]
            return np.stack([_values_along(owner, stated, own) for own in states], axis=-2)
        return _values_along(owner, stated, values)
    if isinstance(stated, Rates):
        return _rates_value(owner, stated.predictor, values)
    if stated is owner:
        return np.asarray(values[owner.name], dtype=np.float64)
    if isinstance(stated, Predictor):
        addends = [_addend_value(owner, addend, values) for addend in stated.addends]
        return sum(addends[1:], start=addends[0])
    if isinstance(stated, WeightedSum):
        return _weighted_sum_value(stated, values)
    if isinstance(stated, Diagonal):
        entries = _entries_value(owner, stated, values)
        return entries[..., None] * np.eye(entries.shape[-1])
    return slot_value(owner, owner.slots[name], values)


def _addend_value(owner: Variable, addend: Addend, values: Mapping[str, Any]) -> AnyArray:
    """Return the value of one product; of numbers and at most one vector or matrix, or of numbers and dot products."""
    rank = len(owner.plates)
    product = np.full((1,) * rank, addend.coefficient)
    whole = None
    for number in addend.numbers:
        value = _operand_value(owner, number, values)
        if value.ndim > rank:
            whole = value
        else:
            product = product * value
    for first, second in addend.dots:
        product = product * np.sum(
            _operand_value(owner, first, values) * _operand_value(owner, second, values), axis=-1
        )
    return product if whole is None else product.reshape(product.shape + (1,) * (whole.ndim - rank)) * whole


def _values_along(owner: Variable, predictor: PredictorAlong, values: Mapping[str, Any]) -> AnyArray:
    """Return the values of a predictor along its plate, which is the last axis."""
    return np.stack([_value_at(owner, predictor, k, values) for k in range(predictor.along.size)], axis=-1)


def _value_at(owner: Variable, predictor: PredictorAlong, place: int, values: Mapping[str, Any]) -> AnyArray:
    """Return the value of a predictor at a place along its plate."""
    total = np.zeros((1,) * len(owner.plates))
    for addend in predictor.addends:
        product: Any = addend.coefficient
        for number in addend.numbers:
            product = product * _operand_at(owner, number, place, values)
        for one, other in addend.dots:
            both = _operand_at(owner, one, place, values) * _operand_at(owner, other, place, values)
            product = product * both.sum(axis=-1)
        total = total + product
    return total


def _operand_at(owner: Variable, operand: Any, place: int, values: Mapping[str, Any]) -> AnyArray:
    if not isinstance(operand, Node | Indexed):
        return _operand_value(owner, operand, values)
    slot = operand_slot(owner, operand)
    node = slot.node
    return value_at(owner, slot, place, known_value(node, values), values)


def value_at(owner: Variable, slot: Slot, place: int, value: Any, values: Mapping[str, Any]) -> AnyArray:
    """Return an array over the plates of a slot's node as one over those of the owner, at a place along the slot's."""
    if slot.along is None and slot.index is owner:
        return laid_out(value, slot.node.plates, owner, _labels_of(owner, slot, values))
    if slot.along is None:
        return np.asarray(slot_value(owner, slot, {**values, slot.node.name: value}))
    axis = next(i for i, plate in enumerate(slot.node.plates) if plate is slot.along)
    others = (*slot.node.plates[:axis], *slot.node.plates[axis + 1 :])
    return laid_out(np.take(np.asarray(value), place, axis), others, owner, _labels_of(owner, slot, values))


def _labels_of(owner: Variable, slot: Slot, values: Mapping[str, Any]) -> dict[Plate, AnyArray]:
    """Return the labels that choose in a slot, over the plates of the owner, by the plate that they choose from."""
    return {chosen.plate: _labels_in(owner, chosen, values) for chosen in slot.chosen}


def _rows_value(owner: Variable, slot: Slot, value: AnyArray, values: Mapping[str, Any]) -> AnyArray:
    """Return a matrix by its rows over the plates of the owner, the plate of the rows before the event axes."""
    plates = slot.node.plates
    place = next(i for i, plate in enumerate(plates) if plate is slot.along)
    others = (*plates[:place], *plates[place + 1 :])
    by_rows = np.moveaxis(value, place, len(plates) - 1)
    return laid_out(by_rows, others, owner, _labels_of(owner, slot, values))


def _steps_value(owner: Variable, slot: Slot, value: AnyArray, values: Mapping[str, Any]) -> AnyArray:
    """Return the transitions of each step of a chain, (N, K, K), of which labels of the step choose some."""
    plates = slot.node.plates
    own = next(chosen.plate for chosen in slot.chosen if chosen.by is owner)
    others = tuple(plate for plate in plates if plate is not own)
    labels = {
        chosen.plate: _labels_in(owner, chosen, values) for chosen in slot.chosen if chosen.by is not owner
    }
    by_state = np.moveaxis(value, plates.index(own), len(plates) - 1)
    return laid_out(by_state, others, owner, labels)


def _weighted_sum_value(stated: WeightedSum, values: Mapping[str, Any]) -> AnyArray:
    """Return the matrix of each step, (N, D, D)."""
    weights = np.asarray(values[stated.weights.name])
    rows = np.asarray(known_value(stated.parts, values))
    parts = rows.reshape(len(rows), weights.shape[-1], -1)
    return np.einsum("tk,ikj->tij", weights, parts)


def _rates_value(owner: Variable, predictor: Predictor, values: Mapping[str, Any]) -> AnyArray:
    """Return the rates of all sources of a sum, (plates of the owner..., sources)."""
    parts = []
    for addend in predictor.addends:
        rate = _addend_value(owner, replace(addend, dots=()), values)[..., None]
        for pair in addend.dots:
            for operand in pair:
                rate = rate * _operand_value(owner, operand, values)
        parts.append(rate)
    shape = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts], axis=-1)


def _entries_value(owner: Variable, stated: Diagonal, values: Mapping[str, Any]) -> AnyArray:
    """Return the entries of a diagonal, over the plates of the owner and its event axis."""
    addends = as_predictor(stated.entries).addends
    products = [
        math.prod((_entry_value(owner, node, values) for node in addend.numbers), start=addend.coefficient)
        for addend in addends
    ]
    return np.asarray(sum(products[1:], start=products[0]))


def _entry_value(owner: Variable, operand: Any, values: Mapping[str, Any]) -> AnyArray:
    slot = operand_slot(owner, operand)
    node = slot.node
    if slot.along is None:
        return np.asarray(slot_value(owner, slot, values))[..., None]
    # the plate of a diagonal is the last of its node, and the event axis of the owner
    value = np.asarray(known_value(node, values))
    if isinstance(slot.expression, Indexed) and slot.along in slot.expression.by.plates:
        return _chosen_entries(owner, slot, slot.expression, value, values)
    if isinstance(slot.expression, Indexed):
        return value_along(owner, slot, value, values)
    return laid_out(np.moveaxis(value, len(node.plates) - 1, -1), node.plates[:-1], owner, {})


def _chosen_entries(
    owner: Variable, slot: Slot, chosen: Indexed, value: AnyArray, values: Mapping[str, Any]
) -> AnyArray:
    """Return what a label chooses for each entry, over the plates of the owner and its event axis."""
    rank, by = len(owner.plates), chosen.by
    places = [place for place, plate in enumerate(by.plates) if plate is not slot.along]
    others = tuple(by.plates[place] for place in places)
    along = next(place for place, plate in enumerate(by.plates) if plate is slot.along)
    labels = laid_out(np.moveaxis(np.asarray(values[by.name]), along, -1), others, owner, {}).astype(np.intp)
    index = []
    for plate, size in zip(slot.node.plates, value.shape, strict=True):
        axis = None if plate is chosen.plate else owner.plates.index(plate)
        own = (
            labels if axis is None else np.arange(size).reshape((1,) * axis + (size,) + (1,) * (rank - axis))
        )
        index.append(own)
    return value[tuple(index)]


def _operand_value(owner: Variable, operand: Any, values: Mapping[str, Any]) -> Any:
    """Return the value of a node, an indexed node or a plain vector, over the plates of the owner."""
    if isinstance(operand, Part):
        return getattr(_operand_value(owner, operand.whole, values), operand.which)
    if not isinstance(operand, Node | Indexed):
        return laid_out(np.asarray(operand, dtype=np.float64), (), owner, {})
    slot = operand_slot(owner, operand)
    if slot.along is not None:
        node = slot.node
        return value_along(owner, slot, known_value(node, values), values)
    return slot_value(owner, slot, values)


def value_along(owner: Variable, slot: Slot, value: Any, values: Mapping[str, Any]) -> AnyArray:
    """Return an array over the plates of a slot's node as one over those of the owner, with the plate along it last."""
    plates = slot.node.plates
    place = next(i for i, plate in enumerate(plates) if plate is slot.along)
    others = (*plates[:place], *plates[place + 1 :])
    return laid_out(np.moveaxis(np.asarray(value), place, -1), others, owner, _labels_of(owner, slot, values))


def operand_slot(owner: Variable, operand: Node | Indexed | Part) -> Slot:
    """Return the slot that an operand of a predictor got when the density was expanded; of a part that of the whole."""
    whole = operand.whole if isinstance(operand, Part) else operand
    return next(slot for slot in owner.slots.values() if _is_operand(owner, slot, whole))


def _is_operand(owner: Variable, slot: Slot, operand: Node | Indexed) -> bool:
    expression = placed(operand, owner)
    if isinstance(expression, Indexed):
        return (
            slot.node is expression.node
            and isinstance(slot.expression, Indexed)
            and slot.expression.choosers == expression.choosers
        )
    return slot.expression is expression


def known_value(node: Any, values: Mapping[str, Any]) -> Any:
    """Return the value of a known node, of a constant that which it was stated with unless there is another one."""
    return values[node.name] if node.name in values else node.value  # noqa: SIM401 (it may have none of its own)


def slot_value(
    owner: Variable, slot: Slot, values: Mapping[str, Any], plates: tuple[Plate, ...] | None = None
) -> Any:
    """Return the value in a slot, with an axis for each plate of its owner (of length 1 where it does not vary).

    Parameters
    ----------
    plates
        Of the value, where they are not those of the node in the slot.
    """
    node = slot.node
    value = known_value(node, values)
    labels: dict[Plate, AnyArray] = {}
    if slot.index is owner and owner.by_step:
        return _steps_value(owner, slot, np.asarray(value), values)
    if slot.index is owner or (slot.along is not None and len(node.plates) == 1):
        # a chain's transitions, chosen by its own state of the step before: those from every state, or all rows of it
        return np.asarray(value)
    if slot.along is not None and owner.by_step:
        return _rows_value(owner, slot, np.asarray(value), values)
    for chosen in slot.chosen:
        labels[chosen.plate] = _labels_in(owner, chosen, values)
    if slot.along is not None:
        # the axis of the entries stands after those of the plates of the owner
        others = tuple(plate for plate in node.plates if plate is not slot.along)
        value = np.moveaxis(np.asarray(value), node.plates.index(slot.along), len(others))
        return laid_out(value, others, owner, labels)
    if isinstance(value, tuple):
        both = zip(value, ("precision_x", "precision"), strict=True)
        return type(value)(*(laid_out(part, node.plates_of(name), owner, labels) for part, name in both))
    return laid_out(value, node.plates if plates is None else plates, owner, labels)


def _labels_in(owner: Variable, chosen: Indexed, values: Mapping[str, Any]) -> AnyArray:
    """Return the labels that choose, over the plates of the owner; those of groups as the records have them."""
    by, of_groups = chosen.by, {}
    for own in chosen.givens:
        of_groups[own.plate] = _labels_in(owner, own, values)
    second = None if chosen.through is None else values.get(SecondLabel(chosen).name)
    value = values[by.name] if second is None else second
    if chosen.through is not None:
        records = laid_out(values[chosen.through.by.name], chosen.through.by.plates, owner, {})
        # along an axis of length one all labels are the same
        alike = np.shape(value)[by.plates.index(chosen.through.plate)] == 1
        of_groups[chosen.through.plate] = 0 * records if alike else records
    return laid_out(value, by.plates, owner, of_groups)


def laid_out(
    array: AnyArray, plates: tuple[Plate, ...], owner: Variable, labels: Mapping[Plate, AnyArray]
) -> AnyArray:
    """Return an array over plates as one over the plates of the owner; plates with labels are chosen from."""
    rank = len(owner.plates)
    if not plates:
        return np.reshape(array, (1,) * rank + np.shape(array))
    index = []
    for plate, size in zip(plates, np.shape(array), strict=False):
        if plate in labels:
            index.append(labels[plate])
        else:
            axis = owner.plates.index(plate)
            index.append(np.arange(size).reshape((1,) * axis + (size,) + (1,) * (rank - axis - 1)))
    return array[tuple(index)]
