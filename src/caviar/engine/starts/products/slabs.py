"""Slabs of vectors with zeros: how wide they are at first, so that entries are told from zero.

An entry is in by its odds, half of whose logarithm is the expected logarithm of the precision of its slab. With a broad
prior of that precision, such as Gamma(0.001, 0.001), it is -1000: no entry comes in, and the precision stays at its
prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .... import families
from ...._typing import Array
from ....language import Gamma, SparseVector, Variable
from ...ascent.problem import Problem
from ...ascent.state import begin
from ...binding.clamped.factor import PointMass
from ...rows.row_map import RowMap
from ..factors.prior import own_natural


def slabs_of(problem: Problem, q: Mapping[Variable, Any], row_map: RowMap) -> dict[Variable, Any]:
    """Return factors of the precisions of slabs, and points at those of the noise beside them, for a first update.

    Slabs are as wide as the largest effect that any entry has alone, and the noise is all that varies. None where no
    such precision is learnt, or nothing is known to have an effect yet.

    Parameters
    ----------
    q
        Globals at their priors.
    row_map
        Passes over the rows.
    """
    vectors = [v for v in problem.order if isinstance(v, SparseVector) and v in problem.sequential]
    precisions = {v: own for v in vectors if (own := _precision_of(problem, v)) is not None}
    if not precisions:
        return {}
    state = begin(problem, dict(q), row_map)
    if state.problem is not problem:
        return {}
    found: dict[Variable, Any] = {}
    for vector, precision in precisions.items():
        alone = _effects_alone(problem, vector, state.arrays)
        largest = float(np.max(np.square(alone), initial=0.0))
        if not (np.isfinite(largest) and largest > 0):
            continue
        shape = tuple(problem.bound.sizes[plate] for plate in precision.plates)
        one = np.ones(shape)
        wide = families.Gamma(one, largest * one)
        is_point = precision in problem.point
        found[precision] = problem.with_known(
            precision, PointMass.of(precision, wide.mean) if is_point else wide
        )
        found.update(_noise_beside(problem, vector))
    return found


def _precision_of(problem: Problem, vector: Variable) -> Variable | None:
    """Return the learnt precision of the slabs of a vector."""
    node = vector.slots["precision"].node
    return node if isinstance(node, Gamma) and node in problem.order else None


def _effects_alone(problem: Problem, vector: Variable, arrays: Mapping[Any, Array]) -> Array:
    """Return the effect of each entry if it were the only one, as the rows have it."""
    _, linear, square = problem.updates[vector].natural(arrays)
    _, own_linear, own_square = own_natural(problem, vector, arrays)
    weight = 2.0 * (own_square - square)
    return np.where(weight > 0, (linear - own_linear) / np.where(weight > 0, weight, 1.0), 0.0)


def _noise_beside(problem: Problem, vector: Variable) -> dict[Variable, Any]:
    """Return points for the precisions of what a vector has an effect on: those of all that varies."""
    found: dict[Variable, Any] = {}
    for leaf in problem.bound.nodes:
        if not isinstance(leaf, Variable):
            continue
        if not any(slot.node is vector and slot.role.adds_up for slot in leaf.slots.values()):
            continue
        own = leaf.slots.get("precision")
        spread = problem.coordinates.spread_of(leaf)
        if own is None or spread is None or not isinstance(own.node, Gamma) or own.node not in problem.order:
            continue
        if spread.max() > 0:
            shape = tuple(problem.bound.sizes[plate] for plate in own.node.plates)
            value = np.full(shape, float(spread.max()) ** -2)
            found[own.node] = problem.with_known(own.node, PointMass.of(own.node, value))
    return found
