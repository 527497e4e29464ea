"""Splits and merges of components, whose number changes: what they gain, less what another component costs.

The globals of a component cost their divergence from the prior. With it the gain of a merge or a cut is the change of
the objective, with the other globals and the rows of the other components as they are; the weights alone are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._errors import ImproperError
from ...._typing import Array
from ....language import Variable
from ..problem import Problem
from ..state import AscentState
from .components import Components, chosen_plates, why_no_swaps
from .swaps import Mixture


@np.errstate(all="ignore")
def weighed(state: AscentState) -> Mixture | None:
    """Return a mixture whose gains count the cost of components; None if it is not one whose moves can be judged."""
    if why_no_swaps(state.problem):
        return None
    components = Components.of(state.problem)
    bare = Mixture(state, components)
    try:
        prior = bare.given_components(np.zeros_like(bare.natural))
    except ImproperError:
        return None
    return Mixture(state, components, _cost_against(prior, state, components))


def _cost_against(
    prior: AscentState, state: AscentState, components: Components
) -> Callable[[AscentState], Array]:
    """Return what tells the cost of each component of a state, (K,): of what they share each has an equal part."""
    learnt = [own for own in components.own if prior.q[own].learnt is prior.q[own]]
    axes = {own: _axis_of(state.problem, own, prior.q[own]) for own in learnt}
    apart = [own for own, axis in axes.items() if axis is not None]
    shared = sum(float(np.sum(state.q[own].kl(prior.q[own]))) for own in axes if own not in apart)

    def cost(now: AscentState) -> Array:
        total = np.full(components.size, shared / components.size)
        for own in apart:
            each = now.q[own].kl(prior.q[own])
            total += np.moveaxis(each, axes[own] or 0, 0).reshape(components.size, -1).sum(axis=1)
        return total

    return cost


def _axis_of(problem: Problem, own: Variable, factor: Any) -> int | None:
    """Return the axis of the batch of a factor along which the components are; None if all are in one of it."""
    plates = chosen_plates(problem)
    (axis, *_) = (i for i, plate in enumerate(own.plates) if plate in plates)
    return axis if len(factor.batch_shape) == len(own.plates) else None
