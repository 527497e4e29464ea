"""Sums along a balanced tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, Self, TypeVar


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


def subtree_sums(n: int, value: Callable[[int, int], A | None], start: int = 0) -> dict[tuple[int, int], A]:
    """Return the sums along the tree of :func:`pairwise_sum` over n values of which only some are here.

    They are added as far as that goes without the others: to the sums of the largest subtrees that are here in full,
    whose values are added to in place. Sums of such sums, wherever they were made, end in the same bits.

    Parameters
    ----------
    n
        Number of values.
    value
        Returns the sum of the values from one place to another where that is here, else None; asked from left to right.
    start
        Place of the first of them.

    Examples
    --------
    >>> from collections import Counter
    >>> class Bag(Counter):
    ...     def add(self, other):
    ...         self.update(other)
    >>> here = {(0, 1): Bag("a"), (1, 2): Bag("b"), (4, 5): Bag("e")}
    >>> found = subtree_sums(5, lambda start, stop: here.get((start, stop)))
    >>> {place: dict(bag) for place, bag in found.items()}
    {(0, 2): {'a': 1, 'b': 1}, (4, 5): {'e': 1}}
    """
    whole = (start, start + n)
    here = value(*whole)
    if here is not None or n == 1:
        return {} if here is None else {whole: here}
    # the largest power of two below n
    half = 1 << (n - 1).bit_length() - 1
    left, right = subtree_sums(half, value, start), subtree_sums(n - half, value, start + half)
    middle = start + half
    if (start, middle) in left and (middle, start + n) in right:
        total = left[start, middle]
        total.add(right[middle, start + n])
        return {whole: total}
    return left | right
