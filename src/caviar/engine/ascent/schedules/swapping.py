"""Swapping: a fit of a mixture that has settled goes on from where two components merged and another one cut lead."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...._errors import FallingElboWarning, ImproperError
from ....numerics.records import replaced
from ...rows.row_map import RowMap
from ...rows.subsample import sample_of
from ..schedule import AscentAround
from ..state import AscentState, begin, iterated
from ..status import Status
from .batch import Batch, BatchState
from .swaps import Components, Mixture, Swap, why_no_swaps

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

_LOOKS = 25
"""Iterations that take about as long as to find what merges and cuts are worth."""

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
        Passes over some of the rows at each end, about.
    """

    ends: int
    passes: int


BRIEFLY, AS_LONG_AS_IT_PAYS = Effort(1, 280), Effort(20, 20_000)
"""So that a small fit takes at most three times as long, and until no swap that is tried leads higher."""


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

    def judged(self, before: A, after: A, tol: float) -> A:
        """Return the state after an iteration, or after one more where a swap leads higher.

        It has not settled where no iteration is left for that.
        """
        state = self.own.judged(before, after, tol)
        if state.status is not Status.CONVERGED or state.swaps >= self.effort.ends:
            return state
        found = swapped(state, self.effort.passes)
        if found is None:
            return state
        if state.n_iter >= self.max_iter:
            return replaced(state, status=None)
        log.info("components were swapped; the fit goes on %.4g nats higher", found.elbo - state.elbo)
        beyond = replaced(found, status=None, swaps=state.swaps + 1, saddles=state.saddles)
        return self.own.at(iterated(state, beyond, max(1, state.rows.n_batches_made)))


def swapped(state: AscentState, passes: int) -> AscentState | None:
    """Return a state with a higher objective, after swaps of components; None if none is found.

    They are found on some of the rows, one after the other, and must lead higher on all of them.
    """
    if why_no_swaps(state.problem):
        return None
    with warnings.catch_warnings():
        # what falls by rounding is left out here, and is no step of the fit
        warnings.simplefilter("ignore", FallingElboWarning)
        rows, left = _some_rows(state), Passes(passes)
        here = begun = _CLIMB.at(begin(state.problem, state.q, rows))
        if rows.source.n_rows < state.rows.source.n_rows:
            here = begun = left.climbed(here, _AFTERWARDS)
        while left.number > _LOOKS:
            found = _higher(here, left)
            if found is None:
                break
            here = left.climbed(found, _AFTERWARDS)
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
    return RowMap(state.problem.rows, sample_of(state.rows.source, most), state.rows.executor.host)


def _higher(here: BatchState, left: Passes) -> BatchState | None:
    """Return a state that a swap leads to whose objective is higher; None if none is found with the passes left."""
    aim = here.elbo + _LEAST * here.rows.source.total_weight
    mixture = Mixture(here, Components.of(here.problem))
    left.number -= _LOOKS
    promising = _promising(mixture)
    for start in range(0, len(promising), _TOGETHER):
        states: list[BatchState] = []
        for place in range(start, min(start + _TOGETHER, len(promising))):
            begun = _swapped(mixture, promising[place])
            left.number -= 2
            states += [] if begun is None else [left.climbed(begun, _FIRST)]
            states.sort(key=lambda state: -state.elbo)
            if states and states[0].elbo > aim and not (place + 1) % _AT_ONCE:
                return states[0]
        for n_left, n_iter in _FURTHER:
            states = [left.climbed(state, n_iter) for state in states[:n_left] if _may_reach(state, aim)]
            states.sort(key=lambda state: -state.elbo)
            if states and states[0].elbo > aim:
                return states[0]
        if left.number <= 0:
            break
    return None


def _swapped(mixture: Mixture, swaps: Sequence[Swap]) -> BatchState | None:
    try:
        return _CLIMB.at(mixture.swapped(swaps))
    except ImproperError:
        return None


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
