"""Effects with a learnt precision: how wide they are at first, in the units of the data.

Two fixed points are far below others. If data are in the thousands and effects have a prior precision of one, the first
updates count all variation as noise: effects stay at zero, and their precision at its prior. And an entry of a vector
with zeros is in by its odds, half of whose logarithm is the expected logarithm of the precision of its slab: with a
prior such as Gamma(0.001, 0.001) it is -1000, and no entry ever comes in.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...._errors import ImproperError
from ...._typing import Array
from ....language import Gamma, MultivariateNormal, Nonnegative, Normal, SparseVector, Variable, Wishart
from ...ascent.problem import Problem
from ...ascent.state import begin
from ...binding.clamped.factor import PointMass
from ...design.keys import StatisticKey
from ...rows.row_map import RowMap
from ..factors.prior import own_natural

_TOO_NARROW = 10.0
"""Times that the square of the largest effect is the prior variance of effects, from which on they begin wider."""


def widths_of(
    problem: Problem, q: Mapping[Variable, Any], row_map: RowMap, given: Collection[Variable] = ()
) -> dict[Variable, Any]:
    """Return points for the precisions of effects, and of the noise beside them, to be held in the first updates.

    Effects are as wide as the largest that any of them has alone, and the noise is all that varies. None where no such
    precision is learnt, or priors are wide enough.

    Parameters
    ----------
    q
        Globals at their priors.
    row_map
        Passes over the rows.
    given
        Globals that begin where a user has them.
    """
    precisions = precisions_of_effects(problem, given)
    if not precisions:
        return {}
    every = precisions_of_effects(problem)
    levels = [v for v in problem.order if _is_location(v) and v not in every and v not in given]
    arrays = _with_levels(problem, q, row_map, levels)
    if arrays is None:
        return {}
    squares: dict[Variable, Array] = {}
    points: dict[Variable, Array] = {}
    for effects, (precision, *others) in precisions.items():
        largest = _largest_squares(problem, effects, arrays)
        if largest is not None and _are_narrow(effects, precision, largest, arrays):
            # several vectors with one Gamma may differ in length
            own_square = largest if isinstance(precision, Wishart) else largest.max()
            squares[precision] = np.maximum(squares.get(precision, 0.0), own_square)
            points.update({own: np.ones(shape_of(problem, own)) for own in others if isinstance(own, Gamma)})
            points.update(_noise_beside(problem, effects))
    points.update({own: _reciprocal(problem, own, largest) for own, largest in squares.items()})
    points = {own: value for own, value in points.items() if own not in given}
    return {own: problem.with_known(own, PointMass.of(own, value)) for own, value in points.items()}


def precisions_of_effects(
    problem: Problem, given: Collection[Variable] = ()
) -> Mapping[Variable, Sequence[Variable]]:
    """Return effects with their precisions that are learnt, where neither is given."""
    every = problem.fact("learnt precisions of effects", lambda: _every_learnt_precision(problem))
    return {v: own for v, own in every.items() if v not in given and not set(own) & set(given)}


def _with_levels(
    problem: Problem, q: Mapping[Variable, Any], row_map: RowMap, levels: Sequence[Variable]
) -> dict[Hashable, Array] | None:
    """Return statistics and sums over the rows, some locations updated: what all rows have in common is no effect.

    None if there is no such update, of which the fit itself will tell, or if reference points have moved.
    """
    try:
        state = begin(problem, dict(q), row_map)
        arrays = dict(state.arrays)
        for level in levels:
            arrays.update(problem.statistics(level, problem.update(level, arrays)))
    except ImproperError:
        return None
    return arrays if state.problem is problem else None


def _is_location(variable: Variable) -> bool:
    return isinstance(variable, Normal | MultivariateNormal | Nonnegative)


def _every_learnt_precision(problem: Problem) -> dict[Variable, list[Variable]]:
    return {v: own for v in problem.order if (own := learnt_precisions(problem, v))}


def learnt_precisions(problem: Problem, effects: Variable) -> list[Variable]:
    """Return the precision of a location that is added up in what the rows bring, where it is learnt.

    Of a product all of them, the one with the fewest repetitions first.
    """
    if not (_is_location(effects) or (isinstance(effects, SparseVector) and effects in problem.sequential)):
        return []
    if next(_with(problem, effects), None) is None:
        return []
    return learnt_in(problem, effects, "precision")


def learnt_in(problem: Problem, owner: Variable, slot: str) -> list[Variable]:
    """Return the learnt precisions in a slot, of a product all of them, the one with the fewest repetitions first."""
    nodes = [own.node for name, own in owner.slots.items() if name.partition(".")[0] == slot]
    found = [node for node in nodes if isinstance(node, Gamma | Wishart) and node in problem.order]
    return sorted(found, key=lambda own: np.prod(shape_of(problem, own)))


def shape_of(problem: Problem, variable: Variable) -> tuple[int, ...]:
    """Return the numbers of repetitions of a global."""
    return tuple(problem.bound.sizes[plate] for plate in variable.plates)


def _largest_squares(problem: Problem, effects: Variable, arrays: Mapping[Any, Array]) -> Array | None:
    """Return the square of the largest single effect of each coordinate; None if the data do not determine any."""
    linear, square = (
        all_ - own
        for all_, own in zip(
            problem.updates[effects].natural(arrays)[-2:],
            own_natural(problem, effects, arrays)[-2:],
            strict=True,
        )
    )
    if isinstance(effects, MultivariateNormal):
        square = np.diagonal(square, axis1=-2, axis2=-1)
    linear, square = np.broadcast_arrays(linear, square)
    weight = -2.0 * square
    alone = np.where(weight > 0, linear / np.where(weight > 0, weight, 1.0), 0.0)
    axes = tuple(range(alone.ndim - isinstance(effects, MultivariateNormal)))
    largest = np.square(alone).max(axis=axes, initial=0.0)
    return largest if np.isfinite(largest).all() and (largest > 0).any() else None


def _are_narrow(effects: Variable, precision: Variable, largest: Array, arrays: Mapping[Any, Array]) -> bool:
    """Whether effects at the prior of their precision would be held near zero."""
    if isinstance(effects, SparseVector):
        return True
    expected = arrays[StatisticKey(precision.name, "x")]
    if isinstance(precision, Wishart):
        expected = np.diagonal(expected, axis1=-2, axis2=-1)
        return bool((expected * largest).max() > _TOO_NARROW)
    return bool(expected.min() * largest.max() > _TOO_NARROW)


def _reciprocal(problem: Problem, precision: Variable, largest: Array) -> Array:
    """Return a value of a precision at which effects are so wide."""
    shape = shape_of(problem, precision)
    if isinstance(precision, Wishart):
        each = np.where(largest > 0, largest, largest.max())
        return np.broadcast_to(np.diag(1.0 / each), (*shape, len(each), len(each)))
    return np.full(shape, 1.0 / largest.max())


def _noise_beside(problem: Problem, effects: Variable) -> dict[Variable, Array]:
    """Return the precisions of what effects are added up in, where they are learnt: those of all that varies."""
    found: dict[Variable, Array] = {}
    for leaf in _with(problem, effects):
        own = leaf.slots.get("precision")
        spread = problem.coordinates.spread_of(leaf)
        if own is None or spread is None or not isinstance(own.node, Gamma) or own.node not in problem.order:
            continue
        if spread.max() > 0:
            found[own.node] = np.full(shape_of(problem, own.node), float(spread.max()) ** -2)
    return found


def _with(problem: Problem, effects: Variable) -> Iterator[Variable]:
    """Yield the variables that a location is added up in."""
    for node in problem.bound.nodes:
        if isinstance(node, Variable) and any(
            slot.node is effects and slot.role.adds_up for slot in node.slots.values()
        ):
            yield node
