"""The global factors that follow from local ones by their own updates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...._errors import ImproperError
from ...._typing import Array
from ....language import MultivariateNormal, Nonnegative, Normal, Slot, SparseVector, Variable
from ...ascent.problem import Problem, statistics_of
from ...binding.coordinates import refuse_far_priors
from ...compiled.shared.coupled_normals import CoupledVariable
from ...design.keys import StatisticKey
from ...local.categorical import CategoricalFactor
from ...local.gated import SwitchedFactor
from ...local.local_factor import LocalFactor
from ...local.statistics import LocalState, Rows
from ...rows.row_map import RowMap
from ...rows.tasks import RowSource
from .pooling import is_pooled, unpooled

Swept: TypeAlias = tuple[Problem, dict[Variable, Any], dict[Hashable, Array]]
"""A problem, its global factors, and their statistics with the sums over rows."""


_SHARE = 0.05
"""Share of each row that all components get where some have too few rows of their own."""

_SWEEPS = 2
"""Sweeps over the globals with the start's local factors: the precision waits for the mean, and the mean for it."""

_MOST_SWEEPS, _SETTLED = 30, 1e-3
"""The same where locations are added up, and wait for each other; and the relative change of these that ends them."""


def swept(
    problem: Problem,
    q: dict[Variable, Any],
    give: Callable[[Rows], LocalState],
    source: RowSource,
    row_map: RowMap,
    fixed: frozenset[Variable],
) -> Swept:
    """Return the globals that follow from local factors by their own updates, locations first, and their statistics.

    The sums over rows are among these.
    """
    problem, q, arrays = _sums(problem, q, give, source, row_map)
    if sweep(problem, q, arrays, fixed):
        return problem, q, arrays
    # a component under a flat prior has too few rows for its update: let each have a share of all rows
    problem, q, arrays = _sums(
        problem, q, lambda rows: _softened(problem.factors, give(rows)), source, row_map
    )
    sweep(problem, q, arrays, fixed)
    return problem, q, arrays


def _sums(
    problem: Problem,
    q: dict[Variable, Any],
    give: Callable[[Rows], LocalState],
    source: RowSource,
    row_map: RowMap,
) -> tuple[Problem, dict[Variable, Any], dict[Hashable, Array]]:
    """Return expected statistics and sums over rows, measured from each component's own mean where that is far out."""
    arrays = statistics_of(problem, q)
    summary = row_map.at(problem.rows).sum_given(give, problem.rows.starting_coefficients(arrays))
    moved, q = problem.centred_on(summary.parts, q)
    if moved is not problem:
        problem, arrays = moved, statistics_of(moved, q)
        summary = row_map.at(problem.rows).sum_given(give, problem.rows.starting_coefficients(arrays))
    arrays.update(summary.parts)
    return problem, q, arrays


def sweep(
    problem: Problem, q: dict[Variable, Any], arrays: dict[Hashable, Array], fixed: frozenset[Variable]
) -> bool:
    """Update the globals in place, locations first; return whether each had an update inside its family."""
    complete = True
    # of locations that are added up the one that comes first takes their level: that with an unknown mean is free to
    order, of_sums = problem.fact("order of a sweep", lambda: _order_of_sweep(problem))
    added = [variable for variable in of_sums if variable not in fixed]
    as_before = problem.fact("as before", lambda: _as_before(problem, order)) if not added else ()
    for number in range(_MOST_SWEEPS if len(added) > 1 else _SWEEPS):
        before = [arrays[StatisticKey(variable.name, "x")] for variable in added]
        for variable in order:
            if variable in fixed or (number and variable in as_before):
                continue
            try:
                q[variable] = (
                    unpooled(problem, variable, arrays) if not number else problem.update(variable, arrays)
                )
            except ImproperError:
                if not problem.bound.is_flat(variable):
                    refuse_far_priors(problem.bound, problem.coordinates)
                    raise
                complete = False
                continue
            problem.tell(arrays, variable, q[variable])
        if number < _SWEEPS and problem.groups and problem.bound.numbers_in_part:
            _place_together(problem, q, arrays, fixed)
        after = [arrays[StatisticKey(variable.name, "x")] for variable in added]
        if number >= _SWEEPS and all(map(_is_settled, before, after)):
            break
    return complete


def _place_together(
    problem: Problem, q: dict[Variable, Any], arrays: dict[Hashable, Array], fixed: frozenset[Variable]
) -> None:
    """Move locations that will share a factor to where they are best together; their variances stay as they are.

    One after another, the intercept and the slope of a covariate far from 0 would take thousands of sweeps there. The
    fit would make up for that, but values that rows lack begin where the globals of the start say. Where nothing says
    yet how much an answer tells of its predictor, they would be far beyond.
    """
    if any(own.weighs_answer for factor in problem.factors for own in factor.variables):
        return
    for joint in problem.together.coupled:
        if not isinstance(joint, CoupledVariable) or not fixed.isdisjoint(joint.members):
            continue
        try:
            best = problem.together.update(joint, arrays).marginals
        except (ImproperError, np.linalg.LinAlgError):
            continue
        for own in joint.members:
            q[own] = q[own].translate(best[own.name].mean - q[own].mean)
            problem.tell(arrays, own, q[own])


def _order_of_sweep(problem: Problem) -> tuple[list[Variable], list[Variable]]:
    """Return the globals in the order of a first sweep, and those of them that are added up."""
    order = sorted(problem.order, key=lambda v: (_is_no_location(v), not is_pooled(problem, v)))
    return order, [variable for variable in order if _is_added(problem, variable)]


def _as_before(problem: Problem, order: Sequence[Variable]) -> frozenset[Variable]:
    """Return the globals whose second update in this order is as the first: what it depends on has not changed."""
    found: list[Variable] = []
    for place, variable in enumerate(order):
        changed = {own.name for own in order[place + 1 :]} | {
            own.name for own in order[:place] if own not in found
        }
        is_plain = not (variable.is_point or variable in problem.sequential or is_pooled(problem, variable))
        if is_plain and _needed(problem, variable).isdisjoint(changed):
            found.append(variable)
    return frozenset(found)


def _needed(problem: Problem, variable: Variable) -> set[str]:
    """Return the names of the globals that the update of another one depends on."""
    own = [problem.compiled.terms[number] for number in problem.updates[variable].terms]
    keys = [key for term in (*own, *problem.compiled.zero_terms) for key in term.contraction.keys]
    needed = {key.variable for key in keys if isinstance(key, StatisticKey)} - {variable.name}
    return needed - _precision_of_mode(problem, variable)


def _precision_of_mode(problem: Problem, variable: Variable) -> set[str]:
    """Return the name of the precision that leaves a point where it is: the mean of all that has it, its prior flat.

    Its linear and its quadratic natural parameter are proportional to that precision, and the mode is their quotient.
    """
    bound = problem.bound
    is_mean = isinstance(variable, Normal | MultivariateNormal) and variable in problem.point
    if not is_mean or not bound.is_flat(variable) or bound.of(variable).clamped is not None:
        return set()
    of_children = [
        node.slots
        for node in bound.nodes
        if isinstance(node, Variable) and any(slot.node is variable for slot in node.slots.values())
    ]
    if any(own.keys() != {"mean", "precision"} for own in of_children):
        return set()
    if not all(_have_one_each(own["mean"], own["precision"]) for own in of_children):
        return set()
    names = {own["precision"].node.name for own in of_children}
    return names if len(names) == 1 else set()


def _have_one_each(mean: Slot, precision: Slot) -> bool:
    """Whether each repetition of a mean meets one repetition of a precision alone."""
    is_chosen_alike = not precision.chosen or (
        len(mean.chosen) == len(precision.chosen) == 1
        and mean.index is precision.index
        and mean.through is precision.through is None
    )
    return is_chosen_alike and set(precision.node.plates) <= set(mean.node.plates)


def _is_added(problem: Problem, variable: Variable) -> bool:
    """Whether a location is added to others, or multiplied: each is found given the others."""
    return isinstance(variable, Normal | MultivariateNormal | Nonnegative | SparseVector) and any(
        slot.role.adds_up
        for node in problem.bound.nodes
        if isinstance(node, Variable) and variable in set(node.parents)
        for slot in node.slots.values()
    )


def _is_settled(before: Array, after: Array) -> bool:
    return bool(np.abs(after - before).max() <= _SETTLED * np.abs(after).max())


def _is_no_location(variable: Variable) -> bool:
    if variable.has_zeros or isinstance(variable, Nonnegative):
        return False
    return not any(slot.role.moves for slot in variable.slots.values())


def _softened(factors: Sequence[LocalFactor], state: LocalState) -> LocalState:
    """Return local statistics with a share of each row spread over all categories."""
    for factor in factors:
        if isinstance(factor, CategoricalFactor | SwitchedFactor):
            for key, shape in factor.shapes.items():
                view = factor.view(state[factor.key], key)
                # the categories are the last axis of a Categorical's own factor, the first ones of a joint one
                of_labels = [
                    place for place, axis in enumerate(factor.axes[key]) if axis in factor.categories
                ]
                axes = tuple(of_labels or [len(shape) - 1])
                everyone = view.mean(axis=axes, keepdims=True)
                view[...] = (1 - _SHARE) * view + _SHARE * everyone
    return state
