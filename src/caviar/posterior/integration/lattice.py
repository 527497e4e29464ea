"""The points of a lattice where a density is not negligible, found from one of them on."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.ndimage import map_coordinates

from ..._errors import ModelError
from ..._typing import AnyArray, Array

Place: TypeAlias = tuple[int, ...]
"""Whole numbers, one a dimension."""

MOST = 2_000
"""Most points of a lattice."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """Vectors ``center + root @ steps`` for the places of a lattice, with the log density at some of them.

    A place k is sinh(b k) / b steps from the centre, with the bend b: in a long tail the points are further apart.

    Attributes
    ----------
    center, root
        Shapes (d,) and (d, d), lower triangular; the steps are in the root.
    found
        Log density by place.
    bend
        How fast the points get further apart; 0 if they do not.
    """

    center: Array
    root: Array
    found: Mapping[Place, float]
    bend: float = 0.0

    def at(self, places: AnyArray) -> Array:
        """Return the vectors of places, (n, d) both."""
        return self.center + _bent(places, self.bend) @ self.root.T

    @property
    def places(self) -> Array:
        """Of the points, (n, d)."""
        return np.array(list(self.found), dtype=np.float64)

    @property
    def vectors(self) -> Array:
        """Of the points, (n, d)."""
        return self.at(self.places)

    @property
    def log_masses(self) -> Array:
        """Log density times the volume of a cell, of each point, (n,): the rule of trapezoids."""
        volumes = np.log(np.diag(self.root)).sum() + self._log_stretch(self.places)
        return np.array(list(self.found.values())) + volumes

    def _log_stretch(self, places: AnyArray) -> Array:
        """Return the logs of the cells' volumes, in those at the centre, (n,)."""
        return np.log(np.cosh(self.bend * places)).sum(axis=1)

    def moments(self) -> tuple[Array, Array]:
        """Return mean and covariance of the density, (d,) and (d, d)."""
        weights = np.exp(self.log_masses - np.logaddexp.reduce(self.log_masses))
        deviations = self.vectors - weights @ self.vectors
        return weights @ self.vectors, (deviations * weights[:, None]).T @ deviations

    def refined(self, parts: int) -> tuple[Array, Array]:
        """Return the vectors (n, d) and weights (n,) of a finer lattice, the log density between points from splines.

        Parameters
        ----------
        parts
            Steps of the finer lattice for one of this one.
        """
        places = self.places.astype(np.intp)
        low = places.min(axis=0)
        box = np.full(places.max(axis=0) - low + 1, min(self.found.values()))
        box[tuple((places - low).T)] = list(self.found.values())
        axes = [np.linspace(0, size - 1, parts * (size - 1) + 1) for size in box.shape]
        fine = np.stack(np.meshgrid(*axes, indexing="ij")).reshape(len(axes), -1)
        places = fine.T + low
        log_mass = map_coordinates(box, fine, order=3, mode="nearest") + self._log_stretch(places)
        weights = np.exp(log_mass - log_mass.max())
        return self.at(places), weights / weights.sum()


def _bent(places: AnyArray, bend: float) -> Array:
    """Return how many steps places are from the centre."""
    return np.sinh(bend * places) / bend if bend else np.asarray(places, dtype=np.float64)


def explored(
    log_density: Callable[[Place, Place | None], float], n_dims: int, depth: float
) -> dict[Place, float]:
    """Return the log density at the points of a lattice where it is close enough to its highest value.

    From the origin on, the neighbours of the highest point whose neighbours are not known yet are next.

    Parameters
    ----------
    log_density
        Takes a place, and the neighbour from which it was reached.
    n_dims
        Number of dimensions.
    depth
        In nats.

    Raises
    ------
    ModelError
        If there are too many.
    """
    origin: Place = (0,) * n_dims
    found: dict[Place, float] = {origin: log_density(origin, None)}
    waiting: list[tuple[float, Place]] = [(-found[origin], origin)]
    while waiting:
        minus, place = heapq.heappop(waiting)
        if -minus < max(found.values()) - depth:
            break
        for other in _neighbours(place):
            if other in found:
                continue
            if len(found) == MOST:
                raise ModelError(
                    f"the density of the variables to integrate over does not fall off within {MOST:,} fits; "
                    f"integrate over fewer of them, or state narrower priors"
                )
            found[other] = log_density(other, place)
            heapq.heappush(waiting, (-found[other], other))
    return found


def _neighbours(place: Place) -> Iterator[Place]:
    for axis in range(len(place)):
        for step in (-1, 1):
            yield (*place[:axis], place[axis] + step, *place[axis + 1 :])
