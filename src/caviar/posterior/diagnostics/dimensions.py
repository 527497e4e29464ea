"""Names of axes: plates by their names, weights by the plate that they choose from, and other events by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...language import Data, Indexed, Node, Plate, Variable


def dimensions_of(nodes: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    """Return the names of the plates of each node, and of what the events of weights are called after.

    A joint factor has two entries, ``name.mean`` and ``name.precision``.
    """
    nodes = tuple(nodes)
    chosen = _plates_of_weights(nodes)
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        plates = tuple(plate.name for plate in node.plates)
        if isinstance(node, Variable) and "precision" in node.family.statistics:
            found[f"{node.name}.mean"] = plates
            found[f"{node.name}.precision"] = tuple(plate.name for plate in node.plates_of("precision"))
        elif isinstance(node, Variable | Data):
            plate = chosen.get(node)
            named = plate is not None and plate.name not in plates
            found[node.name] = (*plates, plate.name) if plate is not None and named else plates
    return found


def event_names(name: str, plates: Sequence[str], rank: int) -> tuple[str, ...]:
    """Return names of all axes of a variable: those of its plates, and others by number."""
    return (*plates, *(f"{name}_dim_{number}" for number in range(rank - len(plates))))


def _plates_of_weights(nodes: Sequence[Node]) -> dict[Any, Plate]:
    """Return for each variable of probabilities the one plate from which its labels choose, if there is one."""
    variables = [node for node in nodes if isinstance(node, Variable)]
    chosen: dict[Any, set[Plate]] = {}
    for variable in variables:
        for slot in variable.slots.values():
            if isinstance(slot.expression, Indexed) and slot.index is not None:
                chosen.setdefault(slot.index, set()).add(slot.expression.plate)
    found: dict[Any, set[Plate]] = {}
    for label, plates in chosen.items():
        for slot in label.slots.values() if isinstance(label, Variable) else ():
            if isinstance(slot.node, Variable) and slot.node.value_rank == 1:
                found.setdefault(slot.node, set()).update(plates)
    return {weights: next(iter(plates)) for weights, plates in found.items() if len(plates) == 1}
