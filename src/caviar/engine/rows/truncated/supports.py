r"""Supports: which components the rows of a cell may belong to.

A cell is a few rows that lie close together. Its rows share a set C of components, and the factor of the label of each
row is the best one that is zero elsewhere,

.. math:: q(z_n = k) \propto \exp(\eta_{nk}), \quad k \in C; \qquad
          \max_q \{\langle \eta_n \rangle + H(q)\} = \log \sum_{k \in C} \exp(\eta_{nk}),

so the objective is a bound whatever the sets are. Sets are exchanged only where that raises the sum of these over the
rows of all cells, with the present globals: so the objective never falls.

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

_EARLY = (1, 2, 4)
"""Passes before the searches after the first one, where globals move far in these."""

_BETWEEN = 8
"""Passes between two searches, at least, after these."""

_BEHIND, _SOON = 0.01, 4
"""Nats a row by which sets had fallen behind at a search from which on the next ones follow after so many passes."""

LISTED = 8
"""Of so many rows one is asked for all components: so a list of components is found that may suit some cells."""

_STRIDE = 5
"""Rows from those that are asked in one search to those in the next."""

ASKED = 4
"""Of so many rows of a cell one is asked which components of a list suit it."""

_TOGETHER = 128
"""Rows of the cells that have one list of components to choose from."""

_SIZES = (1 / 4, 3 / 8, 1 / 2, 3 / 4, 1, 3 / 2, 2, 3, 4)
"""Sizes of sets, of their mean size."""

_BISECTIONS = 16
_CELLS = 512
"""Cells of which the price of a component is found, at least so many of a block."""

_DEARER = 1.1
"""Factor by which a price is at most above one at which the mean over all cells is too large."""

_MOST = 1e12
"""Nats that count as what is lost where a set is none."""


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
        Passes since the cells were made.
    n_searches
        Searches for components among these.
    is_behind
        Whether the sets had lost much when the last search began: globals then move so fast that the next one follows
        soon.
    is_sparing
        Whether there are no searches soon after the first one.
    """

    order: AnyArray
    n_rows: int
    cell: int
    sizes: AnyArray
    members: AnyArray
    age: int = 0
    n_searches: int = 0
    is_behind: bool = False
    is_sparing: bool = False

    @classmethod
    def from_state(cls, state: LocalState) -> Supports:
        """Return the supports from the values of :meth:`as_state`."""
        n_rows, cell, age, n_searches, is_behind, is_sparing = (int(value) for value in state["counts"])
        arrays = state["sizes"], state["members"]
        return cls(state["order"], n_rows, cell, *arrays, age, n_searches, bool(is_behind), bool(is_sparing))

    def as_state(self) -> LocalState:
        """Return what the next pass over the block starts from, as arrays."""
        counts = np.array(
            [self.n_rows, self.cell, self.age, self.n_searches, self.is_behind, self.is_sparing]
        )
        return {"order": self.order, "counts": counts, "sizes": self.sizes, "members": self.members}

    @property
    def is_asked_anew(self) -> bool:
        """Whether components are searched for in the next pass: after 0, 1, 2, 4, 7, 15, 23, ... 63, 79, 95, ...

        Not after 1, 2 and 4 passes where searches are spared. As long as they find that much was lost, it is every
        fourth pass.
        """
        if self.age in _EARLY:
            return not self.is_sparing
        n = self.age + 1
        if self.is_behind and not n % _SOON:
            return True
        return not self.age or not n % max(_BETWEEN, 1 << max(n.bit_length() - 3, 0))

    def found(self, ranked: AnyArray, sizes: AnyArray, lost: float = 0.0) -> Supports:
        """Return the same cells with the first of their ranked components, (C, P), a pass later.

        Where the size is 0 a cell keeps what it has.

        Parameters
        ----------
        lost
            By how much the mean log-normaliser of a row had fallen with the sets that the cells had, in nats.
        """
        kept = sizes == 0
        numbers = np.where(kept, self.sizes, sizes)
        starts = np.where(kept, ranked.size + self.starts, ranked.shape[1] * np.arange(self.n_cells))
        places = np.repeat(starts - (np.cumsum(numbers) - numbers), numbers) + np.arange(numbers.sum())
        members = np.concatenate([ranked.ravel(), self.members])[places]
        known = {"age": self.age + 1, "n_searches": self.n_searches + 1, "is_behind": lost > _BEHIND}
        return replace(self, sizes=numbers, members=members, **known)

    @property
    def together(self) -> int:
        """Cells that have one list of components to choose from."""
        return _TOGETHER // self.cell

    @cached_property
    def asked(self) -> int:
        """The first row that is asked in the next search: others than in the last one."""
        return _STRIDE * self.n_searches % LISTED

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

    def emptied(self) -> Supports:
        """Return the same cells without members."""
        return replace(self, sizes=np.zeros_like(self.sizes), members=self.members[:0])

    def older(self) -> Supports:
        """Return the same sets a pass later."""
        return replace(self, age=self.age + 1)


def sizes_for(mean: int, n_categories: int) -> list[int]:
    """Return the sizes that sets may have, of which ``mean`` will be the mean."""
    if mean >= n_categories:
        return [n_categories]
    return sorted({min(max(1, round(mean * part)), n_categories) for part in _SIZES})


def allotted(
    losses: Array, sizes: Sequence[int], mean: float, before: Array | None = None, own: AnyArray | None = None
) -> AnyArray:
    """Return the size of each cell's set that leaves the least loss in all, with a mean size of no more than ``mean``.

    Parameters
    ----------
    losses
        By how much the sum of the log-normalisers of a cell falls with a set of each of the sizes, (C, S).
    sizes
        The sizes, ascending, (S,).
    before, own
        By how much it falls with the set that the cell has, and the size of that, (C,): that set is kept where the
        size is 0. All are kept where others would leave more loss.
    """
    numbers = np.asarray(sizes)[:, None]
    options, numbers = losses.T, np.broadcast_to(numbers, losses.T.shape).astype(np.float64)
    if before is not None and own is not None:
        options, numbers = np.vstack([options, before]), np.vstack([numbers, own])
    options = np.minimum(options, _MOST)
    place, size = _within(options, numbers, mean, _price(options, numbers, mean))
    found = np.where(place < len(sizes), size, 0).astype(np.int64)
    if before is None or own is None:
        return found
    lost = np.take_along_axis(options, place[None], axis=0)[0]
    if lost.sum() > np.minimum(before, _MOST).sum():
        found[(lost > before) | (found > own)] = 0
    return found


def _within(options: Array, numbers: AnyArray, mean: float, price: float) -> tuple[AnyArray, AnyArray]:
    """Return the option of each cell, and its number of components, at a price not below one and hardly dearer than it.

    There may be no more than ``mean`` of them, over all cells. That of some cells may be next to nothing, so it rises
    by ever larger factors, and then falls by halves.
    """
    low, factor = price, _DEARER
    while (chosen := _cheapest(options, numbers, price))[1].mean() > mean:
        low, price, factor = price, price * factor, factor * factor
    while price > _DEARER**1.5 * low:
        middle = np.sqrt(low) * np.sqrt(price)
        found = _cheapest(options, numbers, middle)
        if found[1].mean() > mean:
            low = middle
        else:
            price, chosen = middle, found
    return chosen


def _price(options: Array, numbers: AnyArray, mean: float) -> float:
    """Return the price of a component at which some of the cells have no more than ``mean`` of them."""
    some = slice(None, None, max(1, options.shape[1] // _CELLS))
    options, numbers = options[:, some], numbers[:, some]
    low, high = 0.0, float(options.max(initial=0.0)) + 1.0
    for _ in range(_BISECTIONS):
        middle = np.sqrt(low * high) if low > 0 else high * 1e-12
        if _cheapest(options, numbers, middle)[1].mean() > mean:
            low = middle
        else:
            high = middle
    return high


def _cheapest(options: Array, numbers: AnyArray, price: float) -> tuple[AnyArray, AnyArray]:
    """Return which option of each cell costs least, the first of several, and its number of components."""
    costs = options + price * numbers
    least = costs.min(axis=0)
    place, size = np.zeros(len(least), dtype=np.int64), numbers[0].copy()
    for option in range(len(costs) - 1, -1, -1):
        is_least = costs[option] == least
        np.copyto(place, option, where=is_least)
        np.copyto(size, numbers[option], where=is_least)
    return place, size
