"""Starts of ordinary mixtures with very many components: the leaves of one tree of clusters, without a race.

A race of several guesses, and k-means of as many clusters, cost more than such a fit. The leaves of a tree have about
as many rows each, so that components are where the rows are; to make them costs the logarithm of their number.
"""

from __future__ import annotations

import numpy as np

from ..._errors import ImproperError
from ..ascent.problem import Problem, statistics_of
from ..local.categorical import CategoricalFactor
from ..rows.subsample import SAMPLE_ROWS
from ..rows.truncated.neighbours import leaves_of_neighbours
from .candidates import start_from
from .factors.given_locals import GivenLocals
from .factors.prior import Start
from .factors.swept import sweep
from .guesses.basis import Basis, Guess
from .race import Begun

_VERY_MANY = 200
"""Components from which on they are very many."""

_ROWS, _FEWEST_ROWS = 50, 10
"""Rows of a sample for each component, and the fewest for which leaves are clusters."""


def rows_of_start(problem: Problem) -> int:
    """Return the largest number of rows of the sample that a start of a model is made from."""
    sizes = [own.n_rows for own in problem.factors if isinstance(own, CategoricalFactor)]
    most = max(sizes, default=0)
    return max(SAMPLE_ROWS, _ROWS * most) if most >= _VERY_MANY else SAMPLE_ROWS


def has_very_many(basis: Basis) -> bool:
    """Whether a model is an ordinary mixture with a posterior of very many components, and its rows are enough."""
    if len(basis.gates) != 1 or basis.gates[0].size < _VERY_MANY or basis.problem.point:
        return False
    (gate,) = basis.gates
    is_known = gate.has_known_labels or basis.is_of_answers
    return basis.is_plain and not is_known and basis.sample.n_rows >= _FEWEST_ROWS * gate.size


def start_of_very_many(basis: Basis) -> Begun:
    """Return where a mixture of very many components begins."""
    (gate,) = basis.gates
    (cloud,) = basis.clouds(gate)
    return Begun(_start(basis, {gate.variable: leaves_of_neighbours(cloud.points, gate.size)}))


def _start(basis: Basis, guess: Guess) -> Start:
    """Return the globals that follow from labels of the rows, block by block: for all at once they are too many numbers.

    Unlike other starts none is measured from the mean of its cluster before the first pass: where there are values that
    many rows share most clusters would be, and nearly all of their components go back at once.
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
