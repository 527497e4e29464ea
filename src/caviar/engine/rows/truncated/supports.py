r"""Supports: which components the rows of a cell may belong to.

A cell is a few rows that lie close together. Its rows share a set C of components, and the factor of the label of each
row is the best one that is zero elsewhere,

.. math:: q(z_n = k) \propto \exp(\eta_{nk}), \quad k \in C; \qquad
          \max_q \{\langle \eta_n \rangle + H(q)\} = \log \sum_{k \in C} \exp(\eta_{nk}),

so the objective is a bound whatever the sets are. A set is exchanged for another one of the same size only where that
raises the sum of these over the rows of the cell, with the present globals: so the objective never falls.

Sources: Lücke and Eggert, "Expectation truncation" (2010); Forster and Lücke, "Can clustering scale sublinearly with
its clusters?" (2018), where each row has a set of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...._typing import AnyArray, Array
from ....numerics.cached import cached_property
from ...local.statistics import LocalState

_FIRST = 3
"""Passes at the beginning that ask all components: responsibilities change most in them."""

_EVERY = 4
"""Passes from one in which cells are asked whether components of a neighbour suit them better to the next such one."""

_LEVELS = 8
"""Levels of the tree at which neighbours are looked for, from the lowest."""

_SIZES = (1 / 4, 3 / 8, 1 / 2, 3 / 4, 1, 3 / 2, 2, 3, 4)
"""Sizes of sets, of their mean size."""

_BISECTIONS = 30


@dataclass(frozen=True)
class Supports:
    """The cells of a block of B rows, and their sets of components.

    Attributes
    ----------
    order
        Numbers of the rows, cell after cell, (C * cell,); the last cell is filled up with one of its rows.
    n_rows
        B.
    cell
        Rows of a cell.
    sizes
        Components of each cell, (C,).
    members
        Those of all cells, one cell after the other; of each the one with the most responsibility first.
    age
        Passes since the sets were found.
    """

    order: AnyArray
    n_rows: int
    cell: int
    sizes: AnyArray
    members: AnyArray
    age: int = 0

    @classmethod
    def from_state(cls, state: LocalState) -> Supports:
        """Return the supports from the values of :meth:`as_state`."""
        n_rows, cell, age = (int(value) for value in state["counts"])
        return cls(state["order"], n_rows, cell, state["sizes"], state["members"], age)

    def as_state(self) -> LocalState:
        """Return what the next pass over the block starts from, as arrays."""
        counts = np.array([self.n_rows, self.cell, self.age])
        return {"order": self.order, "counts": counts, "sizes": self.sizes, "members": self.members}

    @property
    def is_asked_anew(self) -> bool:
        """Whether all components are asked in the next pass: in the first four, and after 5, 7, 11, 15, 23, ..."""
        return self.age < _FIRST or not (self.age + 1) % (1 << (self.age + 1).bit_length() - 2)

    def found(self, ranked: AnyArray, sizes: AnyArray) -> Supports:
        """Return the same cells with the first of their ranked components, (C, S), a pass later."""
        chosen = np.arange(ranked.shape[1]) < sizes[:, None]
        return replace(self, sizes=sizes, members=ranked[chosen], age=self.age + 1)

    def where(self, mine: AnyArray, other: Supports) -> Supports:
        """Return these sets where ``mine`` is true of a cell, (C,), and those of the other elsewhere."""
        sizes = np.where(mine, self.sizes, other.sizes)
        starts = np.where(mine, self.starts, len(self.members) + other.starts)
        places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        return replace(self, sizes=sizes, members=np.concatenate([self.members, other.members])[places])

    @property
    def asked(self) -> AnyArray:
        """The cells that are asked in the next pass whether components of a neighbour suit them better: mostly none."""
        return np.arange(0 if self.age % _EVERY else self.n_cells)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.sizes)

    @cached_property
    def starts(self) -> AnyArray:
        """Where the members of each cell begin, (C,)."""
        return np.cumsum(self.sizes) - self.sizes

    def rows_of(self, cells: AnyArray) -> AnyArray:
        """Return the numbers of the rows of some cells, one cell after the other."""
        return self.order.reshape(-1, self.cell)[cells].ravel()

    def counted(self, cells: AnyArray, weights: Array | None) -> Array:
        """Return the weights of the rows of some cells, ascending, 0 of those that fill up the last one."""
        counted = np.ones(len(cells) * self.cell)
        if self.n_rows < len(self.order) and cells[-1] == self.n_cells - 1:
            counted[self.n_rows - len(self.order) :] = 0.0
        return counted if weights is None else counted * weights[self.rows_of(cells)]

    def places(self, cells: AnyArray, size: int) -> AnyArray:
        """Return where the members of some cells of this size are, (cells, size)."""
        return self.starts[cells][:, None] + np.arange(size)

    def by_size(self, cells: AnyArray, numbers_a_cell: int, most: int) -> Iterator[tuple[AnyArray, int]]:
        """Yield runs of cells of one size, and that size.

        Parameters
        ----------
        numbers_a_cell
            Numbers that a cell takes besides two for each row and member.
        most
            Numbers that a run may take.
        """
        sizes = self.sizes[cells]
        for size in np.unique(sizes):
            own = cells[sizes == size]
            length = max(1, most // (numbers_a_cell + 2 * self.cell * int(size)))
            for start in range(0, len(own), length):
                yield own[start : start + length], int(size)

    def candidates(self, cells: AnyArray, size: int, n_more: int) -> tuple[AnyArray, AnyArray]:
        """Return components that neighbours of some cells of one size have, (cells, n_more), and which are new to them.

        Neighbours are those of the tree that has put rows into cells, at one level after the other.
        """
        n_levels = min(max(1, int(self.n_cells - 1).bit_length()), _LEVELS)
        step = 1 << (self.age // _EVERY % n_levels)
        near = (cells ^ step) % self.n_cells
        wanted = np.arange(2 * n_more)
        there = wanted < self.sizes[near][:, None]
        places = np.where(there, self.starts[near][:, None] + wanted, 0)
        found = self.members[places]
        known = (found[:, :, None] == self.members[self.places(cells, size)][:, None, :]).any(axis=2)
        chosen = np.argsort(known | ~there, axis=1, kind="stable")[:, :n_more]
        is_new = np.take_along_axis(~known & there, chosen, axis=1)
        return np.take_along_axis(found, chosen, axis=1), is_new

    def replaced(self, members: AnyArray) -> Supports:
        """Return the same cells with other members, a pass later."""
        return replace(self, members=members, age=self.age + 1)


def sizes_for(mean: int, n_categories: int) -> list[int]:
    """Return the sizes that sets may have, of which ``mean`` will be the mean."""
    if mean >= n_categories:
        return [n_categories]
    return sorted({min(max(1, round(mean * part)), n_categories) for part in _SIZES})


def allotted(losses: Array, sizes: Sequence[int], mean: float) -> AnyArray:
    """Return the size of each cell's set that leaves the least loss in all, with a mean size of no more than ``mean``.

    Parameters
    ----------
    losses
        By how much the sum of the log-normalisers of a cell falls with a set of each of the sizes, (C, S).
    sizes
        The sizes, ascending, (S,).
    """
    numbers = np.asarray(sizes)

    def at(price: float) -> AnyArray:
        return numbers[np.argmin(losses + price * numbers, axis=1)]

    low, high = 0.0, float(losses.max(initial=0.0)) + 1.0
    for _ in range(_BISECTIONS):
        middle = np.sqrt(low * high) if low > 0 else high * 1e-12
        if at(middle).mean() > mean:
            low = middle
        else:
            high = middle
    return at(high)
