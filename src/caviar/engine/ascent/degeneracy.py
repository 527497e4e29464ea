"""Degenerate steps: numbers that are not finite, a component with (almost) no data, or a fall of the objective.

Under a flat prior the objective grows without limit as a component empties or its covariance becomes singular, and
coordinate ascent climbs there: it collapses. Such an end is not a fit; it is recognised by the rows that the
component has left, and by its precision.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np

from ..._errors import FallingElboWarning, ImproperError
from ..._typing import AnyArray, Array
from ...language import Indexed, Slot, Variable
from ...lazy.block_map import largest_of
from ...numerics.linalg import inverse
from ...numerics.records import replaced
from ..binding.coordinates import refuse_far_priors
from ..design.keys import StatisticKey, together
from .problem import Problem
from .state import AscentState
from .status import Status

log = logging.getLogger("caviar")

A = TypeVar("A", bound=AscentState)

_FEWEST_ROWS = 0.5
_MOST_COLLINEAR = 1e13
"""Variance of a column over its variance given the others, within a component, above which they are collinear."""
_MOST_COLLINEAR_WITH_GAPS = 1e10
"""The same where vectors are missing in part: what is missing is regressed on the rest, which has fewer digits."""
_NARROWEST = 8 * np.finfo(float).eps
"""Standard deviation of a component, relative to the size of the data, that rounding alone would give."""
_LEAST_SIZE = 1e-12
"""Size of a component's location, relative to that of the data, below which it counts as zero."""


def checked(state: A, step: Callable[[A], A]) -> A | None:
    """Return the state after a step, with the status that says why no other follows, if none does.

    It is None where the step has collapsed and left nothing to be kept: the state before it is the last one.

    Raises
    ------
    ImproperError
        If an update has left its family under proper priors.

    Warns
    -----
    FallingElboWarning
        If an update lowered the objective.
    """
    try:
        after = step(state)
    except ImproperError as error:
        refused_or_collapsed(state.problem, error)
        return None
    if has_collapsed(after.problem, after.q, after.arrays):
        # at the edge of a family updates may be nonsense: a state that fell is not kept
        kept = np.isfinite(after.elbo) and not after.fell_at
        return replaced(after, status=Status.COLLAPSED) if kept else None
    if after.fell_at:
        refuse_far_priors(state.problem.bound, state.problem.coordinates)
        warnings.warn(
            f"the update of {after.fell_at}. Exact coordinate ascent cannot lower the ELBO: either scales "
            f"in the data differ too much for double precision, or this is a bug. Please report it, with "
            f"the model and data.",
            FallingElboWarning,
            stacklevel=2,
        )
        return replaced(after, status=Status.FELL)
    return after


def refused_or_collapsed(problem: Problem, error: ImproperError) -> None:
    """Return where a flat prior explains that an update has left its family: the fit has collapsed.

    Raises
    ------
    ImproperError
        If no prior is flat.
    """
    if not problem.flat:
        refuse_far_priors(problem.bound, problem.coordinates)
        raise error
    log.info("collapsed: %s", error)


def has_collapsed(problem: Problem, q: Mapping[Variable, Any], arrays: Mapping[Hashable, Array]) -> bool:
    """Whether a flat factor has less than half a row left, or a singular covariance."""
    return bool(problem.flat) and any(
        _is_empty(problem, variable, arrays) or _is_singular(problem, variable, q, arrays)
        for variable in problem.flat
    )


def _is_empty(problem: Problem, variable: Variable, arrays: Mapping[Hashable, Array]) -> bool:
    for key, gate in problem.fact(("counts", variable), lambda: _counts_of(problem, variable)):
        counts = arrays[key]
        if gate is not None and problem.bound.of(variable).clamped is not None:
            counts = counts[..., ~_known_categories(problem, variable, gate)]
        if counts.min(initial=np.inf) < _FEWEST_ROWS * _weight_of_a_row(problem):
            return True
    return False


def _counts_of(problem: Problem, variable: Variable) -> list[tuple[Hashable, Variable | None]]:
    """Return the sums that count the rows of each repetition of a variable, and the label where it is only one."""
    choices = [
        [own.by for own in slot.gates]
        for node in problem.bound.nodes
        if isinstance(node, Variable)
        for slot in node.slots.values()
        if slot.node is variable and slot.gates
    ]
    found: list[tuple[Hashable, Variable | None]] = []
    for part in problem.compiled.parts.values():
        if (
            part.factor is None
            or part.stat is None
            or part.feature is None
            or part.feature.source is not None
        ):
            continue
        for gates in choices:
            present = [label for label in part.factor.labels if label in gates]
            if present and part.stat == together(label.name for label in present):
                found.append((part.key, present[0] if len(present) == 1 else None))
    return found


def _known_categories(problem: Problem, variable: Variable, gate: Variable) -> AnyArray:
    """Return in which categories of a gate every repetition of a variable is known, and so needs no rows."""
    known = problem.bound.of(variable).clamped
    assert known is not None
    places = {
        variable.plates.index(slot.expression.plate)
        for node in problem.bound.nodes
        if isinstance(node, Variable)
        for slot in node.slots.values()
        if slot.node is variable and slot.index is gate and isinstance(slot.expression, Indexed)
    }
    if len(places) != 1:
        return np.zeros(gate.dimension or 1, dtype=bool)
    others = tuple(i for i in range(known.is_known.ndim) if i not in places)
    return np.asarray(known.is_known.all(axis=others))


def _weight_of_a_row(problem: Problem) -> float:
    """Return 1, or the largest weight if all are smaller: normalised weights make no row less of a row."""
    weights = problem.bound.row_weights
    return 1.0 if weights is None else min(1.0, largest_of(weights))


def _is_singular(
    problem: Problem, variable: Variable, q: Mapping[Variable, Any], arrays: Mapping[Hashable, Array]
) -> bool:
    """Whether a flat precision is so large that the data's rounding decides it."""
    if variable.floor is not None:
        return False
    for node in problem.bound.observed:
        slots = [slot for slot in node.slots.values() if slot.node is variable]
        statistic = next((s for slot in slots for s in _precisions(slot)), None)
        if statistic is None:
            continue
        precision = arrays[StatisticKey(variable.name, statistic)]
        narrowest = _sizes(problem, variable, node, q) * _NARROWEST
        known = problem.bound.of(variable).clamped
        if known is not None:
            narrowest = np.broadcast_to(narrowest, known.is_known.shape)[~known.is_known]
            precision = precision[~known.is_known]
        if node.value_rank == 0:
            return bool(np.any(np.sqrt(precision) * narrowest > 1))
        most = _MOST_COLLINEAR_WITH_GAPS if problem.bound.of(node).entries is not None else _MOST_COLLINEAR
        return _is_matrix_singular(precision, narrowest[..., None], most)
    return False


def _sizes(problem: Problem, variable: Variable, leaf: Variable, q: Mapping[Variable, Any]) -> Array:
    """Return the size of the numbers that each precision is about: of its component's location, or of all data."""
    size = problem.coordinates.size_of(leaf)
    largest = np.asarray(largest_of(problem.bound.values_of(leaf)) if size is None else np.max(size))
    location = leaf.slots["mean"].node if "mean" in leaf.slots else None
    if not isinstance(location, Variable) or location not in q or location.plates != variable.plates:
        return largest
    mean, reference = q[location].mean, problem.coordinates.of(location)
    mean = np.abs((mean[0] if isinstance(mean, tuple) else mean) + (0.0 if reference is None else reference))
    own = mean.max(axis=-1) if leaf.value_rank else mean
    if variable.tied is not None:
        # one precision for all locations along the plate
        own = own.max(axis=-1)
    return np.maximum(own, _LEAST_SIZE * largest)


def _precisions(slot: Slot) -> list[str]:
    """Return the statistic of the precision in a slot, if it is one."""
    if slot.name == "precision":
        return ["x"]
    return ["precision"] if "precision" in slot.role.statistics else []


def _is_matrix_singular(precision: Array, narrowest: Array, most_collinear: float) -> bool:
    try:
        covariance = inverse(precision)
    except np.linalg.LinAlgError:
        return True
    given_others = np.diagonal(precision, axis1=-2, axis2=-1)
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    collinear = given_others * variances > most_collinear
    narrow = np.sqrt(np.maximum(variances, 0.0)) < narrowest
    return bool(np.any(collinear | narrow | ~np.isfinite(variances)))
