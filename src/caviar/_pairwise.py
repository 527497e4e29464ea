"""Sums along a balanced tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self, TypeVar

__all__ = ["Additive", "pairwise_sum"]


class Additive(Protocol):
    """Something that another of its kind can be added to, in place."""

    def add(self, other: Self) -> None:
        """Add ``other`` to this."""
        ...


A = TypeVar("A", bound=Additive)


def pairwise_sum(values: Iterable[A]) -> A:
    """Return the sum of a stream along a balanced tree; its values are added to in place, O(log n) of them are held.

    A binary counter: partial sums of equal size are added as soon as there are two of them. The order of
    additions depends on the number of values only.
    """
    partial: list[tuple[int, A]] = []
    for value in values:
        level = 0
        while partial and partial[-1][0] == level:
            before = partial.pop()[1]
            before.add(value)
            value = before
            level += 1
        partial.append((level, value))
    total = partial.pop()[1]
    while partial:
        before = partial.pop()[1]
        before.add(total)
        total = before
    return total
