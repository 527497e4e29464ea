"""Trials: starts that are iterated for a while before anything else is decided.

They are those of models that multiply what several labels choose, which all go on before they race, and the only one of
an ordinary mixture with very many components.

The labels of a product wait for each other. Neither the objective before the first iteration nor a few iterations later
tell where such a start ends: of two dozen the best one was in the middle after twelve iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..._errors import ImproperError
from ..._typing import Array
from ...language import Variable
from ..ascent.driver import Settings
from ..ascent.problem import Problem, statistics_of
from ..ascent.schedule import Beginning
from ..ascent.schedules.batch import Batch, BatchState
from ..ascent.schedules.relaxed import Relaxed
from ..ascent.schedules.truncated import VERY_MANY, Looks
from ..local.categorical import CategoricalFactor
from ..rows.subsample import SAMPLE_ROWS, Sample, sample_of
from ..rows.tasks import RowSource
from .clustering.kmeans import kmeans
from .factors.given_locals import GivenLocals
from .factors.prior import Start
from .factors.swept import sweep
from .guesses.basis import Basis, Guess
from .guesses.from_labels import from_labels
from .products.scales import balanced
from .products.statement import multiplies_labels, products_of
from .race import Begun, Race

_FEW = 8
"""Starts that are few enough to race as they are."""

_KEPT = 4
"""Starts that are left."""

_MOST_NUMBERS = 200_000
"""Rows times numbers that globals consist of, up to which passes are cheap enough."""

_FOR_A_WHILE = Settings(max_iter=50, tol=1e-5)

_BRIEFLY = Settings(max_iter=20, tol=1e-5)
"""Within which states that were drawn have fallen silent, or have begun to tell what the values do."""

_UNTIL_SETTLED = Settings(max_iter=100, tol=1e-5)
"""Within which chains that begin wide have come down to the steps that their values have: some need sixty passes."""

_SILENT = 0.25
"""Nats a value that a start is behind another one whose states do not fall silent."""

_HIGHER = 1e-4
"""Nats a value by which one end is higher than another: by less they may differ that are the same."""

_NOTHING = 1e-3
"""Mean square of loadings, beside that of others, below which a state is silent: at 1e-6 they were, at 0.03 not."""

_ROWS, _FEWEST_ROWS = 20, 4
"""Rows of the sample for each component, and the fewest of a sample that is part of the rows."""

_DRAWN_FROM, _STEPS = 10, 5
"""Rows for each component that k-means draws its first centres from, and its steps."""

_NEAR = Settings(max_iter=14, tol=1e-3)
"""Passes over the sample: beyond them components fit its rows, and no others."""


def tried(basis: Basis, starts: Sequence[Callable[[], Start]]) -> Sequence[Callable[[], Start]]:
    """Return the best starts after a while; all as they are, of other models, of few starts and of large tables."""
    problem, n_rows = basis.problem, basis.sample.n_rows
    is_dear = n_rows * problem.n_natural > _MOST_NUMBERS
    if is_dear or len(starts) <= _FEW or not multiplies_labels(problem):
        return starts
    race = Race(basis.row_map, basis.sample, float("inf"), basis.passes)
    states = [state for start in starts if (state := _after_a_while(race, start)) is not None]
    best = sorted(states, key=lambda state: -state.elbo)[:_KEPT]
    return [partial(_start_of, state) for state in best] or starts


def _after_a_while(
    race: Race, start: Callable[[], Start], settings: Settings = _FOR_A_WHILE
) -> BatchState | None:
    try:
        return race.run(Batch().init(Beginning(*start(), race.row_map)), settings)
    except ImproperError:
        return None


def unless_silent(basis: Basis, drawn: Start, others: Sequence[Callable[[], Start]]) -> Start:
    """Return a start, or the best of others if its hidden vectors have fallen silent and it is far behind."""
    own, best = _beside_the_best(basis, drawn, others, _BRIEFLY)
    if own is None or best is None:
        return drawn
    gained = best.elbo - own.elbo
    is_left = gained > _SILENT * _n_observed(basis) or (gained > 0 and _is_silent(own, best))
    return _start_of(best) if is_left else drawn


def unless_lower(basis: Basis, drawn: Start, others: Sequence[Callable[[], Start]]) -> Start:
    """Return a start, or where the best of others ends if that is higher."""
    own, best = _beside_the_best(basis, drawn, others, _UNTIL_SETTLED)
    if own is None or best is None or best.elbo - own.elbo <= _HIGHER * _n_observed(basis):
        return drawn
    return _start_of(best)


def _beside_the_best(
    basis: Basis, drawn: Start, others: Sequence[Callable[[], Start]], settings: Settings
) -> tuple[BatchState | None, BatchState | None]:
    """Return where a start comes to, and the best of where others do; None of what is no fit."""
    race = Race(basis.row_map, basis.sample, float("inf"), basis.passes)
    own = _after_a_while(race, lambda: drawn, settings) if others else None
    states = [state for start in others if (state := _after_a_while(race, start, settings)) is not None]
    return own, max(states, key=lambda state: state.elbo, default=None)


def _is_silent(own: BatchState, other: BatchState) -> bool:
    """Whether coordinates of hidden vectors tell nothing: what multiplies them is nearly nothing beside another start.

    Coordinates are taken by size, since their order means nothing.
    """
    products = [product for several in products_of(own.problem).values() for product in several]
    factors = {product.other.variable for product in products} & set(own.q)
    squares = [
        [_by_coordinate(np.asarray(state.q[variable].mean)) for variable in factors] for state in (own, other)
    ]
    return any((one < _NOTHING * of_other).any() for one, of_other in zip(*squares, strict=True))


def _by_coordinate(mean: Array) -> Array:
    """Return the mean squares of vectors by coordinate, the largest first."""
    size = mean.shape[-1] if mean.ndim else 1
    return np.sort(np.square(mean).reshape(-1, size).mean(axis=0))[::-1]


def _n_observed(basis: Basis) -> float:
    """Return the weight of all rows times the values of each, known numbers beside them left out."""
    names = {node.name for node in basis.problem.compiled.sources if isinstance(node, Variable)}
    sizes = [own.shape[1:] for key, own in basis.sample.columns.items() if key.name in names]
    return basis.sample.total_weight * sum(map(math.prod, sizes))


def _start_of(state: BatchState) -> Start:
    return balanced((state.problem, dict(state.q)))


def sample_of_start(problem: Problem, source: RowSource) -> Sample:
    """Return the rows that a start is made from: of a model with very many components some for each of them."""
    n_rows, largest = source.n_rows, SAMPLE_ROWS
    for factor in problem.factors:
        if VERY_MANY <= factor.n_rows < n_rows / _ROWS and isinstance(factor, CategoricalFactor):
            largest = max(SAMPLE_ROWS, _ROWS * factor.n_rows)
    return sample_of(source, largest) if n_rows else Sample({}, np.empty(0))


def has_very_many(basis: Basis) -> bool:
    """Whether a model is an ordinary mixture of very many components, and its sample is large enough."""
    if len(basis.gates) != 1 or basis.problem.point:
        return False
    (gate,), sample = basis.gates, basis.sample
    is_known = gate.has_known_labels or basis.is_of_answers
    is_many = VERY_MANY <= gate.size <= sample.n_rows / _FEWEST_ROWS
    return is_many and basis.is_plain and not is_known


def start_of_very_many(basis: Basis, looks: Callable[[Problem], Looks | None]) -> Begun:
    """Return where a mixture of very many components begins: at one guess, brought near its optimum on a few rows.

    A race of several guesses, each with all responsibilities, costs more than such a fit. So there is one guess, a few
    steps of k-means from centres that are drawn far from each other. Passes over the sample, with few responsibilities
    each, take the place of the first passes over all rows, in which components move most.

    Parameters
    ----------
    looks
        Returns the passes with few responsibilities per row, None if the model has none.
    """
    (gate,) = basis.gates
    (cloud,) = basis.clouds(gate)
    most = _DRAWN_FROM * gate.size
    labels = kmeans(cloud.points, cloud.weights, gate.size, basis.rng, max_iter=_STEPS, most_points=most)
    problem, q = _start(basis, {gate.variable: labels})
    own = looks(problem)
    if own is not None:
        few = own.sparing(problem)
        race = Race(basis.row_map.at(few.rows), basis.sample, np.inf, basis.passes)
        reached = race.run(Relaxed().init(Beginning(few, q, race.row_map)), _NEAR, Relaxed())
        if reached is not None:
            problem, q = own.every(reached.problem), dict(reached.q)
    return Begun((problem, q), rows_raced=basis.rows_passed)


def _start(basis: Basis, guess: Guess) -> Start:
    """Return the globals that follow from labels of the rows, block by block: for all at once there are too many.

    Unlike in other starts no component is measured from the mean of its cluster. Where many rows share values most of
    them would be, and nearly all would go back before the first pass.
    """
    problem, q = basis.problem, dict(basis.q)
    arrays = statistics_of(problem, q)
    give = GivenLocals(problem, q, guess, basis.row_map)
    summary = basis.row_map.at(problem.rows).sum_given(give, problem.rows.starting_coefficients(arrays))
    arrays.update(summary.parts)
    try:
        is_complete = sweep(problem, q, arrays, frozenset())
    except ImproperError:
        is_complete = False
    return (problem, q) if is_complete else from_labels(basis, guess)[:2]
