"""Checkpoints of an estimator: an argument of ``fit``, for clones of a mixture would share a path that were its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from .._errors import ParameterError

__all__ = ["Checkpointing"]


@dataclass(frozen=True)
class Checkpointing:
    """Where a fit keeps its checkpoint, if anywhere, and how many seconds lie between two writings of it."""

    path: str | os.PathLike[str] | None = None
    every: float = 60.0

    def path_of(self, number: int) -> str | os.PathLike[str] | None:
        """Return the path for one of the fits that are made one after another."""
        if self.path is None or number == 0:
            return self.path
        return f"{os.fspath(self.path)}.{number + 1}"

    def check(self, random_state: Any) -> None:
        """Check that the same call begins the same again.

        Raises
        ------
        ParameterError
            If not.
        """
        if self.path is not None and random_state is None:
            raise ParameterError(
                "checkpoint= needs a random_state, so that the same call begins the same: random_state=0"
            )

    def refuse_search(self) -> None:
        """Refuse a checkpoint where the number of components is searched for.

        Raises
        ------
        ParameterError
            If there is one.
        """
        if self.path is not None:
            raise ParameterError(
                "checkpoint= is for a fit, and n_components='auto' searches by many of them; give a number of "
                "components, or leave checkpoint= out"
            )
