"""The global factors that follow from local ones by their own updates, and those that a user gives."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from .._errors import ImproperError, ParameterError
from .._typing import Array
from ..families import ExponentialFamily
from ..families._base import MeanPrecision
from ..language import Variable
from ..language.roles import PRECISION, PRECISION_MATRIX
from .documents.binding import DocumentBinding
from .documents.start import given_tokens
from .frame import refuse_far_priors
from .given import GivenLocals
from .given_factors import refuse_other_factor
from .locals import CategoricalFactor, GatedFactor
from .partly_known import PartlyKnown
from .passes import Passes
from .plan import Plan
from .point import PointMass
from .pooling import unpooled
from .priors import prior_start
from .state import statistics_of
from .sums import LocalState, Rows
from .trials import Start
from .work import RowSource

__all__ = ["given_start", "globals_from", "swept"]

_SHARE = 0.05
"""Share of each row that all components get where some have too few rows of their own."""

_SWEEPS = 2
"""Sweeps over the globals with the start's local factors: the precision waits for the mean, and the mean for it."""


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
    return globals_from(plan, q, give, passes.source, passes, frozenset(fixed))


def globals_from(
    plan: Plan,
    q: dict[Variable, Any],
    give: Callable[[Rows], LocalState],
    source: RowSource,
    passes: Passes,
    fixed: frozenset[Variable],
) -> Start:
    """Return the globals that follow from local factors by their own updates, locations first."""
    plan, q, _ = swept(plan, q, give, source, passes, fixed)
    return plan, q


def swept(
    plan: Plan,
    q: dict[Variable, Any],
    give: Callable[[Rows], LocalState],
    source: RowSource,
    passes: Passes,
    fixed: frozenset[Variable],
) -> tuple[Plan, dict[Variable, Any], dict[Hashable, Array]]:
    """Return the same as :func:`globals_from`, with the sums over rows and the statistics of the globals."""
    plan, q, arrays = _sums(plan, q, give, source, passes)
    if _sweep(plan, q, arrays, fixed):
        return plan, q, arrays
    # a component under a flat prior has too few rows for its update: let each have a share of all rows
    plan, q, arrays = _sums(plan, q, lambda rows: _softened(give(rows)), source, passes)
    _sweep(plan, q, arrays, fixed)
    return plan, q, arrays


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
    for number in range(_SWEEPS):
        for variable in sorted(plan.order, key=_is_no_location):
            if variable in fixed:
                continue
            try:
                q[variable] = (
                    unpooled(plan, variable, arrays) if not number else plan.update(variable, arrays)
                )
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
