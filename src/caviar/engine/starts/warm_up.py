"""Warm-up: first sweeps, in which some globals wait: given ones, widths of effects, absent weights, outer plates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._errors import ImproperError
from ...language import Gamma, Variable
from ..ascent.degeneracy import has_collapsed
from ..ascent.driver import Settings, iterate
from ..ascent.problem import Problem, statistics_of
from ..ascent.schedule import Beginning
from ..ascent.schedules.alternating import Alternating
from ..ascent.schedules.batch import Batch
from ..ascent.schedules.mixed_precision import as_exact_as
from ..ascent.state import begun
from ..ascent.status import Status
from ..binding.clamped.factor import PointMass
from ..binding.nested import outer_variables
from ..design.keys import StatisticKey
from ..local.statistics import Coefficients
from ..rows.row_map import RowMap
from .clustering.sequences import in_order
from .factors.prior import Start, own_natural, prior_start
from .guesses.basis import Basis, Guess
from .guesses.from_labels import from_labels
from .products.columns import Setting
from .products.effects import learnt_in, precisions_of_effects, shape_of, widths_of
from .products.steps import widths_of_steps
from .race import Begun, gone_on_from

_ROUNDS = Settings(max_iter=20, tol=0.0)

_FIRST_SWEEPS = Settings(max_iter=10, tol=1e-3)
"""Over everything but what is given: what it is found from first, as a noise level at its prior, may be far away."""

_SWEEPS_WITHOUT_EFFECTS = Settings(max_iter=100, tol=1e-3)
"""Over what is beside a link, without the effects of rows: from a vague prior the way is long, and each sweep short."""

_LEAST = (1.5, 4.0)
"""Log-odds for 1 that the data give a number which stays at 1: half the square of a weight in units of its standard
deviation, less a half. So weights of two and of three standard deviations stay."""

_NO_EFFECT = 1e6
"""Precision of effects on log-odds at which there are none."""


def settled(
    problem: Problem, q: Mapping[Variable, Any], row_map: RowMap
) -> tuple[Problem, dict[Variable, Any]]:
    """Return global factors after the first rounds; as they are, where no plates are nested."""
    outer = outer_variables(problem.bound.nodes, problem.order)
    others = [variable for variable in problem.order if variable not in outer]
    if not outer or not others:
        return problem, dict(q)
    of_outer, of_others = problem.updating(outer), problem.updating(others)
    rounds = Alternating(of_outer, of_others, lambda kept: {**kept, **prior_start(of_outer, kept)})
    state = iterate(rounds, rounds.init(Beginning(problem, q, row_map)), _ROUNDS)
    if state.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return problem, dict(state.q)


def brought_near(
    problem: Problem,
    q: dict[Variable, Any],
    fixed: Mapping[Variable, Any],
    row_map: RowMap,
    sweeps: Settings = _FIRST_SWEEPS,
) -> Begun:
    """Return where first sweeps over everything but the fixed globals lead; as they are where that is not a fit."""
    others = [variable for variable in problem.order if variable not in fixed]
    if not others or not fixed:
        return Begun((problem, q))
    try:
        if _wait_for_none(problem, others):
            held = {variable: own for variable, own in q.items() if variable not in others}
            return _once_updated(problem, held, others, row_map) or Begun((problem, q))
        schedule = as_exact_as(row_map, Batch(None))
        first = schedule.init(Beginning(problem.updating(others), q, row_map))
        found = schedule.finish(iterate(schedule, first, sweeps))
    except ImproperError:
        return Begun((problem, q))
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if found.status not in (Status.CONVERGED, None):
        return Begun((problem, q))
    # what is compiled for all of them is there, unless reference points have moved
    back = (
        problem if found.problem.coordinates is problem.coordinates else found.problem.updating(problem.order)
    )
    return Begun(
        (back, {variable: found.q[variable] for variable in problem.order}), gone_on_from(found, back)
    )


def updated_at_once(problem: Problem, fixed: Mapping[Variable, Any], row_map: RowMap) -> Begun | None:
    """Return where everything but the fixed globals is updated once; None where that waits for more, or is no fit.

    Where the others begin does not matter then, nor what their priors are as factors.
    """
    others = [variable for variable in problem.order if variable not in fixed]
    if not (others and fixed and _wait_for_none(problem, others)) or precisions_of_effects(problem, fixed):
        return None
    try:
        return _once_updated(problem, fixed, others, row_map)
    except ImproperError:
        return None


def _once_updated(
    problem: Problem, held: Mapping[Variable, Any], others: Sequence[Variable], row_map: RowMap
) -> Begun | None:
    """Return where updates of globals lead that do not depend on each other, in rows of which nothing is hidden.

    None where that has collapsed.
    """
    factors, rows = dict(held), row_map.at(problem.rows)
    arrays, look = statistics_of(problem, held), rows.look(Coefficients({}, {}))
    arrays.update(look.summary.parts)
    for variable in others:
        factors[variable] = problem.update(variable, arrays)
        problem.tell(arrays, variable, factors[variable])
    if has_collapsed(problem, factors, arrays):
        return None
    factors = {variable: factors[variable] for variable in problem.order}
    return Begun((problem, factors), Batch().at(begun(problem, factors, arrays, rows, look)))


def _wait_for_none(problem: Problem, others: Sequence[Variable]) -> bool:
    """Whether no update of some globals depends on any of these, or on where its own factor is."""
    return problem.fact(("apart", *others), lambda: _are_apart(problem, others))


def _are_apart(problem: Problem, others: Sequence[Variable]) -> bool:
    """Whether the updates of some globals depend on none of these, so that a second sweep is as the first."""
    names = {variable.name for variable in others}
    return (
        not problem.factors
        and all(
            not (variable.is_point or variable in problem.sequential or problem.updates[variable].meets)
            for variable in others
        )
        and all(
            sum(isinstance(key, StatisticKey) and key.variable in names for key in term.contraction.keys) < 2
            for term in problem.compiled.terms
        )
    )


def with_wide_effects(basis: Basis, spread: float = 0.0) -> Iterator[Callable[[], Start]]:
    """Yield a start with effects so wide that none is held at zero, until all else settles; none if priors do.

    Parameters
    ----------
    spread
        Standard deviation of the logarithms by which chance multiplies the precisions that are held.
    """
    points = widths_of(basis.problem, basis.q, basis.row_map)
    if points:
        held = {
            own: replace(point, value=point.value * np.exp(spread * basis.rng.standard_normal()))
            for own, point in points.items()
        }
        yield lambda: brought_near(basis.problem, {**basis.q, **held}, held, basis.row_map).start


def with_late_effects(basis: Basis) -> Iterator[Callable[[], Start]]:
    """Yield a start in which effects of rows wait, until what all rows have in common has settled; none without both.

    Beside coefficients that are as wide as a vague prior, an answer behind a logistic link tells of its predictor only
    how far to go, by thousands: an effect of the row goes there first, and coefficients follow it slowly.
    """
    problem = basis.problem
    hidden = [variable for factor in problem.factors for variable in factor.variables]
    if not any(variable.weighs_answer for variable in hidden):
        return
    precisions = [own for v in hidden for own in learnt_in(problem, v, "precision") if isinstance(own, Gamma)]
    held: dict[Variable, Any] = {
        own: problem.with_known(own, PointMass.of(own, np.full(shape_of(problem, own), _NO_EFFECT)))
        for own in precisions
    }
    if held:
        yield lambda: _with_late(basis, held)


def _with_late(basis: Basis, held: Mapping[Variable, Any]) -> Start:
    problem, q = brought_near(
        basis.problem, {**basis.q, **held}, held, basis.row_map, _SWEEPS_WITHOUT_EFFECTS
    ).start
    return problem, {**q, **{own: basis.q[own] for own in held}}


def with_wide_steps(basis: Basis, row_map: RowMap) -> tuple[Basis, list[Callable[[], Start]]]:
    """Return a start with chains so wide that they follow their values, until all else settles; none if priors do.

    Before it is the basis whose rows follow each other, over which it settles.

    Parameters
    ----------
    row_map
        Passes over all rows.
    """
    problem = basis.problem
    held = widths_of_steps(Setting(problem, basis.sample, {}), basis.q)
    if not held:
        return basis, []
    if not basis.sample.is_in_order:
        sample = in_order(row_map.source, problem.chains)
        basis = replace(basis, sample=sample, row_map=RowMap(problem.rows, sample, row_map.executor.host))
    return basis, [lambda: brought_near(problem, {**basis.q, **held}, held, basis.row_map).start]


def with_absent(basis: Basis, guess: Guess) -> Iterator[Callable[[], Start]]:
    """Yield starts in which weights that the data hardly ask for are absent, until all else settles.

    A global number 0 or 1 that multiplies a weight begins at 1, to let the data inform the weight. If the probability
    of these numbers is learnt, it then says that nearly all are 1, and keeps weights near zero. None are yielded
    without such numbers.
    """
    if basis.present:
        yield from (partial(_with_few_present, basis, guess, least) for least in _LEAST)


def _with_few_present(basis: Basis, guess: Guess, least: float) -> Start:
    """Return globals beside numbers that are 1 only where the data give them so many log-odds."""
    problem, q, arrays = from_labels(basis, guess)
    held: dict[Variable, Any] = {}
    for variable in basis.present:
        (natural,), (own,) = problem.optima[variable].natural(arrays), own_natural(problem, variable, arrays)
        held[variable] = PointMass.of(variable, np.where(natural - own > least, 1.0, 0.0))
    return brought_near(problem, {**q, **held}, held, basis.row_map).start
