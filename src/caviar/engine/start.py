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

from .._errors import ImproperError, ParameterError
from .._typing import AnyArray, Array
from ..families import ExponentialFamily
from ..families._base import MeanPrecision
from ..language import Indexed, MultivariateNormal, Normal, NormalGamma, Part, Predictor, Variable
from ..language.roles import PRECISION, PRECISION_MATRIX
from .clusters import further_kmeans, in_original_units, location_points, partition, partitions
from .documents.binding import DocumentBinding
from .documents.start import drawn_topics, given_tokens
from .draws import drawn
from .frame import refuse_far_priors
from .given import GivenLocals, with_labels
from .given_factors import refuse_other_factor
from .label_matching import named_by_labels
from .locals import CategoricalFactor, GatedFactor, LocalFactor
from .matching import matched
from .partly_known import PartlyKnown
from .passes import Passes
from .plan import Plan
from .point import PointMass
from .priors import prior_draw, prior_start
from .ragged import outer_variables
from .sample import Sample
from .settling import settled
from .state import statistics_of
from .sums import LocalState, Rows
from .trials import Start, best_of
from .work import RowSource

__all__ = ["Start", "data_start", "given_start"]

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
            factor: with_labels(plan, factor, _named(plan, factor, own, sample), every)
            for factor, own in labels.items()
        }
        state = {**expected, **given}

        def give(rows: Rows) -> LocalState:
            return {factor: values[:, rows.where].copy() for factor, values in state.items()}

        return _globals_from(plan, q, give, sample, passes, frozenset())

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
    if plan.point.issuperset(plan.order):
        # a likelihood has more local optima than an ELBO, so more starts compete
        several = (in_original_units(plan, factor, sample, values), values)
        found += further_kmeans(found, several, weights, sizes[factor], rng)
    return [{factor: labels} for labels in found]


def _named(plan: Plan, factor: LocalFactor, labels: AnyArray, sample: Sample) -> AnyArray:
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


def given_start(plan: Plan, init: Mapping[str, Any], passes: Passes) -> Start:
    """Return global factors from given values: of globals, as points or factors; of local variables, for all rows.

    Raises
    ------
    ParameterError
        If a name is unknown, or a value has the wrong shape.
    """
    by_name = {variable.name: variable for variable in plan.binding.latent}
    unknown = [name for name in init if name not in by_name]
    if unknown:
        names = ", ".join(by_name)
        raise ParameterError(f"init names '{unknown[0]}', which is no latent variable; those are {names}")
    given = {by_name[name]: value for name, value in init.items()}
    fixed = {v: _as_factor(plan, v, value) for v, value in given.items() if v in plan.order}
    q = prior_start(plan, fixed)
    labelled = {v: value for v, value in given.items() if v not in plan.order}
    if not labelled:
        return plan, q
    if isinstance(plan.binding, DocumentBinding):
        give = given_tokens(plan, plan.binding, labelled, fixed)
    else:
        give = GivenLocals(plan, q, labelled, passes)
    return _globals_from(plan, q, give, passes.source, passes, frozenset(fixed))


def _globals_from(
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


def _as_factor(plan: Plan, variable: Variable, value: Any) -> Any:
    """Return a given value of a global as a factor: a family member as it is, anything else as a point."""
    factor: Any = value
    if not isinstance(value, ExponentialFamily | PartlyKnown | PointMass):
        factor = _as_point(plan, variable, value)
    refuse_other_factor(plan, variable, factor)
    reference = plan.frame.of(variable)
    moved = factor if reference is None else factor.translate(-reference)
    return plan.with_known(variable, moved)


def _as_point(plan: Plan, variable: Variable, value: Any) -> PointMass:
    plates = tuple(plan.binding.sizes[plate] for plate in variable.plates)
    if "precision" in variable.family.statistics:
        return PointMass.of(variable, _as_pair(variable, value))
    shape = plates + (variable.dimension or 1,) * variable.value_rank
    try:
        point = np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"init of '{variable.name}' must fit shape {shape}; got {value!r}") from None
    problem = "must be finite" if not np.isfinite(point).all() else variable.problem_with(point)
    if problem:
        raise ParameterError(f"init of '{variable.name}', a {type(variable).__name__}, {problem}")
    return PointMass.of(variable, point)


def _as_pair(variable: Variable, value: Any) -> MeanPrecision:
    """Return a given value of a joint factor as (mean, precision)."""
    try:
        mean, precision = (np.asarray(part, dtype=np.float64) for part in value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"init of '{variable.name}', a {type(variable).__name__}, is a distribution or a pair (mean, precision), "
            f"each over its plates; got {value!r}"
        ) from None
    matrix = getattr(variable, "precision_rank", 0) == 2
    n_tied = len(variable.plates) - len(variable.plates_of("precision"))
    if precision.ndim != mean.ndim - variable.value_rank - n_tied + 2 * matrix:
        problem = f"has shape {precision.shape} for a mean of shape {mean.shape}"
    elif not np.isfinite(mean).all():
        problem = "goes with a mean that must be finite"
    else:
        problem = (PRECISION_MATRIX if matrix else PRECISION).problem(precision)
        problem = problem or ("" if np.any(precision) else "must be positive")
    if problem:
        raise ParameterError(f"the precision in init of '{variable.name}' {problem}; got {value!r}")
    return MeanPrecision(mean, precision)
