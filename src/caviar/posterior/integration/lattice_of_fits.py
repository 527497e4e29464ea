"""A posterior integrated over a few numbers with a fit at each point of a lattice, one after the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product, repeat
from typing import Any

import numpy as np

from ..._typing import Array
from ...engine.ascent.state import AscentState
from ...engine.evaluation.given_by_passes import Correction, Fits, GivenByPasses, Passed, variances_of
from ...engine.response.cost import is_cheap_to_profile
from ...numerics.linalg import cholesky
from ...numerics.randomness import generator
from ..evidence.coordinates import Coordinates
from .at_once import Integral, means_of
from .lattice import Lattice, Place, explored
from .shapes import shapes_of

_STEP, _DEPTH = 1.6, 6.0
"""A step in standard deviations of q, and how far below the highest point the lattice ends, in nats."""

_BEND = {1: 0.15, 2: 0.25}
"""Of the lattice, by the number of dimensions: where the data do not exclude that groups are alike, the density of a
precision has a tail of 50 steps."""

_FINER = {1: 32, 2: 8}
"""By the number of dimensions: steps of the finer lattice, on which values have weights, for one of the fits'."""

MOST_DIMENSIONS = max(_FINER)

_LEAST_WEIGHT = 1e-6
"""Of a value, compared with the largest."""

_OF_Q = 500
"""Draws of q that say where it is."""


def integral_of_fits(factors: Mapping[str, Any], given: GivenByPasses, names: Sequence[str]) -> Integral:
    """Return the posterior integrated over some globals.

    Parameters
    ----------
    factors
        Of the fit, by name.
    given
        The fits in which these globals are known.
    names
        Of these, with at most ``MOST_DIMENSIONS`` numbers.
    """
    rng, chosen = generator(0), {name: factors[name] for name in names}
    coordinates = Coordinates.of(chosen, {}, rng)
    of_q = coordinates.vectors({name: own.sample(_OF_Q, rng) for name, own in chosen.items()})
    lattice, fits = _explored(given, chosen, coordinates, of_q)
    size = coordinates.size
    vectors, weights = lattice.refined(_FINER[size])
    kept = weights >= _LEAST_WEIGHT * weights.max()
    masses = np.exp(lattice.log_masses - np.logaddexp.reduce(lattice.log_masses))
    moved, wide = (
        {own: np.stack([getattr(fit, figure)[own] for fit in fits]) for own in fits[0].shifts}
        for figure in ("shifts", "sds")
    )
    shifts = {own: masses @ each for own, each in moved.items()}
    sds = {own: np.sqrt(masses @ (wide[own] ** 2 + (moved[own] - shifts[own]) ** 2)) for own in moved}
    means = {name: means_of(factors[name]) for name in shifts}
    shapes = shapes_of(factors, Fits(np.zeros(len(fits)), moved, wide), masses, means, sds)
    shared_by = repeat(weights[kept] / weights[kept].sum())
    weights_of = dict(zip(names, shared_by, strict=False))
    return Integral(coordinates.values(vectors[kept]), weights_of, shifts, sds, shapes)


def _explored(
    given: GivenByPasses, chosen: Mapping[str, Any], coordinates: Coordinates, of_q: Array
) -> tuple[Lattice, list[Passed]]:
    """Return a lattice where the density of some globals is, and the fits at its points.

    Parameters
    ----------
    chosen
        Factors of these globals.
    of_q
        Draws of these.
    """
    size = coordinates.size
    root = _STEP * cholesky(np.reshape(np.cov(of_q.T), (size, size)))
    empty = Lattice(of_q.mean(axis=0), root, {}, _BEND[size])
    found: dict[Place, Passed] = {}
    corrections: dict[Place, Correction] = {}

    def log_density(place: Place, beside: Place | None) -> float:
        vector = empty.at(np.array([place]))
        values = coordinates.values(vector)
        statistics = {name: own.family.statistics_of(values[name][0]) for name, own in chosen.items()}
        found[place] = given.fit_at(statistics, None if beside is None else found[beside])
        if beside is None or not any(number % given.every for number in place):
            corrections[place] = given.correction(found[place])
        else:
            corrections[place] = corrections[beside]
        added = corrections[place].log_density + float(coordinates.log_volume(vector)[0])
        return found[place].log_density + added

    log_densities = explored(log_density, size, _DEPTH)
    settled = _between(corrections, given.every)
    moved = {place: own.log_density - corrections[place].log_density for place, own in settled.items()}
    lattice = replace(empty, found={place: own + moved[place] for place, own in log_densities.items()})
    return lattice, [_corrected(found[place], settled[place]) for place in lattice.found]


def _between(corrections: Mapping[Place, Correction], every: int) -> dict[Place, Correction]:
    """Return corrections of which those without one of their own are the mean of those around them."""
    found = {}
    for place, own in corrections.items():
        sides = ({number - number % every, number + -number % every} for number in place)
        around = [corrections[corner] for corner in product(*sides) if corner in corrections]
        found[place] = _mean_of(around) if around else own
    return found


def _mean_of(corrections: Sequence[Correction]) -> Correction:
    first = corrections[0]
    if len(corrections) == 1:
        return first
    variances = {
        name: np.mean([own.variances[name] for own in corrections], axis=0) for name in first.variances
    }
    return Correction(float(np.mean([own.log_density for own in corrections])), variances)


def _corrected(passed: Passed, correction: Correction) -> Passed:
    """Return the fit at a value with its correction."""
    sds = {
        name: np.sqrt(np.square(sd) + correction.variances[name]) if name in correction.variances else sd
        for name, sd in passed.sds.items()
    }
    return passed._replace(log_density=passed.log_density + correction.log_density, sds=sds)


def profiles_of(factors: Mapping[str, Any], state: AscentState, names: Collection[str]) -> Integral | None:
    """Return the posterior integrated over each of some globals, with the others as independent factors.

    What this adds to the means and variances of all else is added up. None where one of them has several numbers or it
    costs much, and beside point masses.

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
    found = [integral_of_fits(factors, GivenByPasses(state, [name]), [name]) for name in names]
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
