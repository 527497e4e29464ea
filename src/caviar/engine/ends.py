"""Ends of several starts: the best of them in full, and what each came to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._errors import ImproperError
from .._typing import Array
from .loop import Result
from .status import Status

__all__ = ["Ends"]


@dataclass(frozen=True)
class Ends:
    """Where starts ended.

    Attributes
    ----------
    n_ended
        Starts that have ended, those without an update among them.
    best
        The end with the highest objective, a collapsed one only if all are; None before the first.
    elbos
        Objective of each end.
    failure
        Why the first start without an update had none.
    traces
        Objective after each iteration of each start, in the order of ``elbos``.
    """

    n_ended: int = 0
    best: Result | None = None
    elbos: tuple[float, ...] = ()
    failure: str = ""
    traces: tuple[Array, ...] = ()

    def with_end(self, result: Result) -> Ends:
        """Return the ends with one more; where it was interrupted, the best so far is what an interrupted fit gives."""
        best = self.best if self.best is not None and _rank(self.best) >= _rank(result) else result
        if result.status is Status.INTERRUPTED:
            best = replace(best, status=Status.INTERRUPTED)
        elbos, traces = (*self.elbos, result.elbo), (*self.traces, result.trace)
        return replace(self, n_ended=self.n_ended + 1, best=best, elbos=elbos, traces=traces)

    def with_failure(self, error: ImproperError) -> Ends:
        """Return the ends with a start that has no update."""
        return replace(self, n_ended=self.n_ended + 1, failure=self.failure or str(error))


def _rank(result: Result) -> tuple[bool, float]:
    return (result.status is not Status.COLLAPSED, result.elbo)
