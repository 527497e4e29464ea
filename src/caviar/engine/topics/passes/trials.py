"""Passes over documents from several beginnings, of which the best is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

_TRIED_NUMBERS, _MOST_TRIALS = 1 << 21, 3
"""Numbers in all for passes from several beginnings, of which the best is kept, and how many of these at most."""


class Passes(Protocol):
    """Topics that passes over documents change in place."""

    def sweep(self) -> Any:
        """Make a pass."""

    def bound(self) -> float:
        """Return the score by which two states are compared; the higher is better for the same documents and priors."""
        ...


T = TypeVar("T", bound=Passes)


def n_trials(counts: Any, n_topics: int) -> int:
    """Return from how many beginnings passes over these counts are tried: from several where documents are few."""
    return min(max(_TRIED_NUMBERS // max(counts.nnz * n_topics, 1), 1), _MOST_TRIALS)


def best_of_trials(begin: Callable[[], T], number: int, n_passes: int) -> T:
    """Return topics after a number of passes, from the best of several beginnings.

    Parameters
    ----------
    begin
        Makes topics before any pass, from chance.
    number
        Beginnings, at least 1.
    n_passes
        Passes from each.
    """
    tried: list[T] = []
    for _ in range(number):
        topics = begin()
        for _ in range(n_passes):
            topics.sweep()
        tried.append(topics)
    return tried[0] if number == 1 else max(tried, key=lambda topics: topics.bound())
