"""The ascent of many groups: the step and the moves of the batch schedule, judged group by group.

Groups that have converged leave the batch. A group that needs more, such as its own reference points, or whose data
are refused, gets a single fit, which says why.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray, Array, Statistics
from ...language import Variable
from ...numerics.cached import cached_property
from ...numerics.records import replaced
from ..ascent.degeneracy import has_collapsed
from ..ascent.problem import Problem
from ..ascent.schedules.moves.acceleration import most_of_a_sweep
from ..ascent.status import Status
from ..rows.recentring import TOLERATED_LOSS
from .moves import GroupedMemory, gain_of_secant, judged, proposal
from .problem import GroupedProblem

_SHARE, _FEW, _SPENT = 1.0, 256, 0.6
"""Groups that have ended are taken out of the arrays where those that go on are fewer, in this share of them. Up to so
few groups that have ended it is the last share, because it would cost more than it saves."""

_SHARED, _LARGE = 1.0, 2_000
"""The same of few groups that share their rows, and have more parameters than this; others are left in the arrays.

Their rows are not looked at any more, so that only their updates are left, which a few iterations must repay.
"""

_SPARED = 2**16
"""Numbers of the data of groups that have ended, below which they stay in the arrays: to take them out costs more."""

_COPIED = 0.7
"""Share of the groups with rows of their own up to which only theirs are looked at, which copies these rows."""

_SAFE = 0.5
"""What a secant move may be foreseen to gain, in what it must not gain: where an ascent is slow it gains more."""

GOES_ON: Any = None
"""Status of a group that has not ended."""

_FALL = 1e-8
"""Fall of an objective, relative to its size and to one nat, that counts as rounding."""


@dataclass(frozen=True, eq=False)
class GroupedState:
    """Where groups are between two steps.

    Attributes
    ----------
    problem
        Of the groups.
    places
        Which groups they are, (G,), in the order of those that the ascent began with.
    natural
        Natural parameters that the global factors were made of, by variable; empty at a start.
    arrays
        Expected statistics and sums over rows.
    own_entropy
        What the global factors alone add to the objective of each group, (G,).
    sums, entropy
        Of the last pass over the rows: R T', (G, K, F), and the entropy of the labels, (G,).
    elbo, change
        Objective of each group, and by how much the last step raised it, in nats a row, (G,).
    memory
        Of the moves beyond the updates; None before the first step.
    ended
        Why a group takes no further step, (G,); None where it may.
    n_iter
        Steps that each group has made, (G,).
    n_plain
        Steps at first in which globals are not moved beyond their updates.
    """

    problem: GroupedProblem
    places: AnyArray
    natural: Mapping[Variable, Statistics]
    arrays: Mapping[Hashable, Array]
    own_entropy: Array
    sums: Array | None
    entropy: Array
    elbo: Array
    change: Array
    memory: GroupedMemory | None
    ended: AnyArray
    n_iter: AnyArray
    n_plain: float = 0

    def taken(self, groups: AnyArray) -> GroupedState:
        """Return the state of some groups, given by their numbers."""
        problem = self.problem.taken(groups)
        pairs = zip(self.problem.problem.order, problem.problem.order, strict=True)
        natural, arrays = {}, {}
        for other, own in pairs:
            natural[own] = tuple([array[groups] for array in self.natural[other]])
            expected = [array[groups] for array in self.expected[other]]
            arrays |= zip(problem.problem.keys[own], expected, strict=True)
        sums = None if self.sums is None else self.sums[groups]
        return replaced(
            self,
            problem=problem,
            places=self.places[groups],
            natural=natural,
            arrays={**arrays, **problem.parts(sums)},
            own_entropy=self.own_entropy[groups],
            sums=sums,
            entropy=self.entropy[groups],
            elbo=self.elbo[groups],
            change=self.change[groups],
            memory=None if self.memory is None else self.memory.taken(groups),
            ended=self.ended[groups],
            n_iter=self.n_iter[groups],
        )

    @property
    def goes_on(self) -> AnyArray:
        """Which groups may take a further step, (G,)."""
        return np.equal(self.ended, GOES_ON)

    def looks_on(self, goes_on: AnyArray) -> AnyArray | None:
        """Return the numbers of the groups whose rows have to be looked at: those that go on.

        None for all of them, as where nearly all go on and each has rows of its own, which would be copied.

        Parameters
        ----------
        goes_on
            Which groups go on, (G,).
        """
        share = 1.0 if self.problem.groups.is_shared else _COPIED
        left = goes_on.nonzero()[0]
        return None if self.sums is None or left.size >= share * goes_on.size else left

    @cached_property
    def vector(self) -> Array:
        """Natural parameters of all global factors, (G, P)."""
        return self.problem.vector(self.natural)

    @cached_property
    def expected(self) -> dict[Variable, Statistics]:
        """Expected statistics of the global factors, in the shapes of their natural parameters."""
        keys = self.problem.problem.keys
        return {
            variable: tuple(
                [
                    own if (own := self.arrays[key]).shape == eta.shape else np.broadcast_to(own, eta.shape)
                    for key, eta in zip(keys[variable], natural, strict=True)
                ]
            )
            for variable, natural in self.natural.items()
        }

    @cached_property
    def place(self) -> Array:
        """Natural parameters and expected statistics, (2, G, P)."""
        return np.stack([self.vector, self.problem.vector(self.expected)])


def looked(state: GroupedState, groups: AnyArray | None = None) -> GroupedState:
    """Return the state after a pass over the rows with the present global factors.

    Parameters
    ----------
    groups
        Numbers of the groups that are looked at; the sums of the others are theirs already. All by default.
    """
    problem, arrays = state.problem, dict(state.arrays)
    sums, entropy = state.sums, np.zeros(problem.size)
    if problem.has_labels:
        matrices = problem.matrices(arrays)
        if groups is None or sums is None:
            sums, entropy = problem.rows.look(matrices)
        else:
            sums, entropy = sums.copy(), state.entropy.copy()
            sums[groups], entropy[groups] = problem.rows.look(matrices[groups], groups)
    arrays.update(problem.parts(sums))
    elbo = problem.objective(arrays, entropy) + state.own_entropy
    return replaced(state, arrays=arrays, sums=sums, entropy=entropy, elbo=elbo)


def _updated(state: GroupedState) -> GroupedState:
    """Return the state with each global factor updated in turn, the sums over rows as they are."""
    arrays = dict(state.arrays)
    natural, q = state.problem.problem.update_all(arrays)
    own = state.problem.own_entropy(q, arrays)
    return replaced(state, arrays=arrays, own_entropy=own, natural=natural)


def moved_to(state: GroupedState, vector: Array, tried: AnyArray) -> tuple[GroupedState, AnyArray]:
    """Return the state with some groups at other natural parameters, (G, P), before a pass over the rows.

    Beside it, which of these groups, (G,), are there: factors of the others would be improper.
    """
    problem, arrays, is_moved = state.problem.problem, dict(state.arrays), tried
    moved, natural, q = state.problem.apart(vector, state.natural), {}, {}
    for variable, own in state.natural.items():
        while True:
            natural[variable] = _chosen(moved[variable], own, is_moved)
            try:
                q[variable] = problem.factor(variable, natural[variable])
                problem.tell(arrays, variable, q[variable])
                break
            except ImproperError as error:
                bad = _improper(error, len(tried))
                is_moved = is_moved & ~bad if (is_moved & bad).any() else np.zeros_like(tried)
    entropy = state.problem.own_entropy(q, arrays)
    found = replaced(state, arrays=arrays, own_entropy=entropy, natural=natural)
    failed = (tried & ~is_moved).nonzero()[0]
    # variables before the one that failed have moved
    return _mixed(found, state, failed) if failed.size else found, is_moved


def _chosen(arrays: Statistics, others: Statistics, groups: AnyArray) -> Statistics:
    """Return arrays in some groups, (G,), and others elsewhere."""
    pairs = zip(arrays, others, strict=True)
    return tuple([np.where(groups.reshape(-1, *(1,) * (own.ndim - 1)), own, other) for own, other in pairs])


def _mixed(state: GroupedState, other: GroupedState, groups: AnyArray) -> GroupedState:
    """Return the state with the global factors of another one in some groups, before a pass over the rows of these."""
    natural, arrays = {}, dict(state.arrays)
    for variable, own in state.natural.items():
        natural[variable] = _put(own, other.natural[variable], groups)
        expected = _put(state.expected[variable], other.expected[variable], groups)
        arrays.update(zip(state.problem.problem.keys[variable], expected, strict=True))
    (own_entropy,) = _put((state.own_entropy,), (other.own_entropy,), groups)
    return replaced(state, natural=natural, arrays=arrays, own_entropy=own_entropy)


def _put(arrays: Statistics, others: Statistics, groups: AnyArray) -> Statistics:
    """Return arrays with the entries of others in some groups."""
    found = []
    for own, other in zip(arrays, others, strict=True):
        own = own.copy()
        own[groups] = other[groups]
        found.append(own)
    return tuple(found)


@np.errstate(all="ignore")
def _stepped(state: GroupedState, foresees: float) -> tuple[GroupedState, AnyArray]:
    """Return the state after a step, and which groups are foreseen to gain nothing by it and have not made it, (G,).

    In a step each global factor is updated in turn, or moved further, before a pass over the rows.

    Parameters
    ----------
    foresees
        Gain of a step in nats a row below which groups do not make it.
    """
    after, goes_on = _updated(state), state.goes_on
    none = np.zeros(len(goes_on), dtype=bool)
    if not state.natural or state.memory is None:
        return replaced(looked(after, state.looks_on(goes_on)), memory=state.memory), none
    memory, vector, tried = proposal(state.memory, state.place, after.place, state.change)
    before_look = after.problem.objective(after.arrays, after.entropy) + after.own_entropy
    gain = (before_look - state.elbo) / state.problem.groups.totals
    n_factors, secant = len(state.problem.one.order), gain_of_secant(memory, vector)
    # neither do the updates and the rows gain so much, nor the move that takes into account how slow they are
    ended = goes_on & memory.is_secant & (most_of_a_sweep(np.abs(gain), n_factors) < foresees)
    ended &= np.abs(secant) < _SAFE * foresees * state.problem.groups.totals
    goes_on &= ~ended
    going = state.looks_on(goes_on)
    # labels of components that are ruled out have no finite place
    tried &= goes_on & np.isfinite(vector).all(axis=-1)
    if not tried.any():
        return replaced(looked(after, going), memory=judged(memory, tried, tried)), ended
    found, tried_now = moved_to(after, vector, tried)
    found = looked(found, going)
    good = tried_now & (found.elbo >= before_look)
    refused = (tried_now & ~good).nonzero()[0]
    if refused.size:
        found = looked(_mixed(found, after, refused), refused)
    return replaced(found, memory=judged(memory, tried, good)), ended


def _improper(error: ImproperError, size: int) -> AnyArray:
    """Return which groups an error is about, (G,); all if it does not say."""
    proper = error.is_proper
    if proper is None or proper.ndim == 0 or len(proper) != size or proper.all():
        return np.ones(size, dtype=bool)
    return np.logical_not(proper.reshape(size, -1).all(axis=-1))


@dataclass(eq=False)
class GroupedEnds:
    """Where groups have ended.

    Attributes
    ----------
    vector
        Natural parameters, (G, P); shaped as ``like``.
    elbo, n_iter, status
        (G,) each; the status is None where a group has not ended, and FELL where it is left to a fit of its own.
    entropy
        Of its labels, nats a row, (G,).
    sums
        Of the last pass over its rows: R T', (G, K, F); without an entry where nothing is hidden in the rows.
    others
        Of a group whose best end is that of another start: that start's ends, and its place there.
    traces
        Places and objectives of each step.
    """

    vector: Array
    elbo: Array
    n_iter: AnyArray
    status: AnyArray
    traces: list[tuple[AnyArray, Array]]
    entropy: Array
    sums: Array
    others: dict[int, tuple[GroupedEnds, int]] = field(default_factory=dict)

    @classmethod
    def none(cls, n_groups: int) -> GroupedEnds:
        """Return those of groups that are all left."""
        return cls(
            np.zeros((n_groups, 0)),
            np.full(n_groups, -np.inf),
            np.zeros(n_groups, dtype=np.intp),
            np.full(n_groups, None, dtype=object),
            [],
            np.zeros(n_groups),
            np.zeros((n_groups, 0, 0)),
        )

    def keep(self, state: GroupedState, groups: AnyArray) -> None:
        """Take the groups of a state that have ended, given by their numbers."""
        places = state.places[groups]
        if state.natural:
            self.vector = _wide(self.vector, state.vector)
            self.vector[places] = state.vector[groups]
        self.elbo[places] = state.elbo[groups]
        self.n_iter[places], self.status[places] = state.n_iter[groups], state.ended[groups]
        self.entropy[places] = (state.entropy / state.problem.groups.totals)[groups]
        if state.sums is not None:
            self.sums = _wide(self.sums, state.sums)
            self.sums[places] = state.sums[groups]

    @property
    def has_settled(self) -> AnyArray:
        """Which groups have ended at an optimum, or after the largest number of steps, (G,)."""
        return np.equal(self.status, Status.CONVERGED) | np.equal(self.status, Status.MAX_ITER)

    def cut(self, state: GroupedState, max_iter: int) -> None:
        """Take the groups of a state that have made so many steps, and may take no further one."""
        places = (state.goes_on & (state.n_iter >= max_iter)).nonzero()[0]
        if places.size:
            state.ended[places] = Status.MAX_ITER
            _keep(state, places, self)

    def improve(self, other: GroupedEnds, first: int = 0) -> None:
        """Take ends that are better than the present ones.

        Parameters
        ----------
        other
            Has the same groups one after another, from the place ``first`` on.
        """
        there = slice(first, first + len(self.elbo))
        places = (other.has_settled[there] & (other.elbo[there] > self.elbo)).nonzero()[0]
        if not places.size:
            return
        theirs = first + places
        self.vector, self.sums = _wide(self.vector, other.vector), _wide(self.sums, other.sums)
        for name in ("vector", "elbo", "n_iter", "status", "entropy", "sums"):
            getattr(self, name)[places] = getattr(other, name)[theirs]
        self.others |= {int(place): (other, first + int(place)) for place in places}

    def trace(self, place: int) -> Array:
        """Return the objective of a group at the start and after each step."""
        if place in self.others:
            ends, number = self.others[place]
            return ends.trace(number)
        found = []
        for places, elbo in self.traces:
            own = np.searchsorted(places, place)
            if own < len(places) and places[own] == place:
                found.append(elbo[own])
        return np.array(found[: int(self.n_iter[place]) + 1])


def _wide(values: Array, like: Array) -> Array:
    """Return values of groups, which are as many for each as in other values: zeros where there are none yet."""
    return values if values.size else np.zeros((len(values), *like.shape[1:]))


def ascend(
    state: GroupedState | None,
    ends: GroupedEnds,
    max_iter: int,
    tol: float,
    *,
    foresees: bool = False,
) -> GroupedState | None:
    """Return the state of the groups that have not ended after some further steps, None if all have.

    Parameters
    ----------
    ends
        Called with the groups that end: settled, or to be fitted alone.
    max_iter, tol
        As of :meth:`Model.fit`.
    foresees
        Whether groups end before a step that is foreseen to gain less than ``tol``. Otherwise they end after it.
    """
    if state is None:
        return None
    if not ends.traces:
        ends.traces.append((state.places, state.elbo))
    for _ in range(max_iter):
        state = _iterated(state, tol, ends, foresees=foresees)
        ends.traces.append((state.places, state.elbo))
        state = _without_ended(state, ends)
        if state is None:
            return None
    return state


def _iterated(state: GroupedState, tol: float, ends: GroupedEnds, *, foresees: bool) -> GroupedState:
    """Return the state after a step, of the groups that it could be made of, and judged.

    Groups that are foreseen to gain nothing by it end before it.
    """
    while True:
        try:
            after, done = _stepped(state, tol if foresees else 0.0)
            break
        except ImproperError as error:
            bad = _improper(error, state.problem.size)
            if bad.all() or not state.natural:
                # without an update of its own a group has no place in another batch
                return replaced(state, ended=np.full(state.problem.size, Status.FELL, dtype=object))
            state = state.taken((~bad).nonzero()[0])
    counts = state.problem.groups.totals
    change = (after.elbo - state.elbo) / counts
    fell = ~(after.elbo - state.elbo >= -_FALL * (1.0 + np.abs(after.elbo)))
    fell &= np.isfinite(state.elbo) | ~np.isfinite(after.elbo)
    is_plain = bool((state.n_iter + 1 < state.n_plain).any())
    memory, settled = (None, np.abs(change) < tol) if is_plain else _rested(after, change, tol)
    ended = state.ended.copy()
    ended[settled], ended[fell], ended[done] = Status.CONVERGED, Status.FELL, Status.CONVERGED
    if done.any():
        _keep(replaced(state, ended=ended.copy()), done.nonzero()[0], ends)
    return replaced(after, change=change, memory=memory, ended=ended, n_iter=state.n_iter + 1)


def _rested(after: GroupedState, change: Array, tol: float) -> tuple[GroupedMemory, AnyArray]:
    """Return the memory of the moves after a step with these changes, in nats a row, and which groups have settled."""
    is_small, memory = np.abs(change) < tol, after.memory
    if memory is None:
        n_parameters = after.vector.shape[1]
        memory = GroupedMemory.empty(after.problem.size, n_parameters, is_on=True)
    # their rows have labels alone, which are always at their optimum
    wants_a_plain_one = memory.is_on & memory.has_moved
    wants_a_plain_one &= most_of_a_sweep(change, len(after.problem.one.order)) >= tol
    again = ~is_small & ~memory.is_on
    memory = memory.forgetting(again) if again.any() else memory
    memory = replaced(memory, is_on=memory.is_on & ~(is_small & wants_a_plain_one & ~again))
    return memory, is_small & ~wants_a_plain_one


def _keep(state: GroupedState, groups: AnyArray, ends: GroupedEnds) -> None:
    """Take the groups of a state that have ended, given by their numbers; some of them must be fitted alone."""
    state.ended[groups[_alone(state, groups)]] = Status.FELL
    ends.keep(state, groups)


def _without_ended(state: GroupedState, ends: GroupedEnds) -> GroupedState | None:
    """Return the state without groups that have ended, where these are many."""
    goes_on = state.goes_on
    ended, left = (~goes_on).nonzero()[0], goes_on.nonzero()[0]
    if ended.size:
        new = ended[np.equal(ends.status[state.places[ended]], GOES_ON)]
        if new.size:
            _keep(state, new, ends)
    if not left.size:
        return None
    share = _SHARE if ended.size > _FEW else _SPENT
    if ended.size * state.problem.groups.n_numbers < _SPARED:
        share = 0.0
    if state.problem.groups.is_shared:
        share = _SHARED if state.vector.shape[1] > _LARGE else 0.0
    is_spent = left.size < share * ended.size
    return state.taken(left) if is_spent else state


def _alone(state: GroupedState, groups: AnyArray) -> AnyArray:
    """Return which of some groups must be fitted alone: they collapsed, or a common reference point loses digits."""
    problem = state.problem
    bad = ~np.isfinite(state.elbo[groups])
    if problem.has_labels:
        losses = problem.rows.losses(problem.matrices(state.arrays)[groups], groups)
        bad |= ~(losses <= TOLERATED_LOSS)
    if problem.problem.flat:
        bad |= np.isin(groups, _collapsed(state))
    return bad


def _collapsed(state: GroupedState) -> list[int]:
    """Return the numbers of the groups that have collapsed, found by halves."""
    q = _Factors(state.problem.problem, state.natural)
    if not has_collapsed(state.problem.problem, q, state.arrays):
        return []
    size = state.problem.size
    if size == 1:
        return [0]
    halves = np.array_split(np.arange(size), 2)
    return [int(own[number]) for own in halves for number in _collapsed(state.taken(own))]


class _Factors(Mapping[Variable, Any]):
    """Global factors by variable, each made of its natural parameters at first use."""

    def __init__(self, problem: Problem, natural: Mapping[Variable, Statistics]) -> None:
        self._problem, self._natural = problem, natural

    def __getitem__(self, variable: Variable) -> Any:
        return self._problem.factor(variable, self._natural[variable])

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._natural)

    def __len__(self) -> int:
        return len(self._natural)
