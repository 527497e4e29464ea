"""Priors as factors: where the globals stand before any data are seen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ...._errors import ImproperError
from ...._typing import Array
from ....language import Variable
from ...ascent.problem import Plan, statistics_of
from ...binding.clamped.point_mass import PointMass
from ...compiled.global_update import possible, updates_of
from ...design.keys import StatisticKey

__all__ = ["Start", "own_natural", "prior_draw", "prior_factor", "prior_point", "prior_start"]


Start: TypeAlias = tuple[Plan, dict[Variable, Any]]
"""Global factors, and the plan whose reference points they are measured from."""


def prior_start(plan: Plan, given: Mapping[Variable, Any] | None = None) -> dict[Variable, Any]:
    """Return every global factor at its prior, but those that are given."""
    q: dict[Variable, Any] = dict(given or {})
    arrays = statistics_of(plan, q)
    places = {node: place for place, node in enumerate(plan.binding.nodes)}
    # parents come after their children in the order of the nodes
    for variable in sorted(plan.order, key=places.__getitem__, reverse=True):
        if variable not in q:
            q[variable] = prior_factor(plan, variable, arrays)
            arrays.update(plan.statistics(variable, q[variable]))
    return {variable: q[variable] for variable in plan.order}


def prior_factor(plan: Plan, variable: Variable, arrays: Mapping[Hashable, Array]) -> Any:
    """Return the prior of a global variable as a factor, its parents given; as broad as the data where it is flat."""
    try:
        return plan.factor(variable, own_natural(plan, variable, arrays))
    except ImproperError:
        plates, spread = _shape(plan, variable), _spread(plan, variable)
        broad = None if variable in plan.point else variable.unit_factor(plates, spread)
        return plan.with_known(variable, broad or PointMass.of(variable, variable.unit_value(plates, spread)))


def prior_draw(
    plan: Plan, variable: Variable, arrays: Mapping[Hashable, Array], rng: np.random.Generator
) -> Any:
    """Return the prior of a global location as a factor, moved to a draw from it; a draw about 0 where it is flat."""
    factor = prior_factor(plan, variable, arrays)
    if isinstance(factor, PointMass):
        try:
            prior = variable.family.from_natural(own_natural(plan, variable, arrays))
        except ImproperError:
            moved = factor.translate(_spread(plan, variable) * rng.standard_normal(np.shape(factor.value)))
            return plan.with_known(variable, moved)
    else:
        prior = factor
    return plan.with_known(variable, factor.translate(np.asarray(prior.sample(seed=rng)) - factor.mean))


def prior_point(
    plan: Plan, variable: Variable, arrays: Mapping[Hashable, Array], rng: np.random.Generator
) -> Any:
    """Return a draw from the prior of a global variable as a point, its parents given; as broad as data if flat."""
    try:
        prior: Any = variable.family.from_natural(own_natural(plan, variable, arrays))
    except ImproperError:
        prior = variable.unit_factor(_shape(plan, variable), _spread(plan, variable))
        if prior is None:
            return prior_factor(plan, variable, arrays)
    return plan.with_known(variable, PointMass.of(variable, prior.sample(seed=rng)))


def own_natural(plan: Plan, variable: Variable, arrays: Mapping[Hashable, Array]) -> tuple[Array, ...]:
    """Return natural parameters from the terms of the variable's own prior."""
    update = plan.updates[variable]
    total = [np.zeros(fixed.shape) for fixed in update.fixed]
    for number in set(update.terms):
        term = plan.compiled.terms[number]
        if term.owner is not variable:
            continue
        for position, factor in enumerate(term.contraction.factors):
            key = factor.key
            if isinstance(key, StatisticKey) and key.variable == variable.name:
                statistic = variable.family.statistics.index(key.statistic)
                total[statistic] = total[statistic] + term.derivative(position)(arrays)
    own = [term for term in plan.compiled.zero_terms if term.owner is variable]
    return possible(updates_of([variable], own, plan.binding)[variable], tuple(total), arrays)


def _shape(plan: Plan, variable: Variable) -> tuple[int, ...]:
    return tuple(plan.binding.sizes[plate] for plate in variable.plates)


def _spread(plan: Plan, variable: Variable) -> float:
    """Return the standard deviation of the data that a variable is about, over all columns; 1 if there is none."""
    children = (
        node for node in plan.binding.nodes if isinstance(node, Variable) and variable in node.parents
    )
    for node in (variable, *children):
        spread = plan.frame.spread_of(node)
        if spread is not None and spread.max() > 0:
            return float(spread.max() * np.sqrt(np.mean(np.square(spread / spread.max()))))
    return 1.0
