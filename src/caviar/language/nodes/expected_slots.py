"""Expectations of slots from which a variable absent from the data computes its mean and variance."""

from __future__ import annotations

from typing import NoReturn, Protocol

from ..._typing import Array
from .algebra import Predictor, PredictorAlong


class ExpectedSlots(Protocol):
    """Expectations of the arguments of a variable, with an axis for each of its plates."""

    def location(self, name: str = "mean") -> tuple[Array, Array]:
        """Return mean and variance of a location, a node or a predictor; of a vector those of each entry."""
        ...

    def entries(self, name: str) -> tuple[Array, Array]:
        """Return mean and variance of a node in a slot, entry by entry."""
        ...

    def scalar(self, name: str) -> tuple[Array, Array]:
        """Return mean and variance of a number in a slot, or of one hidden scalar times a number plus another."""
        ...

    def positive(self, name: str) -> tuple[Array, Array]:
        """Return mean and variance of a positive number, or of a product of several."""
        ...

    def inverse(self, name: str) -> tuple[Array, Array]:
        """Return the expected inverse of a precision or rate, and of its square; of a matrix its diagonal."""
        ...

    def log_precision(self, name: str) -> tuple[Array, Array] | None:
        """Return mean and variance of the logarithm of a precision; None where they are not known."""
        ...

    def normal(self, predictor: Predictor) -> tuple[Array, Array]:
        """Return mean and variance of a predictor, and refuse one that is not Normal."""
        ...

    def normals(self, predictor: PredictorAlong) -> tuple[Array, Array]:
        """Return means and variances of a predictor along its plate, last, independent of each other."""
        ...

    def refuse(self, why: str) -> NoReturn:
        """Say why mean and variance of the variable have no closed form."""
        ...
