"""Checkpoints of an estimator: an argument of ``fit``, since clones of an estimator would share its paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._errors import ParameterError
from ...fitting.checkpointing import FitsFile, check_seconds
from ...fitting.termination import terminating

NextFit = Callable[[], Any]
"""Gives the next of several fits the ``checkpoint=`` that it goes on from; None where nothing is kept."""


@dataclass(frozen=True)
class Checkpointing:
    """Where an estimator keeps its fits, if anywhere, and how many seconds lie between two writings of them.

    Attributes
    ----------
    path
        Of a file; None for none; or what gives the next fit its place, where others are kept there too.
    every
        Seconds.
    """

    path: str | os.PathLike[str] | NextFit | None = None
    every: float = 60.0

    def check(self, random_state: Any) -> None:
        """Check that the same call begins the same again.

        Raises
        ------
        ParameterError
            If not.
        """
        if self.path is not None and random_state is None:
            raise ParameterError(
                "checkpoint= needs a fixed seed, so the same call has the same start: set random_state=0"
            )

    @contextmanager
    def opened(self) -> Iterator[NextFit]:
        """Yield the checkpoint that each of several successive fits continues from."""
        check_seconds(self.every)
        if self.path is None:
            yield lambda: None
        elif callable(self.path):
            yield self.path
        else:
            with terminating(self.path):
                several = FitsFile(self.path, self.every)
                try:
                    yield several.next
                finally:
                    several.flush()
