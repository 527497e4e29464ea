"""What linear response adds to the factors, however it is found, and what is said where there is nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from ...._typing import AnyArray, Array

FLAT = 1e-7
"""Eigenvalue of I - K below which a direction is flat: the objective does not change along it."""


class Operator(Protocol):
    """The symmetric matrix K of linear response."""

    @property
    def size(self) -> int:
        """Number of coordinates, r."""
        ...

    @property
    def counts(self) -> AnyArray:
        """Whether each coordinate is of a repetition that counts in the terms of others, (r,)."""
        ...

    @property
    def forecasts(self) -> AnyArray:
        """The number of the repetition that each coordinate is of, (r,); -1 where this is not a forecast."""
        ...

    def matrix(self) -> Array:
        """Return K, (r, r)."""
        ...

    def apply(self, coordinates: Array) -> Array:
        """Return K times some columns of coordinates, (r, n)."""
        ...


class Solution(ABC):
    """What linear response adds to the factors, in standardised coordinates."""

    @property
    def smallest_eigenvalue(self) -> float:
        """The smallest eigenvalue of I - K; infinity where there is nothing."""
        return self.smallest[0]

    def is_above(self, value: float) -> bool:
        """Return whether the smallest eigenvalue of I - K is above a value, from what takes least."""
        return self.smallest_eigenvalue > value

    @property
    @abstractmethod
    def smallest(self) -> tuple[float, Array]:
        """The smallest eigenvalue of I - K and its vector, (r,)."""

    @property
    @abstractmethod
    def log_determinant(self) -> float:
        """The log of the determinant of I - K, of the coordinates that count; minus infinity with flat directions.

        Raises
        ------
        ModelError
            If there are too many coordinates.
        """

    @abstractmethod
    def excess(self, columns: Array) -> Array:
        """Return (S - I) times columns, (r, n), without what is along flat directions."""

    @abstractmethod
    def flat(self, columns: Array) -> AnyArray:
        """Return which of the columns (r, n) have a share in a flat direction, (n,)."""


def log_determinant_of(values: Array) -> float:
    """Return the log of a product of eigenvalues; minus infinity with flat ones."""
    return float(np.log(values).sum()) if (values >= FLAT).all() else -np.inf


def shares_in(flat: Array, columns: Array) -> AnyArray:
    """Return which columns (r, n) have a share in flat directions (r, f), (n,)."""
    shares = np.abs(flat.T @ columns).max(axis=0, initial=0.0)
    return shares > np.sqrt(FLAT) * np.sqrt((columns * columns).sum(axis=0))


def why_saddle(eigenvalue: float, along: str = "some direction") -> str:
    """Say that a fit ended at a saddle point, and along which direction the ELBO rises."""
    return (
        f"the fit has ended at a saddle point: along {along} the ELBO rises (smallest eigenvalue "
        f"{eigenvalue:.2g}, which must be positive), so it has no covariance there. Fit again with another seed "
        f"or more restarts"
    )
