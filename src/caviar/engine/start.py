"""Starts: the global factors that the loop begins with.

A start is made of local factors for a subsample of the rows: labels by clustering where a Categorical chooses
a location, random draws where there is no such notion. The globals follow from these by their own updates.
Globals that multiply each other begin at draws from their priors. Of several clusterings the one is kept that leads
to the highest objective on the subsample.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from .._errors import ImproperError
from .._typing import AnyArray, Array
from ..language import Indexed, MultivariateNormal, Normal, NormalGamma, Part, Predictor, Variable
from .clusters import location_points, partition, partitions
from .documents.binding import DocumentBinding
from .documents.start import drawn_topics
from .draws import drawn
from .frame import refuse_far_priors
from .given import with_labels
from .label_matching import named_by_labels
from .locals import CategoricalFactor, GatedFactor, LocalFactor
from .matching import matched
from .passes import Passes
from .plan import Plan
from .priors import prior_draw, prior_start
from .ragged import outer_variables
from .sample import Sample
from .settling import settled
from .state import statistics_of
from .sums import LocalState, Rows
from .trials import Start, best_of
from .work import RowSource

__all__ = ["Start", "data_start", "globals_from", "named"]

_SHARE = 0.05
"""Share of each row that all components get where some have too few rows of their own."""

_SWEEPS = 2
"""Sweeps over the globals with the start's local factors: the precision waits for the mean, and the mean for it."""


def data_start(plan: Plan, sample: Sample, passes: Passes, rng: np.random.Generator) -> Start:
    """Return global factors from local factors that k-means or chance give to a subsample."""
    if isinstance(plan.binding, DocumentBinding):
        return drawn_topics(plan, sample, passes, rng)
    q = prior_start(plan)
    for variable in _multiplied(plan):
        q[variable] = prior_draw(plan, variable, statistics_of(plan, q), rng)
    if not plan.factors:
        return plan, q
    points = {factor: location_points(plan, factor, sample) for factor in plan.factors}
    expected = drawn(plan, q, sample, passes, rng) if any(p is None for p in points.values()) else {}
    every = Rows(sample.columns, sample.row_weights, sample.n_rows, slice(0, sample.n_rows))
    several = _labels(plan, {factor: p for factor, p in points.items() if p is not None}, sample, rng)

    def start_from(labels: Mapping[LocalFactor, AnyArray]) -> Start:
        given = {
            factor: with_labels(plan, factor, named(plan, factor, own, sample), every)
            for factor, own in labels.items()
        }
        state = {**expected, **given}

        def give(rows: Rows) -> LocalState:
            return {factor: values[:, rows.where].copy() for factor, values in state.items()}

        return globals_from(plan, q, give, sample, passes, frozenset())

    starts = [start_from(labels) for labels in several]
    if outer_variables(plan.binding.nodes, plan.order):
        return settled(*starts[0], passes)
    return best_of(starts, sample, passes.executor)


def _labels(
    plan: Plan, points: Mapping[LocalFactor, Array], sample: Sample, rng: np.random.Generator
) -> list[dict[LocalFactor, AnyArray]]:
    """Return labels of the sample for each factor with points: several, where what chooses is one factor."""
    weights = sample.row_weights
    sizes = {factor: factor.variables[0].dimension or 1 for factor in points}
    if len(points) != 1:
        return [{factor: partition(values, weights, sizes[factor], rng) for factor, values in points.items()}]
    ((factor, values),) = points.items()
    if plan.chain is not None:
        # trials on a sample know no neighbours, so there is one start: small clusters merged, which serve states best
        return [{factor: partitions(values, weights, sizes[factor], rng, many=False)[-1]}]
    found = partitions(values, weights, sizes[factor], rng, many=sample.is_part)
    return [{factor: labels} for labels in found]


def named(plan: Plan, factor: LocalFactor, labels: AnyArray, sample: Sample) -> AnyArray:
    """Return clusters with the names of the components that known labels and locations tell."""
    if factor.labelled is not None:
        known = sample.columns[factor.labelled.name]
        labels = named_by_labels(labels, known, sample.row_weights, factor.variables[0].dimension or 1)
    return matched(plan, factor, labels, sample)


def _multiplied(plan: Plan) -> list[Variable]:
    """Return the global locations that another one multiplies in a predictor.

    Where all of these have mean 0 the ELBO has a saddle point, at which no update moves any of them.
    """
    found: dict[Variable, None] = {}
    predictors = (
        stated
        for node in plan.binding.nodes
        if isinstance(node, Variable)
        for stated in node.stated.values()
        if isinstance(stated, Predictor)
    )
    for addend in (addend for predictor in predictors for addend in predictor.addends):
        nodes = [op.node if isinstance(op, Indexed | Part) else op for op in addend.operands]
        locations = [n for n in nodes if isinstance(n, Normal | MultivariateNormal | NormalGamma)]
        together = [n for n in locations if n in plan.order]
        if len(together) > 1:
            # one of them away from 0 is enough: a joint factor may stay
            found.update(dict.fromkeys(n for n in together if not isinstance(n, NormalGamma)))
    return list(found)


def globals_from(
    plan: Plan,
    q: dict[Variable, Any],
    give: Callable[[Rows], LocalState],
    source: RowSource,
    passes: Passes,
    fixed: frozenset[Variable],
) -> Start:
    """Return the globals that follow from local factors by their own updates, locations first."""
    plan, q, arrays = _sums(plan, q, give, source, passes)
    if _sweep(plan, q, arrays, fixed):
        return plan, q
    # a component under a flat prior has too few rows for its update: let each have a share of all rows
    plan, q, arrays = _sums(plan, q, lambda rows: _softened(give(rows)), source, passes)
    _sweep(plan, q, arrays, fixed)
    return plan, q


def _sums(
    plan: Plan,
    q: dict[Variable, Any],
    give: Callable[[Rows], LocalState],
    source: RowSource,
    passes: Passes,
) -> tuple[Plan, dict[Variable, Any], dict[Hashable, Array]]:
    """Return expected statistics and sums over rows, measured from each component's own mean where that is far out."""
    arrays = statistics_of(plan, q)
    summary = passes.sum_given(plan, source, give, plan.rows.starting_coefficients(arrays))
    moved, q = plan.centred_on(summary.parts, q)
    if moved is not plan:
        plan, arrays = moved, statistics_of(moved, q)
        summary = passes.sum_given(plan, source, give, plan.rows.starting_coefficients(arrays))
    arrays.update(summary.parts)
    return plan, q, arrays


def _sweep(
    plan: Plan, q: dict[Variable, Any], arrays: dict[Hashable, Array], fixed: frozenset[Variable]
) -> bool:
    """Update the globals in place, locations first; return whether each had an update inside its family."""
    complete = True
    for _ in range(_SWEEPS):
        for variable in sorted(plan.order, key=_is_no_location):
            if variable in fixed:
                continue
            try:
                q[variable] = plan.update(variable, arrays)
            except ImproperError:
                if not plan.binding.is_flat(variable):
                    refuse_far_priors(plan.binding, plan.frame)
                    raise
                complete = False
                continue
            arrays.update(plan.statistics(variable, q[variable]))
    return complete


def _is_no_location(variable: Variable) -> bool:
    return not any(slot.role.moves for slot in variable.slots.values())


def _softened(state: LocalState) -> LocalState:
    """Return local statistics with a share of each row spread over all categories."""
    for factor, expected in state.items():
        if isinstance(factor, CategoricalFactor | GatedFactor):
            for key, shape in factor.shapes.items():
                view = factor.view(expected, key)
                # the categories are the last axis of a Categorical's own factor, the first of a joint one
                axis = 0 if isinstance(factor, GatedFactor) else len(shape) - 1
                everyone = view.sum(axis=axis, keepdims=True) / view.shape[axis]
                view[...] = (1 - _SHARE) * view + _SHARE * everyone
    return state
