"""A posterior integrated over some of its globals, one at a time, with a short row of fits that go through the rows.

Of several globals, each is integrated over with the others as independent factors. What this adds to the means and
variances of all else is added up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ...engine.ascent.state import AscentState
from ...engine.evaluation.given_by_passes import GivenByPasses, Passed, variances_of
from ...engine.response.cost import is_cheap_to_profile
from ...numerics.randomness import generator
from ..evidence.coordinates import Coordinates
from .at_once import Integral
from .lattice import Lattice, Place, explored

_STEP, _DEPTH = 1.6, 6.0
"""A step in standard deviations of q, and how far below the highest point the row ends, in nats."""

_FINER = 32
"""Steps of the finer row, on which values have weights, for one of the fits'."""

_LEAST_WEIGHT = 1e-6
"""Of a value, compared with the largest."""

_OF_Q = 500
"""Draws of q that say where it is."""


def profiles_of(factors: Mapping[str, Any], state: AscentState, names: Collection[str]) -> Integral | None:
    """Return the posterior integrated over each of some globals.

    None where one of them has several numbers or it costs much, and beside point masses.

    Parameters
    ----------
    factors
        Of the fit, by name.
    state
        Of the fit.
    names
        Of the globals.
    """
    if not names or any(np.size(factors[name].mean) != 1 for name in names):
        return None
    if any(own.learnt is not own for own in state.q.values()):
        # the density of a point is not that of an integral
        return None
    if not is_cheap_to_profile(state.problem, state.rows.source.n_rows, len(names)):
        return None
    found = [_profile(factors, state, name) for name in names]
    values, weights = (
        {k: v for own in found for k, v in getattr(own, figure).items()} for figure in ("values", "weights")
    )
    of_fit, shifts, variances = variances_of(state), {}, {}
    for name in [own for own in found[0].shifts if all(own in each.shifts for each in found)]:
        before, after = of_fit[name], [own.sds[name] ** 2 for own in found]
        shifts[name] = sum(own.shifts[name] for own in found)
        # two that each take more than half of a variance would leave none
        variances[name] = np.maximum(before + sum(own - before for own in after), np.min(after, axis=0))
    return Integral(values, weights, shifts, {name: np.sqrt(own) for name, own in variances.items()})


def _profile(factors: Mapping[str, Any], state: AscentState, name: str) -> Integral:
    """Return the posterior integrated over a global, which is one number."""
    rng, factor = generator(0), factors[name]
    coordinates = Coordinates.of({name: factor}, {}, rng)
    of_q = coordinates.vectors({name: factor.sample(_OF_Q, rng)})
    given, found = GivenByPasses(state, [name]), dict[Place, Passed]()
    center, root = of_q.mean(axis=0), _STEP * np.reshape(of_q.std(), (1, 1))

    def log_density(place: Place, beside: Place | None) -> float:
        vector = (center + root @ np.array(place, dtype=np.float64))[None]
        statistics = factor.family.statistics_of(coordinates.values(vector)[name][0])
        found[place] = given.fit_at({name: statistics}, None if beside is None else found[beside])
        return found[place].log_density + float(coordinates.log_volume(vector)[0])

    lattice = Lattice(center, root, explored(log_density, 1, _DEPTH))
    vectors, weights = lattice.refined(_FINER)
    kept = weights >= _LEAST_WEIGHT * weights.max()
    values = coordinates.values(vectors[kept])
    masses = np.exp(lattice.log_masses - np.logaddexp.reduce(lattice.log_masses))
    fits = [found[place] for place in lattice.found]
    shifts, sds = {}, {}
    for own in fits[0].shifts:
        moved, wide = (np.stack([getattr(fit, figure)[own] for fit in fits]) for figure in ("shifts", "sds"))
        shifts[own] = masses @ moved
        sds[own] = np.sqrt(masses @ (wide**2 + (moved - shifts[own]) ** 2))
    return Integral(values, {name: weights[kept] / weights[kept].sum()}, shifts, sds)
