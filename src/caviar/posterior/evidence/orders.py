"""Hidden labels whose categories a model does not distinguish: a fit is at one of the K! orders of these."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np

from ..._typing import Array
from ...families import Dirichlet as DirichletFactor
from ...language import Constant, Dirichlet, MarkovChain, Node, Plate, Variable
from ...language.nodes.node import Label

_CHANCES = ("probabilities", "initial", "transition")
"""Slots of a label with the chances of its categories."""

_HALF_A_ROW = 0.5


def orders_of(variables: Mapping[str, Variable], known: Container[str]) -> tuple[tuple[str, int], ...]:
    """Return the labels of which all categories have the same prior, each with their number.

    Parameters
    ----------
    variables
        Those of a model by name.
    known
        Names of what the data have: known labels say which category is which.
    """
    return tuple((own.name, own.categories or 0) for own in exchangeable_labels(variables, known))


def exchangeable_labels(variables: Mapping[str, Variable], known: Container[str]) -> tuple[Label, ...]:
    """Return the labels of :func:`orders_of` themselves."""
    labels = (own for own in variables.values() if isinstance(own, Label) and own.name not in known)
    return tuple(own for own in labels if _is_exchangeable(variables, own, known))


def plates_chosen_by(variables: Mapping[str, Variable], label: Label) -> set[Plate]:
    """Return the plates that a label chooses from."""
    slots = [slot for owner in variables.values() if owner is not label for slot in owner.slots.values()]
    return {choice.plate for slot in slots for choice in slot.chosen if choice.by is label}


def empty_of(
    variables: Mapping[str, Variable], factors: Mapping[str, Any], labels: Iterable[str]
) -> tuple[tuple[str, int], ...]:
    """Return the labels of which a fit gives some categories less than half a row, each with the number of these.

    Parameters
    ----------
    variables
        Those of a model by name.
    factors
        Name -> factor of each global.
    labels
        Names of labels. What rows say of a label is told where its chances have a Dirichlet factor of their own.
    """
    found = []
    for name in labels:
        chances = [slot.node for key, slot in variables[name].slots.items() if key in _CHANCES]
        rows: Array = np.zeros(())
        for node in chances:
            factor, prior = factors.get(node.name), _chances_of(node)
            if not isinstance(node, Dirichlet) or not isinstance(factor, DirichletFactor) or prior is None:
                rows = np.full((), np.inf)
                continue
            own = factor.concentration - prior
            rows = rows + own.reshape(-1, own.shape[-1]).sum(axis=0)
        n_empty = int(np.sum(rows < _HALF_A_ROW))
        found += [(name, n_empty)] if chances and n_empty else []
    return tuple(found)


def _is_exchangeable(variables: Mapping[str, Variable], label: Label, known: Container[str]) -> bool:
    """Whether hidden variables of the categories, and the chances of these, have the same prior in any order."""
    if not isinstance(label, Variable) or (label.categories or 0) < 2 or not _has_even_chances(label):
        return False
    slots = [slot for owner in variables.values() if owner is not label for slot in owner.slots.values()]
    choices = [(slot.node, choice) for slot in slots for choice in slot.chosen]
    own = [(node, choice.plate) for node, choice in choices if choice.by is label]
    plates = plates_chosen_by(variables, label)
    if any(variable.name in known and plates & {*variable.plates} for variable in variables.values()):
        # what is known of a category says which one it is
        return False
    if any(
        slot.node is label or any(gate.by is label and gate not in slot.chosen for gate in slot.gates)
        for slot in slots
    ):
        return False
    if any(choice.by is not label and choice.plate in plates for _, choice in choices):
        return False
    return any(isinstance(node, Variable) for node, _ in own) and all(_is_even_along(*each) for each in own)


def _has_even_chances(label: Variable) -> bool:
    """Whether the prior of a label is the same in any order of its categories."""
    if isinstance(label, MarkovChain):
        initial, transition = label.slots.get("initial"), label.slots.get("transition")
        if initial is None or transition is None or label.slots.keys() - {"initial", "transition", "starts"}:
            return False
        return _is_even(_chances_of(initial.node)) and _is_even_of_steps(_chances_of(transition.node))
    return label.slots.keys() == {"probabilities"} and _is_even(
        _chances_of(label.slots["probabilities"].node)
    )


def _chances_of(node: Node) -> Array | None:
    """Return known probabilities, or the known concentration of unknown ones; None if there is neither."""
    if isinstance(node, Dirichlet) and node.slots.keys() == {"concentration"}:
        node = node.slots["concentration"].node
    return np.asarray(node.value) if isinstance(node, Constant) else None


def _is_even(chances: Array | None) -> bool:
    return chances is not None and bool(np.all(chances == chances[..., :1]))


def _is_even_of_steps(chances: Array | None) -> bool:
    """Whether steps to another state are equally likely a priori, and so are those that stay."""
    if chances is None or chances.ndim < 2:
        return _is_even(chances)
    stays, others = np.diagonal(chances, axis1=-2, axis2=-1), ~np.eye(chances.shape[-1], dtype=bool)
    return _is_even(stays) and chances.shape[-1] == chances.shape[-2] and _is_even(chances[..., others])


def _is_even_along(node: Node, plate: Plate) -> bool:
    """Whether all repetitions of a plate have the same prior."""
    if plate not in node.plates:
        return True
    if isinstance(node, Constant):
        value = np.moveaxis(np.asarray(node.value), node.plates.index(plate), 0)
        return bool(np.all(value == value[:1]))
    if not isinstance(node, Variable):
        return False
    return not any(
        slot.along is plate or any(plate in own.along for own in slot.chosen) for slot in node.slots.values()
    ) and all(_is_even_along(slot.node, plate) for slot in node.slots.values())
