"""Starts from chance: those after the first, which are there to end elsewhere.

The first start is the winner of a race between good guesses. It would win it again and again, so the others are one
guess each, which no race corrects: labels of the rows nearest to some of them, of clusters, or random ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Variable
from ..clusters import partition, partitions
from ..documents.binding import DocumentBinding
from ..documents.start import drawn_topics
from ..kmeans import kmeans
from ..passes import Passes
from ..plan import Plan
from ..priors import prior_point
from ..ragged import outer_variables
from ..sample import Sample
from ..settling import settled
from ..trials import Start, best_of
from .basis import Basis
from .data_start import basis_of, start_from
from .gates import Gate

__all__ = ["chance_start", "drawn_start"]


def chance_start(plan: Plan, sample: Sample, passes: Passes, rng: np.random.Generator) -> Start:
    """Return global factors from labels that chance gives, to rows of a subsample and to everything else."""
    if isinstance(plan.binding, DocumentBinding):
        return drawn_topics(plan, sample, passes, rng)
    basis = basis_of(plan, sample, passes, rng)
    if not (plan.factors or basis.gates):
        return plan, dict(basis.q)
    start = start_from(basis, {gate.variable: _labels(basis, gate) for gate in basis.gates})
    if outer_variables(plan.binding.nodes, plan.order):
        return settled(*start, passes)
    return best_of([lambda: start], basis.sample, basis.passes)


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


def _labels(basis: Basis, gate: Gate) -> AnyArray:
    """Return labels of a gate in one of several ways that chance chooses; random ones where it has no points."""
    shape, clouds = gate.shape(basis.plan, basis.sample.n_rows), basis.clouds(gate)
    way = basis.rng.integers(4) if clouds else 0
    if way == 0:
        return basis.rng.integers(0, gate.size, shape)
    points, weights = clouds[0].points, clouds[0].weights
    if way == 1:
        return partition(points, weights, gate.size, basis.rng).reshape(shape)
    if way == 2:
        # small clusters merged, where there are enough points for them
        return partitions(points, weights, gate.size, basis.rng, many=False)[-1].reshape(shape)
    return kmeans(points, weights, gate.size, basis.rng, max_iter=0).reshape(shape)
