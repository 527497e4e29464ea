"""Priors as factors: where the globals are before any data are seen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ...._errors import ImproperError
from ...._typing import Array
from ....language import MultivariateNormal, Normal, Variable
from ...ascent.problem import Problem, statistics_of
from ...binding.clamped.factor import PointMass
from ...compiled.global_update import updates_of
from ...compiled.known_zeros import possible
from ...design.keys import StatisticKey

Start: TypeAlias = tuple[Problem, dict[Variable, Any]]
"""Global factors, and the problem whose reference points they are measured from."""


@np.errstate(all="ignore")
def prior_start(problem: Problem, given: Mapping[Variable, Any] | None = None) -> dict[Variable, Any]:
    """Return every global factor at its prior, but those that are given."""
    q: dict[Variable, Any] = dict(given or {})
    arrays = statistics_of(problem, q)
    places = {node: place for place, node in enumerate(problem.bound.nodes)}
    # parents come after their children in the order of the nodes
    for variable in sorted(problem.order, key=places.__getitem__, reverse=True):
        if variable not in q:
            q[variable] = prior_factor(problem, variable, arrays)
            problem.tell(arrays, variable, q[variable])
    for variable in problem.order:
        if variable.follows_answer and variable not in (given or {}):
            # its prior says nothing, not even which values it may have
            q[variable] = problem.update(variable, arrays)
            problem.tell(arrays, variable, q[variable])
    return {variable: q[variable] for variable in problem.order}


def prior_factor(problem: Problem, variable: Variable, arrays: Mapping[Hashable, Array]) -> Any:
    """Return the prior of a global variable given its parents as a factor; a flat prior becomes as broad as the data.

    A point mass is at the mode of the prior, or at its mean where the mode is at the edge of the domain: from
    precisions of 0 no location has an update.
    """
    if _is_flat_location(problem, variable):
        return _broad(problem, variable)
    natural = own_natural(problem, variable, arrays)
    try:
        factor = problem.kinds[variable].factor(natural)
    except ImproperError:
        return _broad(problem, variable)
    value = factor.value if factor.learnt is None else None
    if isinstance(value, np.ndarray | np.generic) and variable.problem_with(np.asarray(value)):
        inside: Any = variable.family.from_natural(natural)
        return problem.with_known(variable, PointMass.of(variable, inside.mean))
    return factor


def _is_flat_location(problem: Problem, variable: Variable) -> bool:
    """Whether a flat prior gives a variable no distribution at all, not even one without a mode."""
    is_location = isinstance(variable, Normal | MultivariateNormal)
    return is_location and problem.bound.is_flat(variable) and problem.bound.of(variable).clamped is None


def _broad(problem: Problem, variable: Variable) -> Any:
    """Return a factor as broad as the data, or a point at a value to begin with."""
    plates, spread = _shape(problem, variable), _spread(problem, variable)
    broad = None if variable in problem.point else variable.broad_factor(plates, spread)
    return problem.with_known(variable, broad or PointMass.of(variable, variable.unit_value(plates, spread)))


def prior_draw(
    problem: Problem, variable: Variable, arrays: Mapping[Hashable, Array], rng: np.random.Generator
) -> Any:
    """Return the prior of a global location as a factor, moved to a draw from it (about 0 if it is flat)."""
    factor = prior_factor(problem, variable, arrays)
    if factor.learnt is None:
        try:
            prior = variable.family.from_natural(own_natural(problem, variable, arrays))
        except ImproperError:
            moved = factor.translate(_spread(problem, variable) * rng.standard_normal(np.shape(factor.value)))
            return problem.with_known(variable, moved)
    else:
        prior = factor
    return problem.with_known(variable, factor.translate(np.asarray(prior.sample(seed=rng)) - factor.mean))


def prior_point(
    problem: Problem, variable: Variable, arrays: Mapping[Hashable, Array], rng: np.random.Generator
) -> Any:
    """Return a draw from the prior of a global variable as a point, its parents given; as broad as data if flat."""
    try:
        prior: Any = variable.family.from_natural(own_natural(problem, variable, arrays))
    except ImproperError:
        prior = variable.broad_factor(_shape(problem, variable), _spread(problem, variable))
        if prior is None:
            return prior_factor(problem, variable, arrays)
    return problem.with_known(variable, PointMass.of(variable, prior.sample(seed=rng)))


def own_natural(problem: Problem, variable: Variable, arrays: Mapping[Hashable, Array]) -> tuple[Array, ...]:
    """Return natural parameters from the terms of the variable's own prior."""
    belief = problem.bound.of(variable).prior
    if belief is not None:
        reference = problem.coordinates.of(variable)
        alone: Any = belief.alone
        return alone.natural if reference is None else alone.translate(-reference).natural
    update = problem.updates[variable]
    places, are_all_fixed = problem.fact(
        ("terms of its prior", variable), lambda: _own_places(problem, variable)
    )
    if are_all_fixed:
        return tuple(update.fixed)
    total = [np.zeros(fixed.shape) for fixed in update.fixed]
    for place, number, position, statistic in places:
        said = (
            problem.compiled.terms[number].message(position)(arrays)
            if place is None
            else update.said(place, arrays)
        )
        total[statistic] = total[statistic] + said
    own = [term for term in problem.compiled.zero_terms if term.owner is variable]
    if not own:
        return tuple(total)
    return possible(updates_of([variable], own, problem.bound)[variable], tuple(total), arrays)


def _own_places(problem: Problem, variable: Variable) -> tuple[list[tuple[int | None, int, int, int]], bool]:
    """Return where the statistics of a variable are in the terms of its own prior: term, position and statistic.

    Before these is the place of the message among those of its update, None where that has none. And whether these are
    all that is fixed in its update.
    """
    places = [
        (number, position, variable.family.statistics.index(key.statistic))
        for number in set(problem.updates[variable].terms)
        if problem.compiled.terms[number].owner is variable
        for position, key in enumerate(problem.compiled.terms[number].contraction.keys)
        if isinstance(key, StatisticKey) and key.variable == variable.name
    ]
    changing, fixed = [
        [(number, position, statistic) for statistic, number, position in own]
        for own in (problem.updates[variable].places_changing, problem.updates[variable].places_fixed)
    ]
    said = {own: place for place, own in enumerate((*changing, *fixed))}
    rules_out = any(term.owner is variable for term in problem.compiled.zero_terms)
    return [(said.get(own), *own) for own in places], set(fixed) == set(places) and not rules_out


def _shape(problem: Problem, variable: Variable) -> tuple[int, ...]:
    return tuple(problem.bound.sizes[plate] for plate in variable.plates)


def _spread(problem: Problem, variable: Variable) -> float:
    """Return the standard deviation of the data that a variable is about, over all columns; 1 if there is none."""
    children = (
        node for node in problem.bound.nodes if isinstance(node, Variable) and variable in set(node.parents)
    )
    for node in (variable, *children):
        spread = problem.coordinates.spread_of(node)
        if spread is not None and spread.max() > 0:
            return float(spread.max() * np.sqrt(np.mean(np.square(spread / spread.max()))))
    return 1.0
