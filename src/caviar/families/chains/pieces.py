"""Sequences of rows, and pieces of them that are gone through at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from caviar._typing import AnyArray
from caviar.numerics.cached import cached_property


@dataclass(frozen=True)
class Pieces:
    """Sequences cut into pieces, longest first, that are scanned at once: step l of all pieces is one slice.

    Attributes
    ----------
    begins
        Row at which each piece begins.
    is_first
        Whether a sequence begins there.
    order
        Rows by step, then piece.
    edges
        Where each step's slice begins in ``order``; its length is the number of pieces that are as long.
    successions
        For each position in its sequence from the second on: the pieces there, and those before them.
    """

    begins: AnyArray
    is_first: AnyArray
    order: AnyArray
    edges: AnyArray
    successions: tuple[tuple[AnyArray, AnyArray], ...]

    @classmethod
    def uncut(cls, starts: AnyArray) -> Pieces:
        return cls.of(starts, len(starts))

    @classmethod
    def of(cls, starts: AnyArray, longest: int) -> Pieces:
        """Return the pieces of at most ``longest`` steps."""
        begins, lengths = sequences_of(starts)
        per_sequence = -(-lengths // longest)
        sequence = np.repeat(np.arange(len(begins)), per_sequence)
        position = np.arange(len(sequence)) - np.repeat(np.cumsum(per_sequence) - per_sequence, per_sequence)
        sizes = np.minimum(longest, lengths[sequence] - longest * position)
        by_size = np.argsort(-sizes, kind="stable")
        place = np.empty_like(by_size)
        place[by_size] = np.arange(len(by_size))
        successions = tuple((place[here], place[here - 1]) for here in _by_value(position)[1:])
        begins = (begins[sequence] + longest * position)[by_size]
        sizes = sizes[by_size]
        counts = np.searchsorted(-sizes, -np.arange(sizes[0]), side="left")
        edges = np.concatenate([[0], np.cumsum(counts)])
        step = np.repeat(np.arange(len(counts)), counts)
        order = begins[np.arange(len(step)) - edges[step]] + step
        return cls(begins, position[by_size] == 0, order, edges, successions)

    @property
    def n_pieces(self) -> int:
        return len(self.begins)

    @cached_property
    def last(self) -> AnyArray:
        """Where in ``order`` the last step of each piece is."""
        counts = np.diff(self.edges)
        # a piece is as long as there are steps with more pieces than are before it
        steps = np.searchsorted(-counts, -np.arange(self.n_pieces), side="left") - 1
        return self.edges[steps] + np.arange(self.n_pieces)

    def steps(self) -> Iterator[tuple[slice, slice | None]]:
        """Yield the slice of each step, and that of the same pieces one step before."""
        edges = self.edges.tolist()
        for step in range(len(edges) - 1):
            start, stop = edges[step], edges[step + 1]
            yield slice(start, stop), slice(edges[step - 1], edges[step - 1] + stop - start) if step else None


def _by_value(numbers: AnyArray) -> list[AnyArray]:
    """Return the places of 0, of 1, ..."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers))[:-1])


def sequences_of(starts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the first row and the length of each sequence."""
    begins = np.union1d([0], np.flatnonzero(starts))
    return begins, np.diff(begins, append=len(starts))
