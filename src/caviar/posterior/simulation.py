"""Ancestral simulation: every variable drawn given values of its parents; and the log joint density of such values.

Nothing here knows of terms or contractions: distributions are the members of the families themselves, so that the
engine can be checked against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._errors import DataError, ImproperError, ModelError, ParameterError, PlateError
from .._typing import AnyArray
from ..engine.binding.missing.values import filled
from ..engine.binding.nested import flattened
from ..engine.binding.values import as_values
from ..families import ExponentialFamily, MeanPrecision, TiedNormalGamma, TiedNormalWishart
from ..language import (
    Constant,
    Data,
    Diagonal,
    Indexed,
    Label,
    Link,
    Node,
    Part,
    Plate,
    Predictor,
    Slot,
    Variable,
)
from ..language.algebra import Addend, as_predictor
from ..language.nodes import placed
from ..language.rate_sums import Rates
from ..language.roles import labels_of


def simulate(
    nodes: Sequence[Node],
    rng: np.random.Generator,
    sizes: Mapping[str, int],
    data: Mapping[str, Any],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a value of every variable by name: those in ``given`` as they are, the others drawn, parents first."""
    for argument, value in (("sizes", sizes), ("data", data), ("given", given)):
        if not isinstance(value, Mapping):
            told = repr(value) if isinstance(value, str | int | float) else type(value).__name__
            raise ParameterError(f"{argument}= is a mapping from names to values; got {told}")
    variables = [node for node in nodes if isinstance(node, Variable)]
    flat = flattened(nodes, data)
    known = known_arrays(nodes, flat.data)
    held = _held_values(variables, given)
    shapes = settle_sizes(nodes, sizes, {**known, **held}, flat.fewest)
    check_labels(nodes, known, shapes)
    values = {**known, **held}
    for variable in parents_first(variables):
        if variable.name not in held:
            values[variable.name] = _draw(variable, values, shapes, rng)
    return {variable.name: values[variable.name] for variable in variables}


def log_joint(
    nodes: Sequence[Node], values: Mapping[str, Any], counted: Mapping[str, AnyArray] | None = None
) -> float:
    """Return the log density of values of all variables, each family's own; a flat prior has density 1.

    Of a variable that is ``counted`` the repetitions that are marked, shape (plates...).
    """
    if not isinstance(values, Mapping):
        raise ParameterError(
            f"values is a mapping from the name of each variable to its value; got {values!r}"
        )
    missing = [n.name for n in nodes if not isinstance(n, Constant) and n.name not in values]
    if missing:
        raise DataError(f"the log joint density needs a value of every variable; '{missing[0]}' has none")
    read = {
        **known_arrays(nodes, {n.name: values[n.name] for n in nodes if isinstance(n, Data)}),
        **_held_values(
            [n for n in nodes if isinstance(n, Variable)],
            {n.name: values[n.name] for n in nodes if isinstance(n, Variable)},
        ),
    }
    flat = flattened(nodes, {name: value for name, value in values.items() if not isinstance(value, tuple)})
    sizes = settle_sizes(nodes, {}, read, flat.fewest)
    check_labels(nodes, read, sizes)
    total = 0.0
    for variable in nodes:
        if isinstance(variable, Variable) and not variable.is_flat:
            member = _over_plates(variable, conditional(variable, read), sizes)
            density = np.asarray(member.log_density(read[variable.name]))
            marked = (counted or {}).get(variable.name)
            total += float(np.sum(density if marked is None else density[marked]))
    return total


def conditional(variable: Variable, values: Mapping[str, Any]) -> ExponentialFamily:
    """Return the distribution of a variable given values of its parents.

    Its batch has an axis for each plate of the variable, of length 1 where nothing varies along it.

    Raises
    ------
    ImproperError
        If there is none: the message names the variable.
    """
    owner = variable.stated_with
    slots = {name: _stated_value(owner, name, stated, values) for name, stated in variable.stated.items()}
    try:
        return variable.distribution_given(slots)
    except ParameterError as error:
        raise ImproperError(
            f"'{variable.name}' has no proper distribution to draw from: {error} Give it a proper prior, or its "
            f"values with given={{'{variable.name}': ...}}."
        ) from error


def _stated_value(owner: Variable, name: str, stated: Any, values: Mapping[str, Any]) -> Any:
    """Return the value of what was stated in a slot: of a link, its natural parameter."""
    if isinstance(stated, Link):
        return stated.natural(_stated_value(owner, name, stated.predictor, values))
    if isinstance(stated, Rates):
        return _rates_value(owner, stated.predictor, values)
    if stated is owner:
        return np.asarray(values[owner.name], dtype=np.float64)
    if isinstance(stated, Predictor):
        addends = [_addend_value(owner, addend, values) for addend in stated.addends]
        return sum(addends[1:], start=addends[0])
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
    if isinstance(slot.expression, Indexed):
        return _chosen_entries(owner, slot, slot.expression, value, values)
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
        return value_along(
            owner, slot, node.value if isinstance(node, Constant) else values[node.name], values
        )
    return slot_value(owner, slot, values)


def value_along(owner: Variable, slot: Slot, value: Any, values: Mapping[str, Any]) -> AnyArray:
    """Return an array over the plates of a slot's node as one over those of the owner, with the plate along it last."""
    plates = slot.node.plates
    place = next(i for i, plate in enumerate(plates) if plate is slot.along)
    labels: dict[Plate, AnyArray] = {}
    for chosen in slot.chosen:
        labels[chosen.plate] = _labels_in(owner, chosen, values)
    others = (*plates[:place], *plates[place + 1 :])
    return laid_out(np.moveaxis(np.asarray(value), place, -1), others, owner, labels)


def operand_slot(owner: Variable, operand: Node | Indexed) -> Slot:
    """Return the slot that an operand of a predictor got when the density was expanded."""
    return next(slot for slot in owner.slots.values() if _is_operand(owner, slot, operand))


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
    if slot.index is owner or slot.along is not None:
        # a chain's transitions, chosen by its own state of the step before: those from every state, or all rows of it
        return np.asarray(value)
    for chosen in slot.chosen:
        labels[chosen.plate] = _labels_in(owner, chosen, values)
    if isinstance(value, tuple):
        both = zip(value, ("precision_x", "precision"), strict=True)
        return type(value)(*(laid_out(part, node.plates_of(name), owner, labels) for part, name in both))
    return laid_out(value, node.plates if plates is None else plates, owner, labels)


def _labels_in(owner: Variable, chosen: Indexed, values: Mapping[str, Any]) -> AnyArray:
    """Return the labels that choose, over the plates of the owner; those of groups as the records have them."""
    by, of_groups = chosen.by, {}
    if chosen.through is not None:
        records = laid_out(values[chosen.through.by.name], chosen.through.by.plates, owner, {})
        # along an axis of length one all labels are the same
        alike = np.shape(values[by.name])[by.plates.index(chosen.through.plate)] == 1
        of_groups[chosen.through.plate] = 0 * records if alike else records
    return laid_out(values[by.name], by.plates, owner, of_groups)


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


def _draw(
    variable: Variable, values: Mapping[str, Any], sizes: Mapping[Plate, int], rng: np.random.Generator
) -> Any:
    if variable.floor is not None:
        raise ModelError(
            f"'{variable.name}' is restricted by smallest_variance, and values of a restricted "
            f"{type(variable).__name__} cannot be drawn; give its values with given={{'{variable.name}': ...}}"
        )
    return _over_plates(variable, conditional(variable, values), sizes).sample(None, rng)


def _over_plates(
    variable: Variable, member: ExponentialFamily, sizes: Mapping[Plate, int]
) -> ExponentialFamily:
    """Return the distributions repeated along every plate of the variable."""
    if variable.tied is not None and isinstance(member, TiedNormalGamma | TiedNormalWishart):
        member = member.repeated(sizes[variable.tied])
    repeats = [
        np.arange(sizes[plate]) if length > 1 else np.zeros(sizes[plate], dtype=np.intp)
        for plate, length in zip(variable.batch_plates, member.batch_shape, strict=True)
    ]
    return member[np.ix_(*repeats)] if repeats else member


def parents_first(variables: Sequence[Variable]) -> list[Variable]:
    """Return variables and what they depend on, each after its parents."""
    found: dict[str, Variable] = {}
    for variable in variables:
        _visit(variable, found)
    return list(found.values())


def _visit(variable: Variable, found: dict[str, Variable]) -> None:
    """Add what a variable depends on to what was found, and then the variable."""
    if variable.name in found:
        return
    for parent in variable.drawn_given:
        if isinstance(parent, Variable):
            _visit(parent, found)
    found[variable.name] = variable


def known_arrays(nodes: Sequence[Node], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the Data of a model, checked."""
    declared = {node.name: node for node in nodes if isinstance(node, Data)}
    for name in data:
        if name not in declared:
            has = ", ".join(f"'{known}'" for known in declared) or "none"
            raise DataError(
                f"data= takes the known arrays of the model (Data; it has {has}); got '{name}'. Values of a variable "
                f"are held fixed with given="
            )
    for name in declared:
        if name not in data:
            raise DataError(f"the data lack '{name}', a known array of the model; pass {{'{name}': array}}")
    slots = [slot for node in nodes if isinstance(node, Variable) for slot in node.slots.values()]
    ranks = {slot.node: slot.role.rank for slot in slots}
    known: dict[str, Any] = {}
    for name, node in declared.items():
        rank = ranks.get(node, 0)
        known[name], _ = filled(node, as_values(node, data[name], rank), rank)
    return known


def check_labels(nodes: Sequence[Node], values: dict[str, Any], sizes: Mapping[Plate, int]) -> None:
    """Check known labels against the sizes of the plates that they choose from, and make them whole numbers."""
    slots = (slot for node in nodes if isinstance(node, Variable) for slot in node.slots.values())
    for slot in slots:
        for chosen in slot.choices:
            name = chosen.by.name
            problem = labels_of(sizes[chosen.plate]).problem(np.asarray(values[name]))
            if problem:
                raise DataError(f"the data of '{name}', which choose from a plate, {problem}")
            values[name] = np.asarray(values[name]).astype(np.intp)


def _held_values(variables: Sequence[Variable], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are held fixed as arrays, or as pairs of arrays for joint factors."""
    by_name = {variable.name: variable for variable in variables}
    held: dict[str, Any] = {}
    for name, value in given.items():
        if name not in by_name:
            has = ", ".join(f"'{known}'" for known in by_name)
            raise ParameterError(f"given= names '{name}', which is no variable of the model; it has {has}")
        variable = by_name[name]
        if "precision" in variable.family.statistics:
            held[name] = _as_pair(variable, value)
            continue
        # what is drawn given it, and its density, are of single rows written out
        held[name] = _as_numbers(variable, value.toarray() if issparse(value) else value)
        rank = len(variable.plates) + variable.value_rank
        if held[name].ndim != rank:
            raise PlateError(
                f"'{name}' must have {rank} axes (its plates, then its event); got shape {held[name].shape}"
            )
        if held[name].size == 0:
            raise ParameterError(f"the given '{name}' is empty: shape {held[name].shape}")
        # other values off their support have density zero; labels off theirs would choose a wrong row
        problem = variable.problem_with(held[name]) if isinstance(variable, Label) else ""
        if problem:
            raise ParameterError(f"the given '{name}', a {type(variable).__name__}, {problem}")
    return held


def _as_numbers(variable: Variable, value: Any) -> AnyArray:
    """Return a value that is held fixed as an array of real numbers."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise ParameterError(f"the given '{variable.name}' must be an array of real numbers; got {value!r}")
    return array


def _as_pair(variable: Variable, value: Any) -> MeanPrecision:
    """Return a value of a joint factor as (mean, precision)."""
    rank, n_precisions = len(variable.plates), len(variable.plates_of("precision"))
    pair = tuple(_as_numbers(variable, part) for part in value) if isinstance(value, tuple) else ()
    if [part.ndim for part in pair] != [rank + variable.value_rank, n_precisions + variable.precision_rank]:
        raise ParameterError(
            f"a value of '{variable.name}', a {type(variable).__name__}, is a pair (mean, precision), each over its "
            f"plates; got {value!r}"
        )
    return MeanPrecision(*pair)


def settle_sizes(
    nodes: Sequence[Node], sizes: Mapping[str, int], values: Mapping[str, Any], fewest: Mapping[Plate, int]
) -> dict[Plate, int]:
    """Return the size of each plate: declared, asked for, that of a known value, or the ``fewest`` of an outer plate.

    Raises
    ------
    PlateError
        If one is unknown, or two disagree: the message names the plate.
    """
    plates = {plate.name: plate for node in nodes for plate in node.plates}
    settled: dict[Plate, int] = {}
    told_by: dict[Plate, str] = {}

    def tell(plate: Plate, size: int, by: str) -> None:
        if settled.setdefault(plate, size) != size:
            raise PlateError(
                f"plate '{plate.name}' has size {size} in {by} but {settled[plate]} in {told_by[plate]}"
            )
        told_by.setdefault(plate, by)

    for plate in plates.values():
        if plate.size is not None:
            tell(plate, plate.size, "its declaration")
    for name, size in sizes.items():
        if name not in plates:
            has = ", ".join(f"'{known}'" for known in plates) or "none"
            raise PlateError(f"sizes= names plate '{name}', but the model has {has}")
        tell(plates[name], Plate(name, size).size or 0, "sizes=")
    for node in nodes:
        value = node.value if isinstance(node, Constant) else values.get(node.name)
        if value is not None:
            first = value[0] if isinstance(value, tuple) else value
            for plate, size in zip(node.plates, np.shape(first), strict=False):
                tell(plate, size, f"'{node.name}'")
    settled = {**fewest, **settled}
    for node in nodes:
        for plate in node.plates:
            if plate not in settled:
                raise PlateError(
                    f"the size of plate '{plate.name}' of '{node.name}' is unknown; give it: "
                    f"sizes={{'{plate.name}': 100}}"
                )
    return settled


_MOST = 1_000_000_000


def check_count(name: str, value: int) -> None:
    """Refuse what is no number of draws, rows or folds.

    Raises
    ------
    ParameterError
        If it is no whole number of at least 1, or beyond all use.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ParameterError(f"{name} must be a whole number of at least 1; got {value!r}")
    if value > _MOST:
        raise ParameterError(f"{name} must be at most {_MOST}; got {value}")
