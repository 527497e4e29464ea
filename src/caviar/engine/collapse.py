"""Collapse: a factor under a flat prior that shrank onto (almost) no data.

Under a flat prior the objective grows without limit as a component empties or its covariance becomes
singular, and coordinate ascent climbs there. Such an end is no fit; it is told apart by the rows that the
component has left, and by its precision.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Array
from ..language import Axis, Variable

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["has_collapsed"]

_FEWEST_ROWS = 0.5
_NARROWEST = 1e-13
"""Variance of a column given the others, relative to its variance in the data, below which it counts as singular."""


def has_collapsed(plan: Plan, q: Mapping[Variable, Any], arrays: Mapping[Hashable, Array]) -> bool:
    """Whether a flat factor has less than half a row left, or a singular covariance."""
    flat = [variable for variable in plan.order if variable.is_flat]
    return any(_is_empty(plan, variable, arrays) or _is_singular(plan, variable, arrays) for variable in flat)


def _is_empty(plan: Plan, variable: Variable, arrays: Mapping[Hashable, Array]) -> bool:
    gates = {
        slot.index
        for node in plan.binding.nodes
        if isinstance(node, Variable)
        for slot in node.slots.values()
        if slot.node is variable and slot.index is not None
    }
    for part in plan.compiled.parts:
        if (
            part.factor is None
            or part.stat is None
            or part.feature is None
            or part.feature.source is not None
        ):
            continue
        chosen, statistic = part.stat
        if (
            chosen in gates
            and statistic == "x"
            and arrays[part].min() < _FEWEST_ROWS * _weight_of_a_row(plan)
        ):
            return True
    return False


def _weight_of_a_row(plan: Plan) -> float:
    """Return 1, or the largest weight if all are smaller: normalised weights make no row less of a row."""
    weights = plan.binding.row_weights
    return 1.0 if weights is None else min(1.0, float(weights.max()))


def _is_singular(plan: Plan, variable: Variable, arrays: Mapping[Hashable, Array]) -> bool:
    if variable.floor is not None:
        return False
    name = next((s for s in ("precision", "x") if (variable, s) in arrays), None)
    for node in plan.binding.observed:
        slot = next((s for s in node.slots.values() if s.node is variable), None)
        is_precision = slot is not None and (slot.name == "precision" or name == "precision")
        spread = plan.frame.spread_of(node)
        if not is_precision or spread is None or name is None:
            continue
        precision = arrays[variable, name]
        if node.value_rank:
            precision = np.diagonal(precision, axis1=-2, axis2=-1)
        # the spread has the plates of the leaf, the precision those of the variable: only common ones are compared
        if node.plates[1:] == () or Axis(node.plates[-1]) in [Axis(p) for p in variable.plates]:
            return bool(np.any(precision * spread**2 > 1 / _NARROWEST))
        return bool(np.any(precision * np.min(spread) ** 2 > 1 / _NARROWEST))
    return False
