"""Effects: a settled fit with single effects continues from a better place, if some move leads to one.

An effect that has taken the place of two others keeps it: each update moves one effect, and two would have to move at
once. So effects are moved by hand, and what follows from that by updates is judged by the objective:

refine
    All effects are fitted again without the credible set of one of them, then with it (susieR's refinement).
merge
    One of two effects that share candidates takes what both explain.
split
    An effect is put on one of its two likeliest candidates, and one that has found nothing on the other.

Source: Wang, Sarkar, Carbonetto and Stephens (JRSS B 2020); susieR's argument ``refine``.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from ...._errors import ImproperError, ParameterError
from ...._typing import AnyArray, Array, Statistics
from ....families import SingleEffect
from ....language import Variable
from ....numerics.records import replaced
from ...design.keys import StatisticKey
from ..problem import Problem
from ..schedule import Ascent, AscentAround, StatedSchedule
from ..state import AscentState, at_natural, iterated, joined
from ..status import Status
from .auto import Auto

log = logging.getLogger("caviar")

A = TypeVar("A", bound=AscentState)

_COVERAGE = 0.95
"""Probability of the set that a refinement leaves out."""

_NOTHING = 0.5
"""Share of the candidates in a set beyond which an effect counts as not found."""

_SHARED = 0.05
"""Probability that two effects have in common, from which on they may be one."""

_SWEEPS, _SETTLED = 60, 1e-5
"""Sweeps after a move at the most, and the largest change of an expected entry, relative to the largest, that ends
them."""

_LEAST = 1e-6
"""Nats by which a move must raise the objective."""


@dataclass(frozen=True)
class Refined(StatedSchedule):
    """Rearrange single effects after a fit has converged, as long as that raises the ELBO.

    Effects are refined as in susieR (fitted again without one of the credible sets, then with it), merged and split.
    Each candidate takes as long as a fit, so L effects take about 2 L times as long as a fit with the default schedule.

    Examples
    --------
    >>> import numpy as np
    >>> import caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 5))
    >>> X[:, 2] = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=100)
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=100)
    >>> obs = cv.Plate("obs")
    >>> x = cv.Data("X", plates=obs)
    >>> first, second = (cv.SingleEffect(name, 5, precision=1.0) for name in ("first", "second"))
    >>> model = cv.Model(cv.Normal("y", cv.dot(x, first) + cv.dot(x, second), 1.0, plates=obs))
    >>> plain, moved = (model.fit({"y": y, "X": X}, schedule=own) for own in ("auto", cv.Refined()))
    >>> bool(moved.elbo >= plain.elbo)
    True
    """

    def resolved(self, problem: Problem, n_rows: int, *, accelerate: bool) -> Ascent[Any]:
        """Return the schedule of a fit.

        Raises
        ------
        ParameterError
            If the model has no single effect without plates.
        """
        if not _effects_of(problem):
            raise ParameterError(
                "schedule=Refined() moves single effects, and the model has no hidden SingleEffect without plates"
            )
        return EffectMoves(Auto().resolved(problem, n_rows, accelerate=accelerate))


@dataclass(frozen=True)
class EffectMoves(AscentAround[A]):
    """Another schedule, with the best move of effects where it has settled.

    Attributes
    ----------
    own
        The other schedule.
    """

    def judged(self, before: A, after: A, tol: float) -> A:
        """Return the state after an iteration, or after the best move where it has settled and one is better."""
        state = self.own.judged(before, after, tol)
        if state.status is not Status.CONVERGED or not state.natural:
            return state
        moved = [found for move in _moves(state) if (found := _after(state, move)) is not None]
        best = max(moved, key=lambda own: own.elbo, default=None)
        if best is None or not best.elbo > state.elbo + max(_LEAST, tol * state.per_row):
            return state
        log.info("a move of effects has raised the ELBO by %.4g nats", best.elbo - state.elbo)
        return self.own.at(iterated(state, replaced(best, status=None)))


@dataclass(frozen=True, eq=False)
class _Move:
    """Where effects are put, and what is fitted again.

    Attributes
    ----------
    means
        Effect -> its expected entries at first; zero where it is found anew.
    first
        The effect that is updated before all others, if any.
    banned
        Candidates that no effect may have in the first sweeps.
    """

    means: Mapping[Variable, Array]
    first: Variable | None = None
    banned: AnyArray | None = None


def _effects_of(problem: Problem) -> list[Variable]:
    """Return the hidden single effects without plates that are updated."""
    return [
        own
        for own in problem.order
        if own.family is SingleEffect
        and not own.plates
        and own not in problem.point
        and problem.bound.of(own).clamped is None
    ]


def _moves(state: AscentState) -> Iterator[_Move]:
    """Yield all moves of effects with each number of candidates."""
    by_size: dict[int, list[Variable]] = {}
    for own in _effects_of(state.problem):
        by_size.setdefault(own.dimension or 1, []).append(own)
    for size, effects in by_size.items():
        inclusion = {own: state.q[own].inclusion for own in effects}
        sets = {own: _credible(inclusion[own]) for own in effects}
        found = [own for own in effects if sets[own].sum() <= max(_NOTHING * size, 1)]
        idle = [own for own in effects if own not in found]
        nothing = {own: np.zeros(size) for own in effects}
        for one, other in combinations(found, 2):
            if np.minimum(inclusion[one], inclusion[other]).sum() > _SHARED:
                yield _Move({other: nothing[other]}, one)
        for own in found if idle and size > 1 else ():
            a, b = np.argsort(-inclusion[own], kind="stable")[:2]
            half = 0.5 * state.q[own].slab_mean
            yield _Move({own: half * (np.arange(size) == a), idle[0]: half * (np.arange(size) == b)})
        known: list[AnyArray] = []
        for own in found:
            if sets[own].all() or any(np.array_equal(sets[own], other) for other in known):
                continue
            known.append(sets[own])
            yield _Move(nothing, None, sets[own])


def _credible(inclusion: Array) -> AnyArray:
    """Return which candidates are in the credible set of an effect."""
    order = np.argsort(-inclusion, kind="stable")
    size = min(int(np.searchsorted(np.cumsum(inclusion[order]), _COVERAGE)) + 1, len(order))
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[:size]] = True
    return chosen


def _after(state: A, move: _Move) -> A | None:
    """Return where updates lead from a move; None if nowhere."""
    problem, arrays = state.problem, dict(state.arrays)
    for variable, mean in move.means.items():
        arrays[StatisticKey(variable.name, "x")] = mean
        arrays[StatisticKey(variable.name, "squares")] = np.square(mean)
    try:
        if move.first is not None:
            _update(problem, move.first, arrays, None)
        if move.banned is not None:
            _settle(problem, arrays, dict.fromkeys(move.means, move.banned))
        return at_natural(state, joined(problem, _settle(problem, arrays, {})))
    except ImproperError:
        return None


@np.errstate(all="ignore")
def _settle(
    problem: Problem, arrays: dict[Hashable, Array], banned: Mapping[Variable, AnyArray]
) -> dict[Variable, Statistics]:
    """Update all globals in turn until effects stay where they are; return their natural parameters."""
    effects, naturals = _effects_of(problem), dict[Variable, Statistics]()
    for _ in range(_SWEEPS):
        before = [arrays[StatisticKey(own.name, "x")] for own in effects]
        for variable in problem.order:
            naturals[variable] = _update(problem, variable, arrays, banned.get(variable))
        after = [arrays[StatisticKey(own.name, "x")] for own in effects]
        moved = max(np.abs(new - old).max() for new, old in zip(after, before, strict=True))
        if moved <= _SETTLED * max(np.abs(new).max() for new in after):
            break
    return naturals


def _update(
    problem: Problem, variable: Variable, arrays: dict[Hashable, Array], banned: AnyArray | None
) -> Statistics:
    """Update a global in place, some candidates of an effect left out; return its natural parameters."""
    natural, factor = problem.update_with_natural(variable, arrays)
    if banned is not None:
        natural = (np.where(banned, -np.inf, natural[0]), *natural[1:])
        factor = problem.factor(variable, natural)
    arrays.update(problem.statistics(variable, factor))
    return natural
