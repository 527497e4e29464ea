"""Memoized sums: those of each batch of rows as its last pass left them, and their total."""

from __future__ import annotations

from ..local.statistics import Sums
from .row_model import RowModel

__all__ = ["Memoized"]


class Memoized:
    """The sums of each batch, and along a binary tree those of neighbours, so that one can be replaced exactly.

    The total of n batches is the sum of n numbers, not of all that was ever added and taken away: nothing is lost
    however often they are replaced. A replacement costs log2(n) additions.

    Hughes and Sudderth, "Memoized online variational inference for Dirichlet process mixture models" (2013).
    """

    def __init__(self, model: RowModel, n_batches: int) -> None:
        self.model = model
        self._first_leaf = 1 << max(n_batches - 1, 0).bit_length()
        self._nodes: list[Sums | None] = [None] * (2 * self._first_leaf)

    def replace(self, batch: int, sums: Sums) -> None:
        """Put sums in the place of those of a batch."""
        node = self._first_leaf + batch
        self._nodes[node] = sums
        while node > 1:
            node //= 2
            children = [own for own in self._nodes[2 * node : 2 * node + 2] if own is not None]
            self._nodes[node] = children[0] if len(children) == 1 else children[0].plus(children[1])

    def of(self, batch: int) -> Sums | None:
        """Return the sums of a batch; None before the first time."""
        return self._nodes[self._first_leaf + batch]

    @property
    def batches(self) -> tuple[Sums, ...]:
        """The sums of each batch; not to be changed."""
        return tuple(sums for sums in self._nodes[self._first_leaf :] if sums is not None)

    @property
    def total(self) -> Sums:
        """The sums of all batches; not to be changed."""
        total = self._nodes[1]
        assert total is not None
        return total
