"""Fits of a statement with some globals known, at all points of a lattice of their values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..._errors import ModelError, ParameterError
from ..._typing import AnyArray, Array
from ...engine.factorisation import APART
from ...names import Placed
from ...numerics.linalg import cholesky
from ...numerics.randomness import generator
from ..evidence.coordinates import Coordinates
from ..simulation import nth_of
from .integrated import Conditional, IntegratedPosterior
from .lattice import Lattice, Place, explored

TO_A_FIXED_POINT: Mapping[str, Any] = {
    "seed": 0,
    "tol": 1e-9,
    "max_iter": 2000,
    "progress": False,
    "uncertainty": "mean_field",
}
"""Arguments of a fit that linear response is taken of."""

_STEPS = {1: (0.7, 13.0), 2: (0.9, 10.0), 3: (1.0, 9.0)}
"""By the number of dimensions: a step in standard deviations, and how far below the highest point the lattice ends, in
nats."""

_PILOT_STEP, _PILOT_DEPTH = 1.8, 5.0

_OF_Q = 1_000
"""Draws of q that say where the first lattice is."""

NEARLY_FLAT = 1e-4
"""Smallest eigenvalue up to which fits keep the standard deviations of their factors: those of linear response grow
without end towards the value where two components of a mixture become one."""


def fits_at_values(
    posterior: Any,
    names: Sequence[str],
    data: Any,
    arguments: Mapping[str, Any],
    least: float = -np.inf,
) -> IntegratedPosterior:
    """Return a posterior integrated over some globals, from fits in which these are known.

    Parameters
    ----------
    names
        Of the globals.
    data, arguments
        Of the fits.
    least
        Smallest eigenvalue of linear response in a fit; values at which it is less are left out.
    """
    rng = generator(0)
    counted = posterior._counted(data, arguments["sample_weight"])
    coordinates = _coordinates(names, posterior._factors, counted, rng)
    vectors = coordinates.vectors(posterior._shared.drawn(posterior._factors, _OF_Q, rng))
    fits = _Fits(posterior, names, coordinates, data, arguments, least)
    pilot, _ = fits.along(vectors.mean(axis=0), np.cov(vectors.T), _PILOT_STEP, _PILOT_DEPTH)
    center, covariance = pilot.moments()
    # a density within one cell of the lattice has no width there
    covariance += 0.1 * pilot.root @ pilot.root.T
    lattice, found = fits.along(center, covariance, *_STEPS[coordinates.size])
    return IntegratedPosterior.of(names, coordinates, lattice, found)


class _Fits:
    """Fits of a model with some globals known."""

    def __init__(
        self,
        posterior: Any,
        names: Sequence[str],
        coordinates: Coordinates,
        data: Any,
        arguments: Mapping[str, Any],
        least: float,
    ) -> None:
        self._posterior, self._names, self._coordinates = posterior, names, coordinates
        self._least = least
        self._given = posterior._evaluator.named(data).values
        self._arguments = {**arguments, **arguments_of(posterior, names)}

    def along(
        self, center: Array, covariance: Array, step: float, depth: float
    ) -> tuple[Lattice, list[Conditional]]:
        """Return the lattice around a point where the density is, and the fits at its points."""
        root = step * cholesky(np.reshape(covariance, (len(center), len(center))))
        found: dict[Place, Conditional] = {}

        def log_density(place: Place, beside: Place | None) -> float:
            vector = (center + root @ np.array(place, dtype=np.float64))[None]
            start = None if beside is None else found[beside]
            found[place] = self._fitted(self._coordinates.values(vector), start)
            return found[place].log_evidence + float(self._coordinates.log_volume(vector)[0])

        told = explored(log_density, len(center), depth)
        lattice = Lattice(center, root, {place: own for place, own in told.items() if np.isfinite(own)})
        return lattice, [found[place] for place in lattice.found]

    def _fitted(self, values: Mapping[str, Any], start: Conditional | None) -> Conditional:
        """Return the fit with some values known, from where another one ended."""
        given = {**self._given, **{name: nth_of(values[name], 0) for name in self._names}}
        known = Placed(given, self._posterior.names)
        before = self._posterior if start is None else start.posterior
        init = {name: before[name] for name in before if name not in self._names}
        found = self._posterior.model.fit(
            known,
            init=init,
            **TO_A_FIXED_POINT,
            **self._arguments,
        )
        before_it = 0.0 if start is None else start.correction
        try:
            response = found.linear_response(known, sample_weight=self._arguments["sample_weight"])
            correction = response.elbo_correction
            smallest = response.smallest_eigenvalue
            if smallest < self._least:
                return Conditional(found, -np.inf)
            if smallest < NEARLY_FLAT:
                return Conditional(found, before_it)
        except (ModelError, np.linalg.LinAlgError):
            return Conditional(found, before_it if np.isneginf(self._least) else -np.inf)
        found._show(response.widths())
        return Conditional(found, correction)


def arguments_of(posterior: Any, known: Collection[str] = ()) -> dict[str, Any]:
    """Return arguments of a fit with the factors of a posterior, without some variables that are known."""
    evaluator = posterior._evaluator
    groups = [[own for own in group if own not in known] for group in evaluator.factors or ()]
    return {
        "factors": APART if evaluator.factors is None else [group for group in groups if len(group) > 1],
        "point": evaluator.point,
        "data_plate": evaluator.data_plate,
    }


def _coordinates(
    names: Sequence[str],
    factors: Mapping[str, Any],
    counted: Mapping[str, AnyArray],
    rng: np.random.Generator,
) -> Coordinates:
    """Return the coordinates of globals to integrate over."""
    for name in names:
        if factors[name].learnt is not factors[name]:
            raise ModelError(
                f"'{name}' is a point mass or partly known, so it cannot be integrated over; leave it out"
            )
        if not counted.get(name, np.ones(())).all():
            raise ModelError(
                f"'{name}' has repetitions without rows, so it cannot be integrated over; leave it out"
            )
    coordinates = Coordinates.of({name: factors[name] for name in names}, counted, rng)
    if coordinates.size not in _STEPS:
        raise ParameterError(
            f"over takes variables with up to {max(_STEPS)} numbers in all; {', '.join(map(repr, names))} have "
            f"{coordinates.size}"
        )
    return coordinates
