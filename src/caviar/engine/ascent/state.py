"""States of the loop: global factors with the local factors at their optimum, and the plain step between two."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ..._errors import ImproperError
from ..._typing import Array, Statistics
from ...language import Variable
from ..design.keys import StatisticKey
from ..local.statistics import Coefficients
from ..rows.recentring import TOLERATED_LOSS
from ..rows.row_map import Passes
from . import acceleration
from .acceleration import Memory, Place, accepted, proposal, refused, seen
from .elbo import Objective
from .problem import Factors, Problem, statistics_of

__all__ = [
    "ROUNDING",
    "Naturals",
    "State",
    "Updated",
    "Visit",
    "advance",
    "advance_by_batch",
    "apart",
    "at_natural",
    "begin",
    "expected_of",
    "joined",
    "ready",
    "updated",
    "updated_globals",
    "with_optimal_locals",
]


Naturals: TypeAlias = Mapping[Variable, Statistics]
"""Natural parameters of each global factor, also of one that is a point: those that it was made of."""

_AHEAD = 0.45
"""Share of the way of the last pass that globals are carried on for the local factors of a batch; see the design."""

ROUNDING = 1e-10
"""Fall of the objective, relative to the sum of its absolute terms, that counts as rounding."""


@dataclass(frozen=True)
class State:
    """Global factors, with the local factors at their optimum, and the objective of the two.

    Attributes
    ----------
    natural
        Global variable -> the natural parameters that its factor was made of, also where that is a point; empty if
        they are not known, or were measured from other reference points.
    """

    problem: Problem
    q: Factors
    arrays: Mapping[Hashable, Array]
    objective: Objective
    fell_at: str = ""
    natural: Mapping[Variable, Statistics] = field(default_factory=dict)

    @property
    def elbo(self) -> float:
        """The objective."""
        return self.objective.value


def ready(
    problem: Problem, q: Factors, arrays: dict[Hashable, Array], *, may_return: bool = False
) -> tuple[Problem, Factors, dict[Hashable, Array], Coefficients]:
    """Return what a pass over the rows needs, measured from centres where digits would be lost otherwise."""
    return _settled(problem, q, arrays, problem.rows.coefficients(arrays), may_return=may_return)


def _settled(
    problem: Problem,
    q: Factors,
    arrays: dict[Hashable, Array],
    coefficients: Coefficients,
    *,
    may_return: bool = False,
) -> tuple[Problem, Factors, dict[Hashable, Array], Coefficients]:
    moved, q = problem.recentred(q, coefficients, may_return=may_return)
    if moved is not problem:
        arrays = statistics_of(moved, q)
        coefficients = moved.rows.coefficients(arrays)
    return moved, q, arrays, coefficients


def begin(problem: Problem, q: Factors, passes: Passes) -> State:
    """Return the state at a start: a pass over the rows with the given global factors."""
    problem, q, arrays, coefficients = ready(problem, q, statistics_of(problem, q), may_return=True)
    return _complete(problem, q, arrays, coefficients, passes)


def _complete(
    problem: Problem, q: Factors, arrays: dict[Hashable, Array], coefficients: Coefficients, passes: Passes
) -> State:
    """Return the state of global factors after a pass over the rows."""
    summary = passes.summarize(problem.rows, coefficients)
    arrays.update(summary.parts)
    objective = Objective(problem)
    objective.set_all(q, arrays, summary)
    return State(problem, q, arrays, objective)


def advance(
    state: State, passes: Passes, memory: Memory | None = None, change_per_row: float = np.inf
) -> tuple[State, Memory | None]:
    """Return the state after each global factor was updated in turn, and the local factors in a pass.

    With a ``memory`` of the moves before, the globals may go further than to their updates, where that raises the
    objective by more than these do before the pass: so it rises in each step, whatever is proposed.
    """
    step = updated(state, passes)
    if memory is not None:
        further, memory = _further(step.before, step.after, passes, memory, change_per_row)
        if further is not None:
            return further, memory
    return _update_locals(step, passes), memory


@dataclass(frozen=True)
class Updated:
    """A state whose globals were updated, and what a pass needs of them; what is lost in rounding counts as no fall."""

    before: State
    after: State
    coefficients: Coefficients
    loss: float
    slack: float


def updated(state: State, passes: Passes) -> Updated:
    """Return the state after each global factor was updated in turn, the sums over rows as they are."""
    # an error of a logit that is tolerated is one of the objective, times the rows
    slack = TOLERATED_LOSS * passes.source.total_weight if state.problem.recentrings else 0.0
    if passes.is_rough:
        # whether the objective fell is for the passes in float64 to tell, with which a fit ends
        slack = np.inf
    before = state
    try:
        after = _update_globals(before, slack)
        coefficients, loss = _coefficients(after)
    except ImproperError:
        after, coefficients, loss = None, None, np.inf
    if loss > TOLERATED_LOSS:
        # sums over a component that shrank at once have no digits left: take them again, from its own mean
        again = _recentred(state, passes)
        if again is not None or after is None:
            before = again or state
            after = _update_globals(before, slack)
            coefficients, loss = _coefficients(after)
    assert after is not None
    assert coefficients is not None
    return Updated(before, after, coefficients, loss, slack)


@dataclass(frozen=True)
class Visit:
    """Where the globals stood when a batch of the rows was visited."""

    problem: Problem
    natural: Mapping[Variable, Statistics]


def advance_by_batch(now: Updated, passes: Passes, batch: int, last_time: Visit | None = None) -> Updated:
    """Return the state after the local factors of one batch of the rows, and then each global factor, were updated.

    The objective is that of all rows, the local factors of the other batches as their last pass left them; so it rises.

    Parameters
    ----------
    last_time
        The visit to this batch a pass ago, where moves beyond the updates are wanted. The sums of the
        batches are half a pass old on average, and so are the globals that follow from them. So the local factors are
        found for globals carried on by a share of the way that they have come since; where that lowers the objective,
        for the globals as they are.
    """
    if last_time is not None:
        further = _advance_beyond(now, passes, batch, last_time)
        if further is not None:
            return further
    return updated(_update_locals(now, passes, batch), passes)


def _advance_beyond(now: Updated, passes: Passes, batch: int, last_time: Visit) -> Updated | None:
    """Return the state after one batch, its local factors for globals further on; None if the objective falls."""
    state, problem = now.after, now.after.problem
    if last_time.problem is not problem or not state.natural or not last_time.natural:
        return None
    arrays = dict(state.arrays)
    try:
        for variable in problem.order:
            pairs = zip(state.natural[variable], last_time.natural[variable], strict=True)
            further = tuple(new + _AHEAD * (new - old) for new, old in pairs)
            arrays.update(problem.statistics(variable, problem.factor(variable, further)))
    except ImproperError:
        return None
    held = passes.held(batch)
    summary = passes.summarize(problem.rows, problem.rows.coefficients(arrays), batch)
    arrays = {**state.arrays, **summary.parts}
    objective = state.objective.copy()
    objective.set_rows(arrays, summary)
    try:
        found = updated(State(problem, state.q, arrays, objective, state.fell_at, state.natural), passes)
    except ImproperError:
        found = None
    if found is not None and found.after.elbo >= state.elbo:
        return found
    passes.put_back(held)
    return None


def with_optimal_locals(state: State, passes: Passes) -> State:
    """Return the state with the local factors of all rows at their optimum, the globals as they are."""
    found = _complete(
        state.problem, state.q, dict(state.arrays), state.problem.rows.coefficients(state.arrays), passes
    )
    return replace(found, natural=state.natural, fell_at=state.fell_at)


def _further(
    state: State, after: State, passes: Passes, memory: Memory, change_per_row: float
) -> tuple[State | None, Memory]:
    """Return the state where a move beyond the updated globals ends, None if that is no better; and the memory."""
    place, update = _place(state), _place(after)
    if place is None or update is None or after.problem is not state.problem:
        return None, Memory()
    memory, natural = proposal(seen(memory, place, update), change_per_row)
    if natural is None:
        return None, acceleration.updated(memory)
    found = _moved(after, natural, passes)
    return found, refused(memory) if found is None else accepted(memory)


def _place(state: State) -> Place | None:
    """Return where the global factors of a state stand; None if that is not known, or not finite."""
    if not state.natural:
        return None
    place = Place(
        joined(state.problem, state.natural), expected_of(state.problem, state.natural, state.arrays)
    )
    # labels that are ruled out have the natural parameter minus infinity
    is_finite = np.isfinite(place.natural).all() and np.isfinite(place.expected).all()
    return place if is_finite else None


def joined(problem: Problem, natural: Naturals) -> Array:
    """Return the natural parameters of all global factors in one array, (P,)."""
    return np.concatenate([array.ravel() for variable in problem.order for array in natural[variable]])


def apart(problem: Problem, like: Naturals, natural: Array) -> dict[Variable, Statistics]:
    """Return the natural parameters of each global factor, shaped like others, from those of all, (P,)."""
    naturals, start = {}, 0
    for variable in problem.order:
        parts = []
        for array in like[variable]:
            parts.append(natural[start : start + array.size].reshape(array.shape))
            start += array.size
        naturals[variable] = tuple(parts)
    return naturals


def expected_of(problem: Problem, like: Naturals, arrays: Mapping[Hashable, Array]) -> Array:
    """Return the expected statistics of all global factors in one array, in the places of their parameters, (P,)."""
    keys = [
        StatisticKey(variable.name, name) for variable in problem.order for name in variable.family.statistics
    ]
    shapes = [array.shape for variable in problem.order for array in like[variable]]
    pairs = zip(keys, shapes, strict=True)
    return np.concatenate([_shaped(arrays[key], shape).ravel() for key, shape in pairs])


def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array of a shape: itself, mostly, for broadcasting takes longer than what is done with it."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def at_natural(state: State, natural: Array, passes: Passes) -> State | None:
    """Return the state at other natural parameters of the globals, (P,); None if they are those of no factors.

    None, too, where digits would be lost.
    """
    problem, arrays = state.problem, dict(state.arrays)
    naturals, q = apart(problem, state.natural, natural), {}
    try:
        for variable in problem.order:
            q[variable] = problem.factor(variable, naturals[variable])
            arrays.update(problem.statistics(variable, q[variable]))
    except ImproperError:
        return None
    coefficients = problem.rows.coefficients(arrays)
    if not problem.worst_loss(q, coefficients) <= TOLERATED_LOSS:
        return None
    return replace(
        _complete(problem, q, arrays, coefficients, passes), natural=naturals, fell_at=state.fell_at
    )


def _moved(after: State, natural: Array, passes: Passes) -> State | None:
    """Return the state at other natural parameters than the updated ones; None if its objective is no higher.

    Local factors that a pass would start from are then as they were.
    """
    before = passes.carried
    found = at_natural(after, natural, passes)
    if found is not None and found.elbo >= after.elbo:
        return found
    passes.carried = before
    return None


def _coefficients(state: State) -> tuple[Coefficients, float]:
    """Return what a pass needs of a state, and the largest error (nats) that a logit has in it."""
    coefficients = state.problem.rows.coefficients(state.arrays)
    return coefficients, state.problem.worst_loss(state.q, coefficients)


def _recentred(state: State, passes: Passes) -> State | None:
    """Return the same factors with sums from each component's own mean; None if they are that already."""
    problem, q = state.problem.centred_on(state.arrays, state.q)
    if problem is state.problem:
        return None
    arrays = statistics_of(problem, q)
    return _complete(problem, q, arrays, problem.rows.coefficients(arrays), passes)


def updated_globals(state: State) -> State:
    """Return the state with each global factor updated in turn, the sums over rows as they are."""
    return _update_globals(state, 0.0)


def _update_globals(state: State, slack: float) -> State:
    """Return the state with each global factor updated in turn, the sums over rows as they are.

    A fall of the objective by ``slack`` or by rounding is none.
    """
    problem, objective = state.problem, state.objective.copy()
    q, arrays = dict(state.q), dict(state.arrays)
    natural: dict[Variable, Statistics] = {}
    value, fell_at = objective.value, ""
    for variable in problem.order:
        natural[variable], q[variable] = problem.update_with_natural(variable, arrays)
        arrays.update(problem.statistics(variable, q[variable]))
        before, value = value, objective.set_factor(variable, q[variable], arrays)
        if value < before and value < before - ROUNDING * objective.scale - slack:
            fell_at = fell_at or _fall(variable.name, before - value)
    return State(problem, q, arrays, objective, fell_at, natural)


def _fall(name: str, amount: float) -> str:
    return f"'{name}' lowered the objective by {amount:.3g}"


def _update_locals(step: Updated, passes: Passes, batch: int | None = None) -> State:
    """Return the state with the local factors (of one batch) at their optimum; a fall by rounding is none.

    Where reference points move, the objective is computed anew; the one before may have been inexact.
    """
    state = step.after
    # the entropy of the labels has no more digits than the terms that it was found beside
    size = step.before.objective.scale
    slack = max(step.slack, 4 * np.finfo(float).eps * size if np.isfinite(size) else 0.0)
    problem, q, arrays, coefficients = _settled(state.problem, state.q, dict(state.arrays), step.coefficients)
    before, fell_at = state.elbo, state.fell_at
    if problem is state.problem:
        objective = _anew(state, coefficients, passes, batch, arrays)
        if objective is None:
            summary = passes.summarize(problem.rows, coefficients, batch)
            arrays.update(summary.parts)
            objective = state.objective
            objective.set_rows(arrays, summary)
    else:
        objective = _complete(problem, q, arrays, coefficients, passes).objective
        slack = max(slack, step.loss * passes.source.total_weight)
    if objective.value < before - ROUNDING * objective.scale - slack:
        names = ",".join(factor.name for factor in problem.factors)
        fell_at = fell_at or _fall(names, before - objective.value)
    natural = state.natural if problem is state.problem else {}
    return State(problem, q, arrays, objective, fell_at, natural)


def _anew(
    state: State, coefficients: Coefficients, passes: Passes, batch: int | None, arrays: dict[Hashable, Array]
) -> Objective | None:
    """Return the objective after a pass whose local factors began anew, and update ``arrays``; None if it is lower.

    Factors that go on from those of the last pass keep to what they preferred when the globals were others.
    """
    if not passes.begins_anew(state.problem.rows):
        return None
    held = passes.held(batch)
    summary = passes.summarize(state.problem.rows, coefficients, batch, anew=True)
    found, objective = {**arrays, **summary.parts}, state.objective.copy()
    objective.set_rows(found, summary)
    if objective.value < state.elbo:
        passes.go_on_from(held)
        return None
    arrays.update(found)
    return objective
