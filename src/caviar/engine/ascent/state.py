"""States of a fit: global factors with the local factors at their optimum, and the plain step between two.

A state is a value: all that a pass leaves for the next one is a field of it. A step that is refused leaves
the state before as it was.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..._errors import ImproperError
from ..._typing import Array, Statistics
from ...language import Variable
from ...numerics.records import replaced
from ..local.kept import moved_to
from ..local.statistics import Coefficients
from ..rows.recentring import TOLERATED_LOSS
from ..rows.row_map import COLD, Look, RowMap, Warm
from ..rows.sums_by_batch import SumsByBatch
from .elbo import Objective
from .problem import Factors, Problem, statistics_of
from .status import Status

Naturals: TypeAlias = Mapping[Variable, Statistics]
"""Natural parameters of each global factor, also of one that is a point: those that it was made of."""

_EPS = float(np.finfo(float).eps)

ROUNDING = 1e-10
"""Fall of the objective, relative to the sum of its absolute terms, that counts as rounding."""

_MOST_HALVINGS = 16
"""Of a step that lowers the objective."""


@dataclass(frozen=True, kw_only=True)
class FitState:
    """The state of a fit between two steps, from which it continues to the same bits. Schedules extend it.

    Attributes
    ----------
    problem, q
        The global factors, and the problem whose reference points they are measured from.
    rows
        The map over the rows: where they are, and with which digits they are summed.
    natural
        Global variable -> the natural parameters that its factor was made of, also where that is a point: of all
        globals, or empty if those of any are not known, or were measured from other reference points.
    trace
        Objective at the start and after each iteration.
    change
        By how much the last iteration raised the objective, in nats a row.
    status
        Why no step follows; None if one may.
    n_updates
        Times that the globals were updated.
    """

    problem: Problem
    rows: RowMap
    q: Factors
    natural: Naturals = field(default_factory=dict)
    trace: tuple[float, ...]
    change: float = np.inf
    status: Status | None = None
    n_updates: int = 0

    @property
    def n_iter(self) -> int:
        """Iterations that are over."""
        return len(self.trace) - 1

    @property
    def per_row(self) -> float:
        """The divisor of changes of the objective: the weight of all rows, or 1 without rows."""
        return self.rows.total_weight if self.problem.bound.data_plate is not None else 1.0


@dataclass(frozen=True, kw_only=True)
class AscentState(FitState):
    """Global factors with the local factors at their optimum, and the objective of the two.

    Attributes
    ----------
    arrays
        Expected statistics of the globals, and sums over the rows.
    objective
        Of both, term by term.
    fell_at
        Which update lowered the objective, and by how much, if any did.
    warm
        Local factors of the last pass over the rows, where the next one starts from them.
    by_batch
        Sums of each batch of rows as its last pass left them, where these are kept apart.
    is_fresh
        Whether local factors restart from scratch in each pass, as far as the row model wants it and as long as that
        raises the objective.
    saddles
        Saddle points that were left behind.
    swaps
        Ends that were left behind since swaps of components led higher.
    renewals
        Times that rows with few responsibilities got other components since these led higher.
    rows_raced
        Rows that all passes of the race of its starts have gone through together.
    is_from_clusters
        Whether the fit began at clusters so plain that no other start was made.
    """

    arrays: Mapping[Hashable, Array]
    objective: Objective
    fell_at: str = ""
    warm: Warm = field(default_factory=dict)
    by_batch: SumsByBatch | None = None
    is_fresh: bool = True
    saddles: int = 0
    swaps: int = 0
    renewals: int = 0
    rows_raced: int = 0
    is_from_clusters: bool = False

    @property
    def elbo(self) -> float:
        """The objective."""
        return self.objective.value

    @property
    def restarts_cold(self) -> bool:
        """Whether the local factors restart from scratch in the next pass over the rows."""
        return self.is_fresh and self.problem.rows.begins_anew and bool(self.warm)


A = TypeVar("A", bound=AscentState)


def extended(kind: type[A], state: AscentState, **more: Any) -> A:
    """Return a state as that of a schedule: with what all have in common, and what this one remembers."""
    values = vars(state)
    return kind(**{name: values[name] for name in AscentState.__dataclass_fields__}, **more)


def iterated(before: FitState, after: A, n_updates: int = 1) -> A:
    """Return the state after an iteration, which is added to its trace."""
    elbo = after.elbo
    return replaced(
        after,
        trace=(*before.trace, elbo),
        change=(elbo - before.trace[-1]) / before.per_row,
        n_updates=before.n_updates + n_updates,
    )


def retold(state: A) -> A:
    """Return the state with its objective at the end of its trace, in the place of the one before."""
    return replaced(state, trace=(*state.trace[:-1], state.elbo))


@dataclass(frozen=True)
class HalfStep:
    """Of a state whose globals were updated: what a pass over the rows needs of it.

    Attributes
    ----------
    before
        The objective before the update.
    coefficients
        What the rows need of the globals.
    loss
        The largest error (nats) that a logit has with them.
    slack
        What is lost in rounding, and counts as no fall.
    """

    before: Objective
    coefficients: Coefficients
    loss: float
    slack: float


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


@np.errstate(all="ignore")
def begin(problem: Problem, q: Factors, rows: RowMap, warm: Warm = COLD) -> AscentState:
    """Return the state at a start: a pass over the rows with the given global factors."""
    problem, q, arrays, coefficients = ready(problem, q, statistics_of(problem, q), may_return=True)
    rows = rows.at(problem.rows)
    return begun(problem, q, arrays, rows, rows.look(coefficients, warm))


def begun(
    problem: Problem, q: Factors, arrays: dict[Hashable, Array], rows: RowMap, look: Look
) -> AscentState:
    """Return the state after a pass over the rows with the given global factors."""
    arrays.update(look.summary.parts)
    objective = Objective(problem, q, arrays, look.summary)
    return AscentState(
        problem=problem,
        rows=rows,
        q=q,
        trace=(objective.value,),
        arrays=arrays,
        objective=objective,
        warm=look.warm,
        by_batch=look.by_batch,
    )


def _completed(
    state: A,
    problem: Problem,
    q: Factors,
    arrays: dict[Hashable, Array],
    coefficients: Coefficients,
    natural: Naturals,
) -> A:
    """Return the state at other global factors after a pass over all rows; the objective is computed anew."""
    rows = state.rows.at(problem.rows)
    look = rows.look(coefficients, state.warm)
    arrays.update(look.summary.parts)
    objective = Objective(problem, q, arrays, look.summary)
    return replaced(
        state,
        problem=problem,
        rows=rows,
        q=q,
        arrays=arrays,
        objective=objective,
        natural=natural,
        warm=look.warm,
        by_batch=look.by_batch,
    )


def slack_of(state: AscentState) -> float:
    """Return by how much rounding alone may lower the objective in an update of the globals."""
    if state.rows.is_single:
        # whether the objective fell is for the passes in float64 to tell, with which a fit ends
        return np.inf
    # an error of a logit that is tolerated is one of the objective, times the rows
    return TOLERATED_LOSS * state.rows.total_weight if state.problem.recentrings else 0.0


def updated_from(state: A, updated: A | None = None) -> tuple[A, A, HalfStep]:
    """Return the state that the globals were updated from, the state after that, and what a look needs of it.

    Each global factor is updated in turn, the sums over rows as they are; these are taken again first where they have
    lost their digits.

    Parameters
    ----------
    updated
        The state with its globals updated, where that is known.
    """
    slack, before, after = slack_of(state), state, updated
    try:
        after = after or updated_globals(before)
        coefficients, loss = _coefficients(after)
    except ImproperError:
        after, coefficients, loss = None, None, np.inf
    if loss > TOLERATED_LOSS:
        # sums over a component that shrank at once have no digits left: take them again, from its own mean
        again = _recentred(state)
        if again is not None or after is None:
            before = again or state
            after = updated_globals(before)
            coefficients, loss = _coefficients(after)
    assert after is not None
    assert coefficients is not None
    return before, after, HalfStep(before.objective, coefficients, loss, slack)


def after_look(state: A, look: Look) -> A:
    """Return the state with the local factors that a look has found, the globals as they are."""
    arrays = {**state.arrays, **look.summary.parts}
    objective = state.objective.after_look(arrays, look.summary)
    return replaced(state, arrays=arrays, objective=objective, warm=look.warm, by_batch=look.by_batch)


def with_optimal_locals(state: A) -> A:
    """Return the state with the local factors of all rows at their optimum, the globals as they are."""
    coefficients = state.problem.rows.coefficients(state.arrays)
    return _completed(state, state.problem, state.q, dict(state.arrays), coefficients, state.natural)


def joined(problem: Problem, natural: Naturals) -> Array:
    """Return the natural parameters of all global factors in one array, (P,)."""
    return np.concatenate([array.ravel() for variable in problem.order for array in natural[variable]])


def n_natural(problem: Problem, natural: Naturals) -> int:
    """Return the number of natural parameters of all global factors, P."""
    return sum(array.size for variable in problem.order for array in natural[variable])


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


def expected_of(problem: Problem, like: Naturals, arrays: Mapping[Hashable, Array], n_natural: int) -> Array:
    """Return the expected statistics of all global factors in one array, in the places of their P parameters, (P,)."""
    found = np.concatenate([arrays[key].ravel() for key in problem.keys_in_order])
    if len(found) == n_natural:
        return found
    shapes = [eta.shape for variable in problem.order for eta in like[variable]]
    several = zip(problem.keys_in_order, shapes, strict=True)
    return np.concatenate([np.broadcast_to(arrays[key], shape).ravel() for key, shape in several])


@np.errstate(all="ignore")
def at_natural(state: A, natural: Array) -> A | None:
    """Return the state at other natural parameters of the globals, (P,); None if they are those of no factors.

    Those of kept local factors, from which the pass over the rows then starts, may follow. None, too, where digits
    would be lost.
    """
    problem, arrays = state.problem, dict(state.arrays)
    # those that are held while others are updated stay
    naturals, q = apart(problem, state.natural, natural), dict(state.q)
    movable = problem.rows.apart.movable
    try:
        for variable in problem.order:
            q[variable] = problem.factor(variable, naturals[variable])
            problem.tell(arrays, variable, q[variable])
        if movable and len(natural) > (n := n_natural(problem, state.natural)):
            state = replaced(state, warm=moved_to(movable, state.warm, natural[n:]))
    except ImproperError:
        return None
    coefficients = problem.rows.coefficients(arrays)
    if not problem.worst_loss(q, coefficients) <= TOLERATED_LOSS:
        return None
    return _completed(state, problem, q, arrays, coefficients, naturals)


def _coefficients(state: AscentState) -> tuple[Coefficients, float]:
    """Return what a pass needs of a state, and the largest error (nats) that a logit has in it."""
    coefficients = state.problem.rows.coefficients(state.arrays)
    return coefficients, state.problem.worst_loss(state.q, coefficients)


def _recentred(state: A) -> A | None:
    """Return the same factors with sums from each component's own mean; None if they are that already."""
    problem, q = state.problem.centred_on(state.arrays, state.q)
    if problem is state.problem:
        return None
    arrays = statistics_of(problem, q)
    return _completed(replaced(state, fell_at=""), problem, q, arrays, problem.rows.coefficients(arrays), {})


@np.errstate(all="ignore")
def updated_globals(state: A) -> A:
    """Return the state with each global factor updated in turn, the sums over rows as they are."""
    arrays = dict(state.arrays)
    natural, factors = state.problem.update_all(arrays)
    q = {**state.q, **factors}
    objective = state.objective.updated(q, arrays)
    return replaced(state, q=q, arrays=arrays, objective=objective, fell_at="", natural=natural)


def _in_turn(before: Objective, after: Objective) -> Iterator[tuple[str, Objective]]:
    """Yield each global's name with the objective after its update, the others as they were at its turn."""
    problem, q, arrays = after.problem, dict(before.q), dict(before.arrays)
    if not q:
        # of a checkpoint: the factors before the update are not known
        yield ",".join(variable.name for variable in problem.order), after
        return
    for variable in problem.order:
        q[variable] = after.q[variable]
        problem.tell(arrays, variable, q[variable])
        yield variable.name, before.updated(dict(q), dict(arrays))


def advance(state: A) -> A:
    """Return the state after each global factor was updated in turn, and the local factors in a pass over the rows."""
    _, after, half = updated_from(state)
    return update_locals(after, half)


def update_locals(state: A, half: HalfStep, batch: int | None = None) -> A:
    """Return the state with the local factors (of one batch) at their optimum; a fall by rounding is none.

    Where reference points move, the objective is computed anew; the one before may have been inexact.
    """
    slack, moved = half.slack, None
    if not half.loss <= TOLERATED_LOSS:
        moved = _settled(state.problem, state.q, dict(state.arrays), half.coefficients)
    if moved is None or moved[0] is state.problem:
        found = _looked(state, half.coefficients, batch)
    else:
        found = _completed(state, *moved, {})
        slack = max(slack, half.loss * state.rows.total_weight)
    return watched(found, state, half.before, max(slack, half.slack))


def watched(found: A, updated: A, before: Objective, slack: float) -> A:
    """Return a state after an iteration, with the name of the update that lowered the objective, if one did.

    A fall by rounding is none. Which update it was is asked only where the whole iteration has lowered the objective:
    near an optimum no other can make up for what one of them loses.

    Parameters
    ----------
    updated
        Between the update of the globals, and that of the local factors.
    before
        The objective before the iteration.
    slack
        What is lost in rounding, and counts as no fall.
    """
    start, maximises = before, updated.problem.rows.maximises
    end = found if maximises else updated
    # a NaN is not a fall
    fall = before.value - end.objective.value
    if not (fall > ROUNDING * abs(before.value) and fall > ROUNDING * end.objective.scale + slack):
        return found
    objectives = [*_in_turn(before, updated.objective)]
    if maximises:
        names = ",".join(factor.name for factor in found.problem.factors)
        objectives.append((names, found.objective))
    for name, objective in objectives:
        fall = before.value - objective.value
        if name is objectives[-1][0] and maximises:
            # the entropy of the labels has no more digits than the terms that it was found beside
            size = start.scale
            slack = max(slack, 4 * _EPS * size if np.isfinite(size) else 0.0)
        if fall > ROUNDING * objective.scale + slack and fall > objective.rounding():
            return replaced(found, fell_at=f"'{name}' lowered the objective by {fall:.3g}")
        before = objective
    return found


def held_back(before: A, updated: A, after: A) -> A:
    """Return the state after an iteration, or after a part of the way where that raises the objective by more.

    If local factors do not maximise the objective, an iteration may go too far: then it raises the objective by less
    than half of what the update of the globals did with the local factors as they were, or lowers it. The way is along
    natural parameters, and the objective rises at its beginning.

    Parameters
    ----------
    before, updated, after
        The states before the iteration, with the globals updated, and with the local factors updated, too.
    """
    problem = before.problem
    if (
        problem.rows.maximises
        or after.problem is not problem
        or after.elbo >= 0.5 * (before.elbo + updated.elbo)
    ):
        return after
    begin_at = _naturals(before, after.natural)
    if begin_at is None:
        return after
    start, end = joined(problem, begin_at), joined(problem, after.natural)
    # labels that are ruled out stay so
    way = np.where(start == end, 0.0, end - start)
    best = after if after.elbo >= before.elbo else before
    for halvings in range(1, _MOST_HALVINGS):
        found = at_natural(after, start + 0.5**halvings * way)
        if found is not None and found.elbo > best.elbo:
            best = found
        elif best is not before:
            break
    return best


def _naturals(state: AscentState, like: Naturals) -> Naturals | None:
    """Return the natural parameters of all globals, shaped like others; None if those of any are not known."""
    if state.natural or not like:
        return state.natural or None
    found: dict[Variable, Statistics] = {}
    for variable, own in like.items():
        learnt = state.q[variable].learnt
        natural = () if learnt is None else learnt.natural
        if [eta.shape for eta in natural] != [eta.shape for eta in own]:
            return None
        found[variable] = natural
    return found


def _looked(state: A, coefficients: Coefficients, batch: int | None) -> A:
    """Return the state after a pass over the rows (of one batch), from scratch as long as that raises the objective.

    Factors that go on from those of the last pass keep to what they preferred when the globals were others.
    """
    if state.restarts_cold:
        found = after_look(state, state.rows.look(coefficients, _cold(state, batch), state.by_batch, batch))
        if not found.elbo < state.elbo:
            return found
        state = replaced(state, is_fresh=False)
    return after_look(state, state.rows.look(coefficients, state.warm, state.by_batch, batch))


def _cold(state: AscentState, batch: int | None) -> Warm:
    """Return the local factors of a state without those of a batch, or of any."""
    if batch is None:
        return COLD
    own = {chunk.number for chunk in state.rows.chunks_of(batch)}
    return {number: factors for number, factors in state.warm.items() if number not in own}
