"""Sums of each batch of rows as its last pass left them, and their total."""

from __future__ import annotations

from dataclasses import dataclass

from ..local.statistics import Sums


@dataclass(frozen=True)
class SumsByBatch:
    """The sums of each batch, and along a binary tree those of neighbours; one can be replaced exactly.

    The total of n batches is the sum of n numbers, not of all that was ever added and taken away: nothing is lost
    however often they are replaced. A replacement costs log2(n) additions, and leaves the sums before as they were.

    Hughes and Sudderth, "Memoized online variational inference for Dirichlet process mixture models" (2013).

    Attributes
    ----------
    nodes
        Node 1 is the root, and the children of node i are 2 i and 2 i + 1; None where no sums are yet.
    """

    nodes: tuple[Sums | None, ...]

    @classmethod
    def of(cls, n_batches: int) -> SumsByBatch:
        """Return places for batches, without sums."""
        return cls((None,) * (2 << max(n_batches - 1, 0).bit_length()))

    def replaced(self, batch: int, sums: Sums) -> SumsByBatch:
        """Return these with other sums of a batch."""
        nodes, node = list(self.nodes), len(self.nodes) // 2 + batch
        nodes[node] = sums
        while node > 1:
            node //= 2
            children = [own for own in nodes[2 * node : 2 * node + 2] if own is not None]
            nodes[node] = children[0] if len(children) == 1 else children[0].plus(children[1])
        return SumsByBatch(tuple(nodes))

    @property
    def batches(self) -> tuple[Sums, ...]:
        """The sums of each batch; not to be changed."""
        return tuple(sums for sums in self.nodes[len(self.nodes) // 2 :] if sums is not None)

    @property
    def total(self) -> Sums:
        """The sums of all batches; not to be changed."""
        total = self.nodes[1]
        assert total is not None
        return total
