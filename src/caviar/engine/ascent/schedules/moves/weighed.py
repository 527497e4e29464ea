"""Splits and merges of components, whose number changes: what they gain, less what another component costs.

The globals of a component cost their divergence from the prior. With it the gain of a merge or a cut is the change of
the objective, with the other globals and the rows of the other components as they are; the weights alone are left out.
"""

from __future__ import annotations

import numpy as np

from ....._errors import ImproperError
from ....._typing import Array
from ...state import AscentState
from .components import Components, chosen_plates, why_no_swaps
from .swaps import Mixture


@np.errstate(all="ignore")
def weighed(state: AscentState) -> Mixture | None:
    """Return a mixture whose gains count the cost of components; None if its moves cannot be judged one by one.

    So it is where components share a factor: all of them moved at once leave no squares for a common precision.
    """
    if why_no_swaps(state.problem):
        return None
    components = Components.of(state.problem)
    bare = Mixture(state, components)
    try:
        prior = bare.given_components(np.zeros_like(bare.natural))
    except ImproperError:
        return None
    learnt = [own for own in components.own if prior.q[own].learnt is prior.q[own]]
    if any(len(prior.q[own].batch_shape) != len(own.plates) for own in learnt):
        return None
    plates = chosen_plates(state.problem)
    axes = {own: next(i for i, plate in enumerate(own.plates) if plate in plates) for own in learnt}

    def cost(now: AscentState) -> Array:
        total = np.zeros(components.size)
        for own, axis in axes.items():
            each = now.q[own].kl(prior.q[own])
            total += np.moveaxis(each, axis, 0).reshape(components.size, -1).sum(axis=1)
        return total

    return Mixture(state, components, cost)
