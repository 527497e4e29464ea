"""Differences: whether the categories of a gate can be told apart before any data are seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....language import Axis, StickBreaking
from ...ascent.problem import Plan
from ...compiled.compiler import GlobalTerm
from .gates import Gate
from .steps import differs_in_steps

__all__ = ["differs", "differs_in_components"]


_ALIKE = 1e-9
"""Relative difference of two constants that is none."""


def differs(plan: Plan, gate: Gate) -> bool:
    """Whether the categories of a gate, or what they choose, differ in anything that is known."""
    return _differs_in_weights(plan, gate) or differs_in_components(plan, gate)


def _differs_in_weights(plan: Plan, gate: Gate) -> bool:
    if gate.variable.summed:
        return differs_in_steps(plan, gate)
    node = gate.variable.slots["probabilities"].node
    if isinstance(node, StickBreaking):
        return True
    own = Axis(gate.variable, "k") if node not in plan.order else Axis(node, "k")  # type: ignore[arg-type]
    owner = gate.variable if node not in plan.order else node
    return _varies(plan, {own}, lambda term: term.owner is owner)


def differs_in_components(plan: Plan, gate: Gate) -> bool:
    """Whether what the categories of a gate choose differs in anything that is known."""
    chosen = set(gate.chosen)
    known = plan.binding.known
    if any(chosen & set(variable.plates) for variable in known if variable is not gate.variable):
        return True
    return _varies(plan, set(gate.axes), lambda term: term.owner is not gate.variable)


def _varies(plan: Plan, axes: set[Axis], is_meant: Callable[[GlobalTerm], bool]) -> bool:
    """Whether the known part of a term varies along one of these axes."""
    for term in filter(is_meant, plan.compiled.terms):
        contraction = term.contraction
        for position, axis in enumerate(contraction.constant_axes):
            if axis in axes:
                values = np.moveaxis(contraction.constant, position, 0)
                if np.any(np.abs(values - values[0]) > _ALIKE * np.abs(values).max()):
                    return True
    return False
