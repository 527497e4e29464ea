"""Swapping: a converged mixture continues from a swap, which merges two components and cuts another in two."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from ...._errors import FallingElboWarning, ImproperError
from ....numerics.records import replaced
from ...rows.row_map import RowMap
from ...rows.subsample import sample_of
from ..schedule import AscentAround, Beginning
from ..state import AscentState, begin, iterated
from ..status import Status
from .batch import Batch, BatchState
from .moves.components import Components, why_no_swaps
from .moves.swaps import Mixture, Swap

log = logging.getLogger("caviar")

A = TypeVar("A", bound=AscentState)

_LEAST = 2e-4
"""Nats a row by which a swap must raise the objective."""

_ROWS, _ROWS_OF_A_COMPONENT = 2_000, 200
"""Rows that swaps are tried on: so many at least, and so many for each component."""

_MOST_NUMBERS = 1_000_000
"""Rows times components that are held at a time, at the most."""

_MERGES, _CUTS, _OF_ONE = 8, 12, 4
"""Merges and cuts that are paired, the best ones, and pairs with the same merge or the same component cut."""

_RECUT = 8
"""Merges whose pairs are cut anew."""

_APART, _ANEW = 24, 12
"""Swaps of three components, and of two, that are tried in the model at the most."""

_TOGETHER, _AT_ONCE, _FIRST = 12, 4, 2
"""Swaps that are tried side by side, after how many of them the best is looked at, and iterations of each."""

_FURTHER = ((4, 6), (2, 6), (1, 12))
"""Where none of them leads higher by then, how many go on, and for how many iterations."""

_CATCHES_UP = 20.0
"""Iterations in which one must reach the objective at its present speed; otherwise it is left out."""

_AFTERWARDS = 12
"""Iterations after a swap, before the next one is looked for."""

_LOOKS = 40
"""Iterations that take about as long as to find what merges and cuts are worth."""

_TRIED = 2
"""Iterations that take about as long as to begin from a swap."""

_ON_ALL_ROWS = 12
"""Iterations over all rows in which swaps that were found on some of them must lead higher."""

_TOL = 1e-5
_CLIMB = Batch()


@dataclass(frozen=True)
class Effort:
    """How long swaps are looked for.

    Attributes
    ----------
    ends
        Ends of the other schedule that swaps may lead away from.
    passes
        Passes over some of the rows at each end, about, at the most.
    share
        Of the passes of the fit until then, those of its starts included, so many are spent at the most.
    least
        Nats a row that a swap may lose as far as the first looks tell; those that lose more are not tried.
    """

    ends: int
    passes: int
    share: float = np.inf
    least: float = -np.inf

    def passes_after(self, state: AscentState, n_rows: int) -> int:
        """Return how many passes over the rows are spent at the end of a fit."""
        seen = state.n_iter * state.rows.source.n_rows + state.rows_raced
        return int(min(self.passes, self.share * seen / max(n_rows, 1)))


BRIEFLY, AS_LONG_AS_IT_PAYS = Effort(1, 280, 1.5, -0.15), Effort(20, 20_000)
"""So that no fit takes three times as long, and until no swap that is tried leads higher."""


@dataclass(frozen=True)
class Swapping(AscentAround[A]):
    """Another schedule, with one more iteration from each end of it that a swap of components leads away from.

    Attributes
    ----------
    own
        The other schedule.
    max_iter
        Iterations of the fit.
    effort
        How long swaps are looked for.
    """

    max_iter: int
    effort: Effort

    @property
    def batch_moves(self) -> bool | None:
        """As of the other schedule."""
        return self.own.batch_moves

    def init(self, beginning: Beginning[A]) -> A:
        """Return the state before the first step, which knows what the starts have cost."""
        return replaced(self.own.init(beginning), rows_raced=beginning.rows_raced)

    def judged(self, before: A, after: A, tol: float) -> A:
        """Return the state after an iteration, or after one more where a swap leads higher.

        Swaps are looked for as long as iterations are left to go on from there.
        """
        state = self.own.judged(before, after, tol)
        over = state.swaps >= self.effort.ends or state.n_iter >= self.max_iter
        if over or state.status is not Status.CONVERGED:
            return state
        found = swapped(state, self.effort)
        if found is None:
            return state
        log.info("components were swapped; the fit goes on %.4g nats higher", found.elbo - state.elbo)
        beyond = replaced(found, status=None, swaps=state.swaps + 1, saddles=state.saddles)
        return self.own.at(iterated(state, beyond, max(1, state.rows.n_batches_made)))


@np.errstate(all="ignore")
def swapped(state: AscentState, effort: Effort) -> AscentState | None:
    """Return a state with a higher objective, after swaps of components; None if none is found.

    They are found on some of the rows, one after the other, and must lead higher on all of them.
    """
    if why_no_swaps(state.problem):
        return None
    with warnings.catch_warnings():
        # what falls by rounding is left out here, and is not a step of the fit
        warnings.simplefilter("ignore", FallingElboWarning)
        rows = _some_rows(state)
        left = Passes(effort.passes_after(state, rows.source.n_rows))
        if left.number <= _LOOKS:
            return None
        here = begun = _CLIMB.at(begin(state.problem, state.q, rows))
        if rows.source.n_rows < state.rows.source.n_rows:
            here = begun = left.climbed(here, _AFTERWARDS)
        while left.number > _LOOKS:
            found = _higher(here, left, effort.least * rows.total_weight)
            if found is here:
                break
            here = found
        return None if here is begun else _on_all_rows(state, here)


@dataclass
class Passes:
    """Passes over some of the rows that are left."""

    number: int

    def climbed(self, state: BatchState, n_iter: int) -> BatchState:
        """Return the state after some iterations, or fewer if it settles or goes wrong before."""
        for _ in range(n_iter):
            if state.status is not None:
                break
            before = state
            self.number -= 1
            try:
                state = _CLIMB.step(before)
            except ImproperError:
                return replaced(before, status=Status.COLLAPSED)
            if state.status is None:
                state = _CLIMB.judged(before, state, _TOL)
        return state


def _some_rows(state: AscentState) -> RowMap:
    """Return the map over some of the rows: which follows from their values alone."""
    (label,) = state.problem.factors
    most = min(max(_ROWS, _ROWS_OF_A_COMPONENT * label.n_rows), _MOST_NUMBERS // label.n_rows)
    sample = sample_of(state.rows.source, most)
    return RowMap(state.problem.rows, sample, state.rows.executor.host, looks_again=True)


def _higher(here: BatchState, left: Passes, least: float) -> BatchState:
    """Return a state that swaps lead to, one after the other, whose objective is higher; the same if none does.

    What merges and cuts are worth is told once: after a swap it holds for the components that it has not touched.
    """
    mixture = Mixture(here, Components.of(here.problem))
    left.number -= _LOOKS
    try:
        waiting = [swaps for swaps in _promising(mixture) if _gain(swaps) > least]
    except ImproperError:
        # pairs and halves that take the same rows, all at once, leave no squares for a precision that they share
        return here
    while waiting and left.number > 0:
        found = _first_that_rises(mixture, waiting[:_TOGETHER], left)
        waiting = found.open + waiting[found.n_tried :]
        if found.state is not None:
            waiting = [swaps for swaps in waiting if not found.touched & _touched(swaps)]
            here = left.climbed(found.state, _AFTERWARDS)
            mixture = Mixture(here, mixture.components)
    return here


@dataclass(frozen=True)
class _Trials:
    """How swaps that were tried side by side came out.

    Attributes
    ----------
    n_tried
        How many were tried.
    state
        Where the best of them has led, if it has led higher.
    touched
        The components that it has changed.
    open
        Swaps that were tried beside it, and may lead higher too.
    """

    n_tried: int
    state: BatchState | None = None
    touched: frozenset[int] = frozenset()
    open: list[list[Swap]] = field(default_factory=list)


def _first_that_rises(mixture: Mixture, candidates: Sequence[list[Swap]], left: Passes) -> _Trials:
    """Try swaps from where a mixture is, until one leads higher."""
    here = mixture.state
    aim = here.elbo + _LEAST * here.rows.total_weight
    trials: list[tuple[BatchState, list[Swap]]] = []
    for number, swaps in enumerate(candidates, 1):
        begun = _swapped(mixture, swaps)
        left.number -= _TRIED
        trials += [] if begun is None else [(left.climbed(begun, _FIRST), swaps)]
        if number % _AT_ONCE == 0 and (found := _ended(trials, aim, number)):
            return found
    for n_left, n_iter in (*_FURTHER, (0, 0)):
        if found := _ended(trials, aim, len(candidates)):
            return found
        trials = [
            (left.climbed(own, n_iter), swaps) for own, swaps in trials[:n_left] if _may_reach(own, aim)
        ]
    return _Trials(len(candidates))


def _ended(trials: list[tuple[BatchState, list[Swap]]], aim: float, n_tried: int) -> _Trials | None:
    """Sort trials, the best first, and return what comes of them if that is higher."""
    trials.sort(key=lambda trial: -trial[0].elbo)
    if not trials or not trials[0][0].elbo > aim:
        return None
    (state, swaps), *others = trials
    still_open = [own for reached, own in others if reached.elbo > aim or _may_reach(reached, aim)]
    return _Trials(n_tried, state, _touched(swaps), still_open)


def _swapped(mixture: Mixture, swaps: Sequence[Swap]) -> BatchState | None:
    try:
        return _CLIMB.at(mixture.swapped(swaps))
    except ImproperError:
        return None


def _gain(swaps: Sequence[Swap]) -> float:
    return sum(swap.gain for swap in swaps)


def _touched(swaps: Sequence[Swap]) -> frozenset[int]:
    return frozenset().union(*(swap.touched for swap in swaps))


def _promising(mixture: Mixture) -> list[list[Swap]]:
    """Return swaps that may be tried, the most promising first: several at once, and one by one."""
    merges, cuts = mixture.merges(), mixture.cuts()
    apart = [
        Swap(merge, cut)
        for merge in merges[:_MERGES]
        for cut in cuts[:_CUTS]
        if cut.places[0] not in (merge.taken, merge.into)
    ]
    anew = [Swap(None, cut) for cut in mixture.recuts(merges[:_RECUT])]
    together: list[Swap] = []
    taken: set[int] = set()
    for swap in sorted((*apart, *anew), key=lambda swap: -swap.gain):
        if swap.gain > 0 and not swap.touched & taken:
            together.append(swap)
            taken |= swap.touched
    alone = sorted([*_unlike(apart)[:_APART], *_unlike(anew)[:_ANEW]], key=lambda swap: -swap.gain)
    return [*([together] if len(together) > 1 else []), *([swap] for swap in alone)]


def _unlike(swaps: Sequence[Swap]) -> list[Swap]:
    """Return swaps of which few have one side alike, the most promising first."""
    found: dict[Hashable, Swap] = {}
    of_one: Counter[Hashable] = Counter()
    for swap in sorted(swaps, key=lambda swap: -swap.gain):
        sides = [side for side in (swap.merge, swap.cut.places) if side is not None]
        if tuple(sides) not in found and max(of_one[side] for side in sides) < _OF_ONE:
            found[tuple(sides)] = swap
            of_one.update(sides)
    return list(found.values())


def _may_reach(state: BatchState, aim: float) -> bool:
    """Whether a state has not settled, and rises fast enough to reach an objective."""
    lately = state.trace[-4:]
    gain = (lately[-1] - lately[0]) / max(len(lately) - 1, 1)
    return state.status is None and aim - state.elbo <= _CATCHES_UP * gain


def _on_all_rows(state: AscentState, found: BatchState) -> AscentState | None:
    """Return where factors that were found on some rows lead to on all of them; None if that is no higher."""
    try:
        here = _CLIMB.at(begin(found.problem, found.q, state.rows))
    except ImproperError:
        return None
    aim, left = state.elbo + _LEAST * state.per_row, Passes(_ON_ALL_ROWS)
    for _ in range(_ON_ALL_ROWS):
        if here.elbo > aim or not (here.n_iter == 0 or _may_reach(here, aim)):
            break
        here = left.climbed(here, 1)
    return here if here.elbo > aim else None
