"""The points of a lattice where a density is not negligible, found from one of them on."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.ndimage import map_coordinates

from ..._errors import ModelError
from ..._typing import Array

Place: TypeAlias = tuple[int, ...]
"""Whole numbers, one a dimension."""

MOST = 2_000
"""Most points of a lattice."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """Vectors ``center + root @ place`` for the places of a lattice, with the log density at some of them.

    Attributes
    ----------
    center, root
        Shapes (d,) and (d, d), lower triangular; the steps are in the root.
    found
        Log density by place.
    """

    center: Array
    root: Array
    found: Mapping[Place, float]

    @property
    def places(self) -> Array:
        """Of the points, (n, d)."""
        return np.array(list(self.found), dtype=np.float64)

    @property
    def vectors(self) -> Array:
        """Of the points, (n, d)."""
        return self.center + self.places @ self.root.T

    @property
    def log_masses(self) -> Array:
        """Log density times the volume of a cell, of each point, (n,): the rule of trapezoids."""
        return np.array(list(self.found.values())) + np.log(np.diag(self.root)).sum()

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
        log_density = map_coordinates(box, fine, order=3, mode="nearest")
        weights = np.exp(log_density - log_density.max())
        return self.center + (fine.T + low) @ self.root.T, weights / weights.sum()


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
