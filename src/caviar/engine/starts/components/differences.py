"""Differences: whether the priors distinguish the categories of a gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Axis, MarkovChain, StickBreaking
from ...ascent.problem import Problem, statistics_of
from ...compiled.terms import GlobalTerm
from ..factors.prior import own_natural, prior_start
from .gates import Gate

_ALIKE = 1e-9
"""Relative difference of two constants that is none."""


def differs_in_weights(problem: Problem, gate: Gate) -> bool:
    """Whether the categories of a gate differ in the prior of their probabilities."""
    if gate.variable.summed:
        return differs_in_steps(problem, gate)
    if "probabilities" not in gate.variable.slots:
        # predictors, whose effects have separate priors; those of sticks have a place in a sequence, too
        return gate.is_asked_in_turn
    node = gate.variable.slots["probabilities"].node
    if isinstance(node, StickBreaking):
        return True
    is_global = node in set(problem.order)
    own = Axis(node, "k") if is_global else Axis(gate.variable, "k")  # type: ignore[arg-type]
    owner = node if is_global else gate.variable
    return _varies(problem, {own}, lambda term: term.owner is owner)


def differs_in_steps(problem: Problem, gate: Gate) -> bool:
    """Whether the states of a chain differ in the priors of their first probabilities and transitions."""
    if not gate.has_table_of_steps:
        return gate.is_asked_in_turn
    (initial, _), (transition, _) = known_steps(problem, gate)
    off = transition[~np.eye(gate.size, dtype=bool)]
    return any(
        np.ptp(values) > _ALIKE * np.abs(values).max()
        for values in (initial, np.diag(transition), off)
        if values.size
    )


def known_steps(problem: Problem, gate: Gate) -> tuple[tuple[Array, bool], tuple[Array, bool]]:
    """Return initial (K,) and transition (K, K) probabilities, or concentrations; and whether they are known.

    Of a mixture of chains they are the mean over the kinds, and of steps that differ the mean over all.
    """
    assert isinstance(gate.variable, MarkovChain)
    q = prior_start(problem)
    arrays = statistics_of(problem, q)
    found = []
    for name, shape in (("initial", (gate.size,)), ("transition", (gate.size, gate.size))):
        slot = gate.variable.slots[name]
        node: Any = slot.node

        def over_kinds(values: AnyArray, shape: tuple[int, ...] = shape) -> Array:
            whole = np.broadcast_to(values, np.broadcast_shapes(np.shape(values), shape))
            return whole.reshape(-1, *shape).mean(axis=0)

        if node in problem.order and problem.bound.of(node).clamped is None:
            values = over_kinds(own_natural(problem, node, arrays)[0])
            found.append((values, False) if node not in problem.point else (np.ones(shape), False))
        elif node in problem.order:
            found.append((over_kinds(np.exp(q[node].expected_statistics[0])), True))
        else:
            found.append((over_kinds(problem.bound.values_of(node)), True))
    return found[0], found[1]


def differs_in_components(problem: Problem, gate: Gate) -> bool:
    """Whether what the categories of a gate choose differs in anything that is known, besides the steps of a chain."""
    chosen, others = set(gate.chosen), {gate.variable, *gate.steps}
    known = problem.bound.gathered("clamped")
    if any(chosen & set(variable.plates) for variable in known if variable not in others):
        return True
    return _varies(problem, set(gate.axes), lambda term: term.owner not in others)


def _varies(problem: Problem, axes: set[Axis], is_meant: Callable[[GlobalTerm], bool]) -> bool:
    """Whether the known part of a term varies along one of these axes."""
    terms = problem.compiled.terms
    for number, position, axis in problem.fact("constants along axes", lambda: _constant_axes(terms)):
        if axis in axes and is_meant(terms[number]):
            values = terms[number].contraction.constant
            first = values[(slice(None),) * position + (slice(1),)]
            if (np.abs(values - first) > _ALIKE * np.abs(values).max()).any():
                return True
    return False


def _constant_axes(terms: Sequence[GlobalTerm]) -> list[tuple[int, int, Axis]]:
    """Return the axes of the constants of all terms: number of the term, position of the axis, and the axis."""
    return [
        (number, position, axis)
        for number, term in enumerate(terms)
        for position, axis in enumerate(term.contraction.constant_axes)
    ]
