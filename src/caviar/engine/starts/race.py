"""Trials: a race of starts on the subsample that they are made from, and the winner brought near its optimum there."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np

from ..._errors import FallingElboWarning, ImproperError
from ...numerics.records import replaced
from ..ascent.driver import Settings, iterate
from ..ascent.problem import Problem
from ..ascent.schedule import Beginning
from ..ascent.schedules.batch import Batch, BatchState
from ..ascent.schedules.moves.acceleration import Memory
from ..ascent.state import AscentState, extended
from ..ascent.status import Status
from ..design.keys import StatisticKey
from ..rows.row_map import RowMap
from ..rows.subsample import Sample
from .factors.prior import Start
from .guesses.basis import Basis, Climb, Passes, Several, by_themselves

log = logging.getLogger("caviar")

Runner: TypeAlias = tuple[Start, BatchState]
"""A start, and where it has come to."""


@dataclass(frozen=True)
class Begun:
    """Where a fit begins.

    Attributes
    ----------
    start
        Global factors, and their problem.
    raced
        Where a race over all rows has brought them, from which an ascent may go on as it is; None if a first pass has
        to be made: after a race over some of the rows, where local factors begin at those of the last pass, or where
        components have reference points of their own.
    rows_raced
        Rows that all passes of the race have gone through together.
    is_from_clusters
        Whether it follows from clusters so plain that no other start was made.
    """

    start: Start
    raced: BatchState | None = None
    rows_raced: int = 0
    is_from_clusters: bool = False

    @property
    def race(self) -> dict[str, Any]:
        """What a :class:`Beginning` has of it besides the globals."""
        return {own.name: getattr(self, own.name) for own in fields(self)[1:]}


_MOST = 8
"""Starts that run at the most."""

_FEWEST = (6, 8, 16)
"""Iterations of each start in the rounds of a race, at least; after each round the better half goes on."""

_NUMBERS = 4e8
"""Numbers, rows times parameters, that the passes of a round may go through where that is more than the fewest."""

_MOST_PASSES = 160
"""Passes of a round, however few the numbers are."""

_AMPLE = 12
"""Passes of a round for each start from which on they are no longer dear."""

_STRETCH = 6
"""Iterations after which starts that will not catch up are left out, without waiting for the end of a round."""

_AHEAD = 20
"""Iterations like the last few by which a start may yet rise, at least, before it counts as one that will not."""

_FARTHEST = 60
"""Moves like the last one by which a start may yet rise, at most, whose moves do not become smaller."""

_MAY_RISE = 0.03
"""Nats per value that an unsettled start may still rise, even if it is slow: it may be on a plateau. None where passes
are dear."""

_FEW_PARAMETERS = 20_000
"""Parameters up to which each start remembers its moves while the others run: of more that would take much memory."""

_ALIKE = 1e-7
"""Nats a row by which the objectives of starts may differ that count as the same."""

_SEVERAL = 3
"""Starts from which on they run side by side."""

_LATELY = 4
"""Objectives that tell how fast a start rises."""

_UNSETTLED = 10.0
"""Tolerances by which a start that has settled may rise yet."""

_CLIMB = Batch()

_RUN = Settings(max_iter=0, tol=1e-5)

_BRIEFLY = replace(_RUN, tol=1e-3)
"""Where passes are dear."""

_TO_THE_END = Settings(max_iter=200, tol=1e-4)


def best_of(starts: Sequence[Callable[[], Start]], basis: Basis, behind: float = np.inf) -> Begun:
    """Return the start that leads to the highest objective within a race over the sample.

    Its factors are those after the race. Where the sample leaves rows out, the best one goes on until it has nearly
    settled, so that passes over all rows begin near an optimum. The rows of the sample weigh as much as all rows do.
    A start that collapses on the sample is left out.

    Parameters
    ----------
    starts
        What returns a start, one for each.
    basis
        What they are made from: the sample, and passes over it, to which those of the race are added.
    behind
        Nats a value by which a start may be behind the best before the first iteration; nats a row where passes are
        dear.
    """
    sample = basis.sample
    if len(starts) == 1:
        start = starts[0]()
        # without local factors no start is continued on the sample
        if not (sample.is_part and start[0].factors):
            return Begun(start)
        starts = [lambda: start]
    race = Race(basis.row_map, sample, behind, basis.passes, basis.several)
    start, reached = race.winner(_possible(starts))
    if reached is not None and sample.is_part and start[0].factors:
        reached = race.run(replace(reached, status=None), _TO_THE_END) or reached
    return Begun(start) if reached is None else begun_at(reached, sample)


def begun_at(reached: BatchState, sample: Sample) -> Begun:
    """Return where a fit begins that continues a state of an ascent on the sample."""
    start = reached.problem, dict(reached.q)
    return Begun(start, None if sample.is_part or _depends_on_its_way(reached) else _anew(reached))


def gone_on_from(reached: AscentState, problem: Problem) -> BatchState | None:
    """Return the state of an ascent as the first of one that updates more globals; None if that takes a pass."""
    if _depends_on_its_way(reached):
        return None
    objective = reached.objective.of_problem(problem)
    begun = replaced(reached, problem=problem, objective=objective, natural={}, change=np.inf)
    return _anew(extended(BatchState, begun, memory=Memory()))


def _depends_on_its_way(state: AscentState) -> bool:
    """Whether a state is more than its global factors: where its local ones began, or reference points were set."""
    rows = state.problem.rows
    return rows.keeps_locals or bool(rows.chains) or rows.has_centres


def _anew(state: BatchState) -> BatchState:
    """Return a state as the first one of another ascent."""
    return replaced(state, trace=(state.elbo,), n_updates=0, status=None)


def _possible(starts: Sequence[Callable[[], Start]]) -> list[Start]:
    """Return the starts whose first updates stay inside their families; raise what the first one does if none do."""
    found: list[Start] = []
    errors: list[ImproperError] = []
    for start in starts:
        try:
            found.append(start())
        except ImproperError as error:
            log.info("start left out: %s", error)
            errors.append(error)
    if not found:
        raise errors[0]
    return found


@dataclass(frozen=True)
class Race:
    """Starts that ascend side by side: each round costs about the same, and the better half continues to the next.

    A few iterations do not tell where a start will end: it may wait on a plateau, and climb late. So a round has as
    many passes as the size of the table allows, and of small tables most starts have settled when they are compared.
    Starts that are far behind and slow are left out sooner. Of point masses none are while passes are cheap: a
    likelihood is climbed with more rests than an ELBO.

    Source: Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization"
    (AISTATS 2016), for halving with equal rounds.
    """

    row_map: RowMap
    sample: Sample
    behind: float
    passes: Passes
    several: Several = by_themselves

    def winner(self, starts: Sequence[Start]) -> tuple[Start, BatchState | None]:
        """Return the start that wins, and where it has come to; no more than the first where none can run."""
        begun = self._begun(starts)
        if not begun:
            return starts[0], None
        budget = self._budget(begun[0][1])
        ample = budget >= _AMPLE * min(len(begun), _MOST)
        left = self._near_the_best(begun, ample)
        runs = self._runs(left)
        for fewest in _FEWEST:
            if len(left) == 1 or all(_has_settled(state) for _, state in left):
                break
            ran = self._round(left, max(fewest, budget // len(left) if ample else 0), ample, runs)
            left = self._promising(ran, ample) or left[:1]
        return left[0] if runs is None else runs.reached(left[0])

    def _runs(self, left: Sequence[Runner]) -> Runs | None:
        """Return the starts side by side; None if each runs by itself."""
        problem = left[0][1].problem
        is_one = all(state.problem is problem for _, state in left)
        if len(left) < _SEVERAL or self.sample.is_part or not is_one:
            return None
        starts = [state.q for _, state in left]
        climb = self.several(problem, starts, self.row_map)
        return None if climb is None else Runs(self, climb, left)

    def run(self, state: BatchState, settings: Settings, schedule: Batch = _CLIMB) -> BatchState | None:
        """Return where the ascent from a state comes to; None if that is not a fit."""
        settings = replace(settings, max_iter=state.n_iter + settings.max_iter)
        try:
            with warnings.catch_warnings():
                # what falls by rounding is left out here, and no fit of the user's
                warnings.simplefilter("ignore", FallingElboWarning)
                reached = iterate(schedule, state, settings)
        except ImproperError as error:
            log.info("start left out: %s", error)
            return None
        self.passes.number += reached.n_iter - state.n_iter
        if reached.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if reached.status not in (Status.CONVERGED, None):
            return None
        forgets = reached.memory is not None and _n_parameters(reached) > _FEW_PARAMETERS
        return replace(reached, memory=Memory()) if forgets else reached

    def ran(self, left: Sequence[Runner], settings: Settings) -> list[Runner]:
        """Return the starts that are fits after some iterations, each made by itself unless it has settled."""
        ends = ((start, state if _has_settled(state) else self.run(state, settings)) for start, state in left)
        return [(start, state) for start, state in ends if state is not None]

    def _begun(self, starts: Sequence[Start]) -> list[Runner]:
        """Return the starts, best first, and where each is before the first iteration."""
        found: list[tuple[float, Runner]] = []
        for start in starts:
            try:
                state = _CLIMB.init(Beginning(*start, self.row_map))
                elbo = self._rounded(state)
            except ImproperError as error:
                log.info("start left out: %s", error)
                continue
            # a point in the place of a distribution has no objective yet
            found.append((elbo if np.isfinite(elbo) else np.inf, (start, state)))
        found.sort(key=lambda one: -one[0])
        return [runner for _, runner in found]

    def _near_the_best(self, begun: list[Runner], ample: bool) -> list[Runner]:
        """Return the starts but those far behind: fewer of them where passes are dear."""
        finite = [state.elbo for _, state in begun if np.isfinite(state.elbo)]
        least = max(finite, default=0.0) - self.behind * (self.n_values if ample else self._weight)
        return [one for one in begun if not one[1].elbo < least][:_MOST]

    def _round(self, left: list[Runner], n_iter: int, ample: bool, runs: Runs | None) -> list[Runner]:
        """Return the starts that are left after a number of iterations, best first."""
        for done in range(0, n_iter, _STRETCH):
            if all(_has_settled(state) for _, state in left):
                break
            settings = replace(_RUN if ample else _BRIEFLY, max_iter=min(_STRETCH, n_iter - done))
            ran = self.ran(left, settings) if runs is None else runs.ran(left, settings)
            # starts with equal ends keep their order in spite of rounding
            ran.sort(key=lambda one: -self._rounded(one[1]))
            left = [one for one in ran if one is ran[0] or self._may_win(one[1], ran[0][1].trace[-1], ample)]
            if len(left) <= 1:
                break
        return left

    def _promising(self, ran: list[Runner], ample: bool) -> list[Runner]:
        """Return half of some starts: the best one, and those that lead the farthest as they rise now.

        Others may rest sooner, and lower: one that rises steadily is still below them. Where passes are dear it is the
        better half.
        """
        others = ran[1:]
        if ample:
            others = sorted(others, key=lambda one: -self._rounded(one[1], _prospect(one[1])))
        return [*ran[:1], *others[: (len(ran) - 1) // 2]]

    def _may_win(self, state: BatchState, best: float, ample: bool) -> bool:
        """Whether a start may come to the best objective so far."""
        missing = best - state.trace[-1]
        if _has_settled(state):
            return missing <= _UNSETTLED * (_RUN if ample else _BRIEFLY).tol * self._weight
        if ample and state.problem.point.issuperset(state.problem.order):
            return True
        lately = state.trace[-_LATELY:]
        gain = (lately[-1] - lately[0]) / max(len(lately) - 1, 1)
        return missing <= max(_AHEAD * gain, ample * max(_prospect(state), _MAY_RISE * self.n_values))

    def _budget(self, state: BatchState) -> int:
        """Return the passes that the starts of a round may share."""
        return int(min(_MOST_PASSES, _NUMBERS / max(self.sample.n_rows * _n_parameters(state), 1)))

    def _rounded(self, state: BatchState, risen: float = 0.0) -> float:
        """Return the objective without the digits that rounding changes, as many in all units of the data.

        Parameters
        ----------
        risen
            By how much it is raised before.
        """
        step = _ALIKE * self._weight
        return float(np.round((state.trace[-1] + risen) / step)) * step

    @property
    def _weight(self) -> float:
        return max(self.row_map.total_weight, 1.0)

    @property
    def n_values(self) -> float:
        """Weight of all rows times the values of each."""
        values = sum(
            math.prod(column.shape) for column in self.sample.columns.values() if column.dtype.kind in "biuf"
        )
        return self._weight * max(1.0, values / max(self.sample.n_rows, 1))


class Runs:
    """Starts of a race that run side by side; those that cannot, as where reference points move, run by themselves.

    A start that is in the batch has the state that it began with, and the trace and status of where it is.

    Parameters
    ----------
    race
        The race.
    climb
        The batch.
    left
        The starts that are in it.
    """

    def __init__(self, race: Race, climb: Climb, left: Sequence[Runner]) -> None:
        self._race, self._climb, self._done = race, climb, 0
        self._begun = {id(start): (place, state) for place, (start, state) in enumerate(left)}
        self._alone: set[int] = set()

    def ran(self, left: Sequence[Runner], settings: Settings) -> list[Runner]:
        """Return the starts that are fits after some iterations."""
        climb, places = self._climb, [self._begun[id(start)][0] for start, _ in left]
        before = sum(map(climb.n_iter, places))
        climb.run([place for place in places if place not in self._alone], settings.max_iter, settings.tol)
        self._race.passes.number += sum(map(climb.n_iter, places)) - before
        self._done += settings.max_iter
        found = []
        for place, (start, state) in zip(places, left, strict=True):
            if place in self._alone:
                found += self._race.ran([(start, state)], settings)
            elif climb.has_left(place):
                self._alone.add(place)
                again = self._begun[id(start)][1]
                found += self._race.ran([(start, again)], replace(settings, max_iter=self._done))
            else:
                status = Status.CONVERGED if climb.has_settled(place) else None
                found.append((start, replace(state, trace=climb.lately(place, _LATELY), status=status)))
        return found

    def reached(self, runner: Runner) -> Runner:
        """Return a start and where it has come to."""
        start, state = runner
        place = self._begun[id(start)][0]
        if place in self._alone:
            return runner
        end = self._climb.reached(place, self._race.row_map)
        return start, state if end is None else replace(end, status=state.status)


def _prospect(state: BatchState) -> float:
    """Return the nats by which a start yet rises, if each move is smaller than the one before as the last ones were."""
    moves = np.diff(state.trace[-_LATELY:])
    if _has_settled(state) or len(moves) < 2 or (moves <= 0).any():
        return 0.0
    ratio = float(moves[-1] / moves[0]) ** (1 / (len(moves) - 1))
    ahead = min(ratio / (1 - ratio), _FARTHEST) if ratio < 1 else _FARTHEST
    return float(moves[-1]) * ahead


def _n_parameters(state: BatchState) -> int:
    keys = (StatisticKey(v.name, name) for v in state.problem.order for name in v.family.statistics)
    return sum(np.size(state.arrays[key]) for key in keys)


def _has_settled(state: BatchState) -> bool:
    return state.status is Status.CONVERGED
