"""Starts from chance: those after the first, which are there to end elsewhere.

The first start is the winner of a race between good guesses. It would win it again and again, so the others are one
guess each, which no race corrects: labels of the rows nearest to some of them, of clusters, or random ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from .._typing import AnyArray, Array
from ..language import Variable
from .clusters import location_points, partition
from .documents.binding import DocumentBinding
from .documents.start import drawn_topics
from .draws import drawn
from .given import with_labels
from .given_start import brought_near
from .kmeans import kmeans
from .passes import Passes
from .plan import Plan
from .point import PointMass
from .priors import prior_draw, prior_point, prior_start
from .products_of_unknowns import multiplied_together
from .ragged import outer_variables
from .sample import Sample
from .settling import settled
from .start import Start, globals_from, named
from .state import statistics_of
from .sums import LocalState, Rows
from .trials import best_of

__all__ = ["chance_start", "drawn_start"]


def chance_start(plan: Plan, sample: Sample, passes: Passes, rng: np.random.Generator) -> Start:
    """Return global factors from labels that chance gives, to rows of a subsample and to everything else."""
    if isinstance(plan.binding, DocumentBinding):
        return drawn_topics(plan, sample, passes, rng)
    fixed = {v: _drawn_labels(plan, v, rng) for v in plan.order if hasattr(v, "categories")}
    q = prior_start(plan, fixed)
    for several in multiplied_together(plan.binding.nodes, plan.order):
        for variable in several:
            if variable not in fixed and hasattr(q[variable], "translate"):
                q[variable] = prior_draw(plan, variable, statistics_of(plan, q), rng)
    if not plan.factors:
        return brought_near(plan, q, fixed, passes)
    every = Rows(sample.columns, sample.row_weights, sample.n_rows, slice(0, sample.n_rows))
    state: LocalState = drawn(plan, q, sample, passes, rng)
    for factor in plan.factors:
        points = location_points(plan, factor, sample)
        if points is not None:
            labels = _labels(points, sample.row_weights, factor.variables[0].dimension or 1, rng)
            state[factor] = with_labels(plan, factor, named(plan, factor, labels, sample), every)

    def give(rows: Rows) -> LocalState:
        return {factor: values[:, rows.where].copy() for factor, values in state.items()}

    start = globals_from(plan, q, give, sample, passes, frozenset(fixed))
    if outer_variables(plan.binding.nodes, plan.order):
        return settled(*start, passes)
    return best_of([start], sample, passes.executor)


def drawn_start(plan: Plan, rng: np.random.Generator) -> dict[Variable, Any]:
    """Return every global factor at a draw from its prior; one about 0, as broad as the data, where that is flat."""
    places = {node: place for place, node in enumerate(plan.binding.nodes)}
    q: dict[Variable, Any] = {}
    arrays: dict[Hashable, Array] = {}
    # parents come after their children in the order of the nodes
    for variable in sorted(plan.order, key=places.__getitem__, reverse=True):
        q[variable] = prior_point(plan, variable, arrays, rng)
        arrays.update(plan.statistics(variable, q[variable]))
    return {variable: q[variable] for variable in plan.order}


def _drawn_labels(plan: Plan, variable: Variable, rng: np.random.Generator) -> Any:
    """Return random labels of a global variable as its factor, known ones at their values."""
    shape = tuple(plan.binding.sizes[plate] for plate in variable.plates)
    labels = rng.integers(0, variable.dimension or 1, shape)
    return plan.with_known(variable, PointMass.of(variable, labels))


def _labels(points: Array, weights: Array, n_clusters: int, rng: np.random.Generator) -> AnyArray:
    """Return labels of weighted points in one of several ways that chance chooses."""
    way = rng.integers(3)
    if way == 0:
        return rng.integers(0, n_clusters, len(points))
    if way == 1:
        return partition(points, weights, n_clusters, rng)
    return kmeans(points, weights, n_clusters, rng, max_iter=0)
