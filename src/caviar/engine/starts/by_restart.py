"""Starts from chance: those after the first, which are there to end elsewhere.

The first start is the winner of a race between good guesses. It would win it again and again, so the others are one
guess each, which no race corrects: labels of the rows nearest to some of them, of clusters, or random ones. Of ordinary
mixtures with points in the place of all globals they are several, of which a race keeps the best: a likelihood has so
many local optima that races between other guesses end elsewhere.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Variable
from ..ascent.problem import Problem
from ..binding.nested import outer_variables
from ..rows.row_map import RowMap
from ..rows.subsample import Sample
from ..topics.lowering import BoundDocuments
from ..topics.start import drawn_topics
from .clustering.kmeans import kmeans
from .clustering.partitions import partition, partitions
from .components.gates import Gate
from .factors.prior import prior_point
from .from_data import basis_of, start_from
from .guesses.basis import Basis, Guess
from .race import Begun, best_of
from .warm_up import settled

__all__ = ["chance_start", "drawn_start"]


_GUESSES = 6
"""Guesses of a restart where a likelihood is climbed."""

_MOST_STRAYS = 0.4
"""Share at most of the members of clusters that get random labels."""


def chance_start(problem: Problem, sample: Sample, passes: RowMap, rng: np.random.Generator) -> Begun:
    """Return global factors from labels that chance gives, to rows of a subsample and to everything else."""
    if isinstance(problem.bound, BoundDocuments):
        return Begun(drawn_topics(problem, sample, passes, rng))
    basis = basis_of(problem, sample, passes, rng)
    if not (problem.factors or basis.gates):
        return Begun((problem, dict(basis.q)))
    if outer_variables(problem.bound.nodes, problem.order):
        return Begun(settled(*start_from(basis, _guess(basis)), passes))
    several = basis.is_plain and problem.point.issuperset(problem.order)
    guesses = [_guess(basis) for _ in range(_GUESSES if several else 1)]
    return best_of([partial(start_from, basis, guess) for guess in guesses], basis.sample, basis.passes)


def drawn_start(problem: Problem, rng: np.random.Generator) -> dict[Variable, Any]:
    """Return every global factor at a draw from its prior; one about 0, as broad as the data, where that is flat."""
    places = {node: place for place, node in enumerate(problem.bound.nodes)}
    q: dict[Variable, Any] = {}
    arrays: dict[Hashable, Array] = {}
    # parents come after their children in the order of the nodes
    for variable in sorted(problem.order, key=places.__getitem__, reverse=True):
        q[variable] = prior_point(problem, variable, arrays, rng)
        arrays.update(problem.statistics(variable, q[variable]))
    return {variable: q[variable] for variable in problem.order}


def _guess(basis: Basis) -> Guess:
    return {gate.variable: _labels(basis, gate) for gate in basis.gates}


def _labels(basis: Basis, gate: Gate) -> AnyArray:
    """Return labels of a gate in one of several ways that chance chooses; random ones where it has no points.

    Of clusters some members get random labels: easy clusters are the same from every seed.
    """
    rng, size = basis.rng, gate.size
    shape, clouds = gate.shape(basis.problem, basis.sample.n_rows), basis.clouds(gate)
    way = rng.integers(4) if clouds else 0
    if way == 0:
        return rng.integers(0, size, shape)
    points, weights = clouds[0].points, clouds[0].weights
    if way == 1:
        labels = partition(points, weights, size, rng)
    elif way == 2:
        # small clusters merged, where there are enough points for them
        labels = partitions(points, weights, size, rng, many=False)[-1]
    else:
        labels = kmeans(points, weights, size, rng, max_iter=0)
    strays = rng.random(len(labels)) < rng.uniform(0.0, _MOST_STRAYS)
    return np.where(strays, rng.integers(0, size, len(labels)), labels).reshape(shape)
