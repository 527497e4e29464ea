"""Starts of ordinary mixtures with very many components: one guess, brought near its optimum on a few rows.

A race of several guesses, each with all responsibilities, costs more than such a fit. So there is one guess, a few
steps of k-means from centres that are drawn far from each other. Passes over some rows of the sample, with few
responsibilities each, take the place of the first passes over all rows, in which components move most.

Source of the draws: Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding" (SODA 2007).
"""

from __future__ import annotations

import numpy as np

from ..._errors import ImproperError
from ..ascent.driver import Settings
from ..ascent.few_responsibilities import FEW, VERY_MANY, with_every, with_few
from ..ascent.problem import Problem, statistics_of
from ..ascent.schedule import Beginning
from ..ascent.schedules.batch import Batch
from ..local.categorical import CategoricalFactor
from ..rows.e_step import IndependentRows
from ..rows.subsample import SAMPLE_ROWS
from ..rows.truncated.truncated_rows import why_not_truncated
from .candidates import start_from
from .clustering.kmeans import kmeans
from .factors.given_locals import GivenLocals
from .factors.prior import Start
from .factors.swept import sweep
from .guesses.basis import Basis, Guess
from .race import Begun, Race

_ROWS, _FEWEST_ROWS = 20, 4
"""Rows of the sample for each component, and the fewest of a sample that is part of the rows."""

_DRAWN_FROM, _STEPS = 10, 5
"""Rows for each component that k-means draws its first centres from, and its steps."""

_NEAR = Settings(max_iter=40, tol=1e-3)
"""Passes over the sample: beyond them components fit its rows, and no others."""


def rows_of_start(problem: Problem, n_rows: int) -> int:
    """Return the largest number of rows of the sample that a start of a model with so many rows is made from."""
    sizes = [own.n_rows for own in problem.factors if isinstance(own, CategoricalFactor)]
    several = _ROWS * max(sizes, default=0)
    return max(SAMPLE_ROWS, several if several < n_rows else 0)


def has_very_many(basis: Basis) -> bool:
    """Whether a model is an ordinary mixture of very many components, and the sample part of its rows."""
    if len(basis.gates) != 1 or basis.gates[0].size < VERY_MANY or basis.problem.point:
        return False
    (gate,), sample = basis.gates, basis.sample
    is_known = gate.has_known_labels or basis.is_of_answers
    return sample.is_part and sample.n_rows >= _FEWEST_ROWS * gate.size and basis.is_plain and not is_known


def start_of_very_many(basis: Basis) -> Begun:
    """Return where a mixture of very many components begins."""
    (gate,) = basis.gates
    (cloud,) = basis.clouds(gate)
    most = _DRAWN_FROM * gate.size
    labels = kmeans(cloud.points, cloud.weights, gate.size, basis.rng, max_iter=_STEPS, most_points=most)
    problem, q = _start(basis, {gate.variable: labels})
    rows = problem.rows
    if isinstance(rows, IndependentRows) and not why_not_truncated(rows):
        few = with_few(problem, FEW)
        race = Race(basis.row_map.at(few.rows), basis.sample, np.inf, basis.passes)
        reached = race.run(Batch(None).init(Beginning(few, q, race.row_map)), _NEAR)
        if reached is not None:
            problem, q = with_every(reached.problem), dict(reached.q)
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
    return (problem, q) if is_complete else start_from(basis, guess)
