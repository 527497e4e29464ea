"""Batches of distributions of data, to be drawn from and evaluated."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self


class Batch:
    """Distributions whose parameters are the fields of a dataclass: arrays that begin with the batch shape.

    The first field has no other axes.
    """

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch of distributions."""
        return self._parameters[0].shape

    def __getitem__(self, index: Any) -> Self:
        """Return the part of the batch at ``index``."""
        return type(self)(*(own[index] for own in self._parameters))

    @property
    def _parameters(self) -> list[Any]:
        own: Any = self
        return [getattr(self, field.name) for field in fields(own)]
