"""Starts: the global factors that the loop begins with.

A start is made of local factors for a subsample of the rows: labels by k-means where a Categorical chooses
a location, random draws where there is no such notion. The globals follow from these by their own updates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._errors import ImproperError, ModelError, ParameterError
from .._typing import AnyArray, Array
from ..families import ExponentialFamily
from ..language import Variable
from .clusters import cluster, location_points
from .locals import CategoricalFactor, FamilyFactor, GatedFactor, LocalFactor
from .loop import statistics_of
from .passes import Passes, RowSource
from .plan import Plan
from .point import PointMass
from .priors import prior_factor
from .sample import Sample
from .sums import LocalState

__all__ = ["data_start", "given_start", "prior_start"]

_SWEEPS = 2
"""Sweeps over the globals with the start's local factors: the precision waits for the mean, and the mean for it."""


def prior_start(plan: Plan, given: Mapping[Variable, Any] | None = None) -> dict[Variable, Any]:
    """Return every global factor at its prior, but those that are given."""
    q: dict[Variable, Any] = dict(given or {})
    # parents come after their children in the order of the nodes
    for variable in sorted(plan.order, key=plan.binding.nodes.index, reverse=True):
        if variable not in q:
            q[variable] = prior_factor(plan, variable, statistics_of(plan, q))
    return {variable: q[variable] for variable in plan.order}


def data_start(plan: Plan, sample: Sample, passes: Passes, rng: np.random.Generator) -> dict[Variable, Any]:
    """Return global factors from local factors that k-means or chance give to a subsample."""
    q = prior_start(plan)
    if not plan.factors:
        return q
    points = {factor: location_points(plan, factor, sample) for factor in plan.factors}
    expected = _drawn(plan, q, sample, passes, rng) if any(p is None for p in points.values()) else {}
    for factor, values in points.items():
        if values is not None:
            labels = cluster(values, sample.row_weights, factor.variables[0].dimension or 1, rng)
            expected[factor] = _with_labels(plan, factor, labels, sample)
    return _globals_from(plan, q, expected, sample, passes, frozenset())


def given_start(
    plan: Plan, init: Mapping[str, Any], source: RowSource, passes: Passes
) -> dict[Variable, Any]:
    """Return global factors from given values: of globals, as points or factors; of local variables, for all rows.

    Raises
    ------
    ParameterError
        If a name is unknown, or a value has the wrong shape.
    """
    by_name = {variable.name: variable for variable in plan.binding.latent}
    unknown = [name for name in init if name not in by_name]
    if unknown:
        raise ParameterError(
            f"init names '{unknown[0]}', which is no latent variable; those are {', '.join(by_name)}"
        )
    given = {by_name[name]: value for name, value in init.items()}
    fixed = {v: _as_factor(plan, v, value) for v, value in given.items() if v in plan.order}
    q = prior_start(plan, fixed)
    labelled = {v: value for v, value in given.items() if v not in plan.order}
    if not labelled:
        return q
    naturals = _conditional(plan, q, source, passes)
    expected: LocalState = {}
    for factor, natural in naturals.items():
        expected[factor] = natural
        factor.infer(expected[factor])
        for variable in factor.variables:
            if variable in labelled:
                expected[factor] = _from_given(plan, factor, variable, labelled[variable], source)
    return _globals_from(plan, q, expected, source, passes, frozenset(fixed))


# -- globals ------------------------------------------------------------------------------------------------------


def _globals_from(
    plan: Plan,
    q: dict[Variable, Any],
    expected: LocalState,
    source: RowSource,
    passes: Passes,
    fixed: frozenset[Variable],
) -> dict[Variable, Any]:
    """Return the globals that follow from local factors by their own updates, locations first."""
    arrays = statistics_of(plan, q)
    arrays.update(passes.sum_given(plan, source, expected, plan.rows.coefficients(arrays)).parts)
    order = sorted(plan.order, key=lambda v: not any(slot.role.moves for slot in v.slots.values()))
    for _ in range(_SWEEPS):
        for variable in order:
            if variable in fixed:
                continue
            try:
                q[variable] = plan.update(variable, arrays)
            except ImproperError:
                if not variable.is_flat:
                    raise
                # nothing was assigned to a component under a flat prior: it keeps its place; the loop tells a collapse
                continue
            arrays.update(plan.statistics(variable, q[variable]))
    return q


def _as_factor(plan: Plan, variable: Variable, value: Any) -> Any:
    """Return a given value of a global as a factor: a family member as it is, anything else as a point."""
    factor: Any = value
    if not isinstance(value, ExponentialFamily | PointMass):
        factor = _as_point(plan, variable, value)
    reference = plan.frame.of(variable)
    return factor if reference is None else factor.translate(-reference)


def _as_point(plan: Plan, variable: Variable, value: Any) -> PointMass:
    plates = tuple(plan.binding.sizes[plate] for plate in variable.plates)
    try:
        if isinstance(value, tuple):
            return PointMass(variable.family, value)
        event = (variable.dimension or 1,) * variable.value_rank
        return PointMass(
            variable.family, np.broadcast_to(np.asarray(value, dtype=np.float64), plates + event)
        )
    except (TypeError, ValueError):
        raise ParameterError(f"init of '{variable.name}' must fit shape {plates}; got {value!r}") from None


# -- locals -------------------------------------------------------------------------------------------------------


def _conditional(plan: Plan, q: Mapping[Variable, Any], source: RowSource, passes: Passes) -> LocalState:
    """Return natural parameters of every local factor given the globals, for all rows of a source."""
    coefficients = plan.rows.coefficients(statistics_of(plan, q))
    blocks = list(passes.natural_parameters(plan, source, coefficients))
    return {factor: np.concatenate([block[factor] for block in blocks], axis=1) for factor in plan.factors}


def _drawn(
    plan: Plan, q: Mapping[Variable, Any], sample: Sample, passes: Passes, rng: np.random.Generator
) -> LocalState:
    """Return local factors that are points, drawn from what they are given globals at their priors."""
    state: LocalState = {}
    for factor, natural in _conditional(plan, q, sample, passes).items():
        distributions = factor.distributions(natural)
        expected = np.zeros_like(natural)
        if isinstance(factor, GatedFactor):
            _draw_gated(factor, distributions, expected, rng)
        else:
            (variable,) = factor.variables
            values = distributions[variable].sample(seed=rng)
            for name, statistic in zip(
                variable.family.statistics, variable.statistics_of(values), strict=True
            ):
                factor.view(expected, (variable, name))[...] = np.moveaxis(statistic, 0, -1)
        state[factor] = expected
    return state


def _draw_gated(
    factor: GatedFactor, distributions: Mapping[Variable, Any], expected: Array, rng: np.random.Generator
) -> None:
    labels = distributions[factor.gate].sample(seed=rng)
    one_hot = factor.gate.statistics_of(labels)[0].T
    factor.view(expected, (factor.gate, "x"))[...] = one_hot
    for variable in factor.variables[1:]:
        values = distributions[variable].conditional.sample(seed=rng)
        for name, statistic in zip(variable.family.statistics, variable.statistics_of(values), strict=True):
            view = factor.view(expected, (variable, name))
            turned = np.moveaxis(np.moveaxis(statistic, 0, -1), 0, 0)
            view[...] = turned * one_hot.reshape(len(one_hot), *(1,) * (view.ndim - 2), -1)


def _with_labels(plan: Plan, factor: LocalFactor, labels: AnyArray, source: RowSource) -> Array:
    """Return expected statistics of a factor whose Categorical is known; see :func:`_seen_below` for the others."""
    gate = factor.variables[0]
    one_hot = gate.statistics_of(labels)[0].T if labels.ndim == 1 else np.ascontiguousarray(labels.T)
    if isinstance(factor, CategoricalFactor):
        return np.array(one_hot, dtype=np.float64)
    assert isinstance(factor, GatedFactor)
    expected = np.zeros((factor.n_rows, len(labels)))
    factor.view(expected, (gate, "x"))[...] = one_hot
    for variable in factor.variables[1:]:
        values = _seen_below(plan, variable, source)
        for name, statistic in zip(variable.family.statistics, variable.statistics_of(values), strict=True):
            view = factor.view(expected, (variable, name))
            view[...] = np.moveaxis(statistic, 0, -1)[None] * one_hot.reshape(
                len(one_hot), *(1,) * (view.ndim - 2), -1
            )
    return expected


def _seen_below(plan: Plan, variable: Variable, source: RowSource) -> Array:
    """Return a value of a gated variable for each row: what its child in the same group shows, or one."""
    columns = source.read(0, source.n_rows)
    for group in plan.frame.groups:
        if variable in group.variables:
            leaf = next(v for v in group.variables if v in plan.compiled.sources)
            return np.moveaxis(plan.compiled.sources[leaf].values(columns[leaf.name]), -1, 0)
    shape = (
        tuple(plan.binding.sizes[p] for p in variable.plates[1:])
        + (variable.dimension or 1,) * variable.value_rank
    )
    return np.ones((source.n_rows, *shape))


def _from_given(plan: Plan, factor: LocalFactor, variable: Variable, value: Any, source: RowSource) -> Array:
    """Return expected statistics from given labels (N,), probabilities (N, K), or values of a local variable."""
    array = np.asarray(value)
    if len(array) != source.n_rows:
        raise ParameterError(
            f"init of '{variable.name}' has {len(array)} rows; the data have {source.n_rows}"
        )
    if hasattr(variable, "categories"):
        if array.ndim == 1:
            problem = variable.problem_with(array)
            if problem:
                raise ParameterError(f"init of '{variable.name}' {problem}")
        elif array.shape[1:] != (variable.dimension,):
            raise ParameterError(
                f"init of '{variable.name}' must have shape (N,) or (N, {variable.dimension})"
            )
        return _with_labels(plan, factor, array, source)
    if not isinstance(factor, FamilyFactor):
        raise ModelError(f"init of '{variable.name}' is not possible inside the joint factor '{factor.name}'")
    reference = plan.frame.of(variable)
    values = array if reference is None else array - reference
    expected = np.zeros((factor.n_rows, len(array)))
    for name, statistic in zip(variable.family.statistics, variable.statistics_of(values), strict=True):
        factor.view(expected, (variable, name))[...] = np.moveaxis(statistic, 0, -1)
    return expected
