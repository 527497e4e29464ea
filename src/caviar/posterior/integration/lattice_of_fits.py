"""A posterior integrated over a few numbers with a fit at each point of a lattice, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ...engine.evaluation.given_by_passes import Fits, GivenByPasses, Passed
from ...numerics.linalg import cholesky
from ...numerics.randomness import generator
from ..evidence.coordinates import Coordinates
from .at_once import Integral, means_of
from .lattice import Lattice, Place, explored
from .shapes import shapes_of

_STEP, _DEPTH = 1.6, 6.0
"""A step in standard deviations of q, and how far below the highest point the lattice ends, in nats."""

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
    center, size = of_q.mean(axis=0), coordinates.size
    root = _STEP * cholesky(np.reshape(np.cov(of_q.T), (size, size)))
    found: dict[Place, Passed] = {}

    def log_density(place: Place, beside: Place | None) -> float:
        vector = (center + root @ np.array(place, dtype=np.float64))[None]
        values = coordinates.values(vector)
        statistics = {name: own.family.statistics_of(values[name][0]) for name, own in chosen.items()}
        found[place] = given.fit_at(statistics, None if beside is None else found[beside])
        return found[place].log_density + float(coordinates.log_volume(vector)[0])

    lattice = Lattice(center, root, explored(log_density, size, _DEPTH))
    vectors, weights = lattice.refined(_FINER[size])
    kept = weights >= _LEAST_WEIGHT * weights.max()
    masses = np.exp(lattice.log_masses - np.logaddexp.reduce(lattice.log_masses))
    fits = [found[place] for place in lattice.found]
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
