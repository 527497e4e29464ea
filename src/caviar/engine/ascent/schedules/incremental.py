"""Incremental: the globals are updated after each batch of rows, and the objective is still exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from ...._errors import ImproperError, ModelError, ParameterError
from ...rows.row_map import RowMap
from ..degeneracy import checked
from ..plain_states import (
    by_name,
    by_variable,
    objective_of,
    place_of,
    plain_objective,
    plain_place,
)
from ..problem import Problem
from ..schedule import Ascent, Beginning, StatedSchedule, settled
from ..state import (
    AscentState,
    HalfStep,
    Naturals,
    after_look,
    begin,
    extended,
    iterated,
    retold,
    update_locals,
    updated_from,
    watched,
    with_optimal_locals,
)
from ..status import Status

_MOST_BATCHES = 64
"""Batches whose sums are kept apart, so that memory does not grow with the rows."""

_LEAST_BYTES, _MOST_BYTES = 2**28, 2**31
"""Memory that sums of batches may take: as much as the data, and between these."""

_AHEAD = 0.45
"""Share of the way of the last pass that globals are carried on for the local factors of a batch; see the design."""


@dataclass(frozen=True)
class Incremental(StatedSchedule):
    r"""Update the globals after each batch of rows: memoized coordinate ascent with the exact ELBO.

    The sums of each batch are stored, and replaced when the batch is processed again:

    .. math:: S \leftarrow S - S_b^{\mathrm{old}} + S_b^{\mathrm{new}}

    The objective is the ELBO of all rows, with the local factors of each batch from its last update, so it never
    decreases. Globals are extrapolated along the change of the last pass if that does not lower the objective. A fit
    takes several times fewer passes than batch ascent, or about half as many with ``accelerate=False``. A last pass
    brings all local factors to their optimum. The stored sums of at most 64 batches take no more memory than the data,
    but up to 256 MB for small data, and at most 2 GB.

    Parameters
    ----------
    n_batches
        Number of batches, 2 to 64, with about equal numbers of rows from all parts of the table. Fewer are used if
        there are not enough blocks of rows, or the sums would take more memory than this.

    Raises
    ------
    ParameterError
        If the number is out of range.

    Notes
    -----
    Neal and Hinton (1998); Hughes and Sudderth, "Memoized online variational inference for Dirichlet process mixture
    models" (2013).

    Examples
    --------
    >>> import numpy as np, caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20_000, 2)) + 3 * rng.integers(0, 2, (20_000, 1))
    >>> model = cv.models.normal_wishart_mixture(2, 2)
    >>> posterior = model.fit({"x": X}, seed=0, schedule=cv.Incremental(8))
    >>> posterior.converged
    True
    """

    n_batches: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.n_batches, Integral) or not 2 <= self.n_batches <= _MOST_BATCHES:
            raise ParameterError(
                f"n_batches must be a whole number from 2 to {_MOST_BATCHES}; got {self.n_batches!r}"
            )

    def resolved(self, problem: Problem, n_rows: int, *, accelerate: bool) -> ByBatches:
        """Return the schedule with as many batches as memory allows.

        Raises
        ------
        ModelError
            If the objective might decrease, because local factors do not maximise it.
        """
        if not problem.rows.maximises:
            raise ModelError(
                "a link with method='expectation' needs schedule='batch' or 'stochastic': "
                "local factors from earlier globals would let the ELBO fall"
            )
        n_batches = max(2, min(self.n_batches, most_batches(problem, n_rows)))
        return ByBatches(n_batches, _AHEAD if accelerate else 0.0)


def most_batches(problem: Problem, n_rows: int) -> int:
    """Return the largest number of batches whose sums fit into memory; it depends on the data and the model.

    That is twice their sums, of each batch and of neighbours along a tree, and the globals of the last visit.
    """
    room = min(max(_LEAST_BYTES, n_rows * problem.bound.bytes_a_row), _MOST_BYTES)
    # a model of which all is known has no sums at all
    numbers = max(1, 2 * problem.rows.n_sums + problem.n_natural)
    return int(room // (8 * numbers))


@dataclass(frozen=True)
class Visit:
    """Where the globals were when a batch of the rows was visited."""

    problem: Problem
    natural: Naturals


@dataclass(frozen=True, kw_only=True)
class IncrementalState(AscentState):
    """Where incremental ascent is.

    Attributes
    ----------
    half
        What a pass over the rows needs of the globals, which are updated; None before the first visit.
    visits
        Number of a batch -> the last visit to it, where the globals are carried on ahead.
    """

    half: HalfStep | None = None
    visits: Mapping[int, Visit] = field(default_factory=dict)


@dataclass(frozen=True)
class ByBatches(Ascent[IncrementalState]):
    """Update the globals after each batch of rows.

    Attributes
    ----------
    n_batches
        Batches of the rows.
    ahead
        Share of the way of the last pass that globals are carried on for the local factors of a batch; 0 for none.
    """

    n_batches: int
    ahead: float = _AHEAD

    def at(self, place: AscentState) -> IncrementalState:
        """Return the state at a place whose sums are kept by batch."""
        return extended(IncrementalState, place)

    def init(self, beginning: Beginning[IncrementalState]) -> IncrementalState:
        """Return the state after a pass over the rows with the global factors of a start."""
        rows = replace(beginning.rows, n_batches=self.n_batches)
        return self.at(begin(beginning.problem, beginning.q, rows))

    def step(self, state: IncrementalState) -> IncrementalState:
        """Return the state after a visit to each batch."""
        now, n_batches = state, state.rows.n_batches_made
        for batch in range(n_batches):
            after = checked(now, partial(self._visited, batch=batch))
            if after is None:
                return replace(state, status=Status.COLLAPSED)
            now = after
            if now.status is not None:
                break
        return iterated(state, now, max(1, n_batches))

    def _visited(self, state: IncrementalState, batch: int) -> IncrementalState:
        half, visits = state.half, dict(state.visits)
        if half is None:
            _, state, half = updated_from(state)
        last_time = visits.get(batch)
        if self.ahead:
            visits[batch] = Visit(state.problem, state.natural)
        after, half = advance_by_batch(state, half, batch, last_time, self.ahead)
        return replace(after, half=half, visits=visits)

    def judged(self, before: IncrementalState, after: IncrementalState, tol: float) -> IncrementalState:
        """Return the state after an iteration, converged if its objective has settled."""
        return settled(after) if abs(after.change) < tol else after

    def finish(self, state: IncrementalState) -> AscentState:
        """Return the end of a fit: local factors that are those of earlier visits get their optimum."""
        if state.status not in (Status.CONVERGED, Status.MAX_ITER, Status.STOPPED):
            return state
        return retold(with_optimal_locals(state))

    def to_plain(self, state: IncrementalState) -> dict[str, Any]:
        """Return a state as values that a checkpoint holds."""
        # those from other reference points tell nothing any more
        visits = [
            [number, by_name(visit.natural)]
            for number, visit in state.visits.items()
            if visit.problem is state.problem
        ]
        half = None
        if state.half is not None:
            half = {**plain_objective(state.half.before), "slack": float(state.half.slack)}
        return {**plain_place(state), "half": half, "visits": visits}

    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> IncrementalState:
        """Return the state from these values."""
        state = IncrementalState(**place_of(document, problem, rows))
        visits = {
            int(number): Visit(state.problem, by_variable(natural, problem))
            for number, natural in document["visits"]
        }
        return replace(state, half=_half_of(document["half"], state), visits=visits)


def _half_of(document: Mapping[str, Any] | None, state: AscentState) -> HalfStep | None:
    if document is None:
        return None
    coefficients = state.problem.rows.coefficients(state.arrays)
    loss = state.problem.worst_loss(state.q, coefficients)
    return HalfStep(objective_of(document, state.problem), coefficients, loss, float(document["slack"]))


def advance_by_batch(
    state: IncrementalState, half: HalfStep, batch: int, last_time: Visit | None = None, ahead: float = _AHEAD
) -> tuple[IncrementalState, HalfStep]:
    """Return the state after the local factors of one batch of the rows, and then each global factor, were updated.

    The objective is that of all rows, the local factors of the other batches as their last pass left them; so it rises.

    Parameters
    ----------
    state, half
        With its globals updated.
    last_time
        The visit to this batch a pass ago, where moves beyond the updates are wanted. The sums of the
        batches are half a pass old on average, and so are the globals that follow from them. So the local factors are
        found for globals carried on by a share of the way that they have come since; where that lowers the objective,
        for the globals as they are.
    ahead
        That share.
    """
    if last_time is not None:
        further = _advanced_beyond(state, batch, last_time, ahead)
        if further is not None:
            return further
    _, after, half = updated_from(update_locals(state, half, batch))
    return after, half


@np.errstate(all="ignore")
def _advanced_beyond(
    state: IncrementalState, batch: int, last_time: Visit, ahead: float
) -> tuple[IncrementalState, HalfStep] | None:
    """Return the state after one batch, its local factors for globals further on; None if the objective falls."""
    problem = state.problem
    if last_time.problem is not problem or not state.natural or not last_time.natural:
        return None
    arrays = dict(state.arrays)
    try:
        for variable in problem.order:
            pairs = zip(state.natural[variable], last_time.natural[variable], strict=True)
            further = tuple(new + ahead * (new - old) for new, old in pairs)
            arrays.update(problem.statistics(variable, problem.factor(variable, further)))
    except ImproperError:
        return None
    look = state.rows.look(problem.rows.coefficients(arrays), state.warm, state.by_batch, batch)
    try:
        _, found, half = updated_from(after_look(state, look))
    except ImproperError:
        return None
    return (watched(found, found, half.before, half.slack), half) if found.elbo >= state.elbo else None
