"""Ends of several starts: the best of them in full, and what each came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._errors import ImproperError
from ..._typing import Array
from ...numerics.records import replaced
from ..ascent.driver import Result
from ..ascent.status import Status

_SAME = 0.1
"""Nats, about a tenth of the probability, by which starts may differ and still count as one end."""

_SAME_SHARE = 1e-7
"""The same as a share of the objective: of very many rows it has no more digits to tell ends apart."""


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
        return replaced(self, n_ended=self.n_ended + 1, best=best, elbos=elbos, traces=traces)

    def interrupted(self) -> Ends:
        """Return the ends as they are where the next start was interrupted before it had an objective."""
        return (
            self if self.best is None else replace(self, best=replace(self.best, status=Status.INTERRUPTED))
        )

    def with_failure(self, error: ImproperError) -> Ends:
        """Return the ends with a start that has no update."""
        return replace(self, n_ended=self.n_ended + 1, failure=self.failure or str(error))


def _rank(result: Result) -> tuple[bool, float]:
    return (result.status is not Status.COLLAPSED, result.elbo)


def distinct_ends(elbos: Sequence[float]) -> tuple[tuple[float, int], ...]:
    """Return the objectives at which starts ended, the highest first, and how many did at each.

    Neighbours that differ by less than 0.1 nats, or a ten-millionth, count as one end, the highest of them. Ends
    without a finite objective are left out.

    Examples
    --------
    >>> distinct_ends([-3.0, -1.0, -1.01, -3.0, -3.0])
    ((-1.0, 2), (-3.0, 3))
    """
    ordered = np.sort([elbo for elbo in elbos if np.isfinite(elbo)])[::-1]
    gaps = -np.diff(ordered) > np.maximum(_SAME, _SAME_SHARE * np.abs(ordered[1:]))
    pieces = np.split(ordered, np.flatnonzero(gaps) + 1)
    return tuple((float(piece[0]), len(piece)) for piece in pieces if len(piece))


def told_ends(elbos: Sequence[float], best: float) -> str:
    """Return a sentence on where several starts ended; nothing of one start.

    Parameters
    ----------
    elbos
        Objective of each end.
    best
        The objective of the end that is kept.

    Examples
    --------
    >>> told_ends([-3.0, -1.0, -1.01, -3.0, -3.0], -1.0)
    '5 restarts: 2 distinct ends, the best reached 2 times'
    """
    if len(elbos) < 2:
        return ""
    ends = distinct_ends(elbos)
    # a start that collapsed may have ended higher than the one that is kept
    reached = next((n for elbo, n in reversed(ends) if best <= elbo), 0)
    times = "once" if reached == 1 else f"{reached} times"
    if len(ends) == 1:
        return f"{len(elbos)} restarts: 1 distinct end, reached {times}"
    return f"{len(elbos)} restarts: {len(ends)} distinct ends, the best reached {times}"
