"""The same outcomes with their effects of rows on a plate beside that of the rows, chosen by the number of the row."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from .distributions.normals import Normal
from .distributions.positive import Gamma
from .nodes.algebra import Link, Predictor
from .nodes.node import Data
from .nodes.plates import Plate
from .variable import Variable


def effect_of_rows(outcome: Variable, rows: Plate, hidden: Container[str]) -> Normal | None:
    """Return the Normal of each row with a learnt precision that a link adds up; None without one, or with several.

    Parameters
    ----------
    outcome
        An observed variable.
    rows
        The plate of the rows.
    hidden
        Names of the variables that are known in no row.
    """
    found = [
        node
        for link in _links(outcome).values()
        for addend in link.predictor.addends
        for node in addend.numbers
        if isinstance(node, Normal) and node.name in hidden and node.plates == (rows,) and not addend.dots
    ]
    if len(found) != 1:
        return None
    (effect,) = found
    is_learnt = any(isinstance(own.node, Gamma) for own in effect.slots.values())
    return effect if is_learnt and not any(rows in node.plates for node in effect.parents) else None


def with_effects_apart(outcome: Variable, effect: Normal, rows: Plate, n_rows: int) -> tuple[Variable, Data]:
    """Return an observed variable with an effect of each row on a plate of its own, and what says which row has which.

    Parameters
    ----------
    effect
        As :func:`effect_of_rows` returns it.
    rows, n_rows
        The plate of the rows, and its size.
    """
    number = Data(f"{effect.name}.row", plates=rows)
    own = effect.state_again(effect.name, (Plate(f"{effect.name}.rows", n_rows),), effect.arguments)[number]
    links = {}
    for slot, link in _links(outcome).items():
        addends = [
            replace(addend, numbers=tuple(own if node is effect else node for node in addend.numbers))
            for addend in link.predictor.addends
        ]
        links[slot] = replace(link, predictor=Predictor(tuple(addends)))
    return outcome.state_again(outcome.name, outcome.plates, {**outcome.arguments, **links}), number


def _links(outcome: Variable) -> dict[str, Link]:
    return {slot: own for slot, own in outcome.arguments.items() if isinstance(own, Link)}
