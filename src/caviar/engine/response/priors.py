"""How the natural parameters of stated priors change with their parameters: tilts, from which sensitivities follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..._typing import AnyArray, Array, Statistics
from ...language import Constant, Variable
from ...numerics.linalg import symmetric_part
from ..ascent.problem import Problem
from ..compiled.stated_priors import stated_prior

_STEP = 1e-3
"""Relative to a parameter: natural parameters are of the second degree in it at the most, so any step is exact."""


class PriorParameter(NamedTuple):
    """A parameter of a prior that known numbers alone state."""

    variable: Variable
    name: str
    node: Constant
    value: Array


def parameters_of(problem: Problem) -> Iterator[PriorParameter]:
    """Yield the parameters of the priors of global variables that known numbers alone state."""
    values_of = problem.bound.values_of
    for variable in (own for each in problem.order for own in each.members or (each,)):
        if (
            problem.bound.of(variable).prior is not None
            or variable.is_flat
            or stated_prior(variable, values_of) is None
        ):
            continue
        for slot in variable.slots.values():
            assert isinstance(slot.node, Constant)
            yield PriorParameter(variable, slot.name, slot.node, values_of(slot.node))


def tilts_of(problem: Problem, parameter: PriorParameter, like: Statistics) -> Iterator[Statistics]:
    """Yield by how much the natural parameters of a prior change with each entry of one of its parameters.

    Two symmetric entries of a matrix change together, by half each.

    Parameters
    ----------
    like
        Natural parameters of the shapes that are wanted.
    """
    for value, change, step in _changes(parameter):
        above, below = (
            _prior(problem, parameter, value + sign * step * change).natural for sign in (1.0, -1.0)
        )
        pairs = zip(above, below, like, strict=True)
        yield tuple(np.broadcast_to((a - b) / (2.0 * step), np.shape(eta)) for a, b, eta in pairs)


def slopes_of_objective(
    problem: Problem, parameter: PriorParameter, expected: Statistics, counts: AnyArray
) -> Array:
    """Return the derivatives of the objective by each entry of a parameter of a prior, with factors at their optimum.

    At the optimum the objective does not change with the factors, so these are the derivatives of the expected log
    density of the prior alone. They are computed by differences of fourth order.

    Parameters
    ----------
    expected
        Statistics of the factor of the variable, measured from the frame.
    counts
        Which repetitions are in the objective, in the shape of the repetitions.
    """

    def at(value: Array) -> float:
        member = _prior(problem, parameter, value)
        total = -np.broadcast_to(member.log_partition, counts.shape)
        for eta, mean in zip(member.natural, expected, strict=True):
            product = np.broadcast_to(eta * mean, np.broadcast_shapes(np.shape(eta), np.shape(mean)))
            total = total + product.reshape(*counts.shape, -1).sum(axis=-1)
        return float(total[counts].sum())

    slopes = []
    for value, change, step in _changes(parameter):
        narrow, wide = (
            at(value + times * step * change) - at(value - times * step * change) for times in (1.0, 2.0)
        )
        slopes.append((8.0 * narrow - wide) / (12.0 * step))
    return np.reshape(slopes, parameter.value.shape)


def _changes(parameter: PriorParameter) -> Iterator[tuple[Array, Array, float]]:
    """Yield the value, and for each of its entries a change by one and the size of a step."""
    value = parameter.value
    is_matrix = value.ndim - len(parameter.node.plates) == 2
    for place in np.ndindex(value.shape):
        change = np.zeros(value.shape)
        change[place] = 1.0
        if is_matrix:
            change = symmetric_part(change)
        size = float(np.abs(value).max(initial=0.0))
        yield value, change, _STEP * (abs(float(value[place])) or size or 1.0)


def _prior(problem: Problem, parameter: PriorParameter, value: Array) -> Any:
    """Return a prior with a changed parameter, measured from the frame."""
    member: Any = stated_prior(parameter.variable, problem.bound.values_of, other={parameter.name: value})
    reference = problem.coordinates.of(parameter.variable)
    return member if reference is None else member.translate(-reference)
