"""Cells: combinations of two labels, whose rows are moved to other combinations.

Two labels in one sum or product hold each other in place: rows with a wrong combination keep the parameters of both
labels where they are. The same is true of a label and known groups that choose from one table: the clusters of a group
may have each other's names. No update of a single label corrects that, and few guesses have every combination right. So
all rows of a combination change places with those of another, or join them.

A column that has parameters of each cluster, or those of all rows, by a label of its own, is held by whichever it
began with: what the label does not choose stays at its prior. So the label of each column is changed, the parameters
following, and all changes that raise the objective are made at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, permutations

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray
from ...language import Data
from ..design.keys import ColumnKey
from .candidates import start_from
from .components.gates import Gate
from .exchange import labels_of
from .guesses.assignment import objective
from .guesses.basis import Basis, Guess
from .guesses.from_labels import from_labels
from .guesses.in_cells import choosing_of_their_own, in_best_columns
from .guesses.points import leaves_below
from .moves import better, settled
from .race import Begun

_ROUNDS = 4
"""Number of rounds of moves: a move may make others possible."""

_MOST_NUMBERS = 200_000
"""Largest product of the number of rows and the size of the globals for which moves are tried."""

_MOST_MOVES = 150
"""Largest number of moves in a round; if there are more, some are drawn."""

_ROUNDS_OF_COLUMNS = 4
"""Times that the labels of all columns are changed: those of the rows follow them."""

_TRIED = 12
"""Moves that are tried in the model in a round: those whose labels have the highest objective."""


def with_cells_moved(basis: Basis, begun: Begun) -> Begun:
    """Return the start of a fit, or one with other combinations of labels if that leads higher.

    Maximum-likelihood fits try none, because a component of few rows may raise a likelihood without bound.
    """
    for gate in choosing_of_their_own(basis):
        begun = _with_best_columns(basis, gate, begun)
    of_rows = [gate for gate in basis.gates if _is_of_rows(basis, gate)]
    shared = [gate for gate in of_rows if gate in basis.shared]
    among = [(gate, known) for gate in of_rows for known in _known_beside(basis, gate)]
    is_dear = basis.sample.n_rows * basis.problem.n_natural > _MOST_NUMBERS
    if (len(shared) < 2 and not among) or is_dear or basis.problem.point:
        return begun
    for _ in range(_ROUNDS):
        begun, elbo = settled(basis, begun)
        try:
            labels = labels_of(basis, begun.start)
        except ImproperError:
            # the first pass over all rows says what is wrong with them
            break
        moves = [move for pair in combinations(shared, 2) for move in _of_two(*pair, labels)]
        moves += [move for gate, known in among for move in _within_groups(gate, known, labels)]
        if len(moves) > _MOST_MOVES:
            moves = [moves[place] for place in basis.rng.permutation(len(moves))[:_MOST_MOVES]]
        found = better(basis, elbo, [partial(start_from, basis, move) for move in _promising(basis, moves)])
        if found is None:
            break
        begun = found
    return begun


def _is_of_rows(basis: Basis, gate: Gate) -> bool:
    """Whether a gate has one label for each row, independent of the row before."""
    data_plate = basis.problem.bound.data_plate
    return gate.size > 1 and gate.variable.plates == (data_plate,) and not gate.variable.summed


def _known_beside(basis: Basis, gate: Gate) -> Iterator[AnyArray]:
    """Yield known labels of the rows that choose from a table together with a gate, (n,)."""
    data_plate = basis.problem.bound.data_plate
    for leaf in leaves_below(basis.problem, gate.variable):
        for slot in leaf.slots.values():
            for known in slot.chosen if slot.chosen_by(gate.variable) is not None else ():
                column = basis.sample.columns.get(ColumnKey(known.by.name))
                if isinstance(known.by, Data) and known.by.plates == (data_plate,) and column is not None:
                    yield np.asarray(column, dtype=np.int64)


def _promising(basis: Basis, moves: Sequence[Guess]) -> list[Guess]:
    """Return the moves whose labels have the highest objective, the globals after their updates."""
    scored: list[tuple[float, Guess]] = []
    for move in moves:
        try:
            scored.append((objective(from_labels(basis, move)), move))
        except ImproperError:
            continue
    scored.sort(key=lambda own: -own[0])
    return [move for _, move in scored[:_TRIED]]


def _of_two(one: Gate, other: Gate, labels: Guess) -> Iterator[Guess]:
    """Yield labels in which the rows of two combinations change places, or one combination joins another."""
    shape = one.size, other.size
    cells = np.ravel_multi_index((labels[one.variable], labels[other.variable]), shape)
    held = set(np.unique(cells).tolist())
    for a, b in permutations(range(shape[0] * shape[1]), 2):
        if a not in held:
            continue
        moved = [np.where(cells == a, b, cells)]
        if a < b and b in held:
            # to join an empty combination is to change places with it
            moved.append(np.where(cells == b, a, moved[0]))
        for own in moved:
            first, second = np.unravel_index(own, shape)
            yield {**labels, one.variable: first, other.variable: second}


def _within_groups(gate: Gate, groups: AnyArray, labels: Guess) -> Iterator[Guess]:
    """Yield labels in which two categories change places within a group of rows."""
    own = labels[gate.variable]
    for group in np.unique(groups):
        for a, b in combinations(range(gate.size), 2):
            places = np.arange(gate.size)
            places[[a, b]] = b, a
            yield {**labels, gate.variable: np.where(groups == group, places[own], own)}


def _with_best_columns(basis: Basis, gate: Gate, begun: Begun) -> Begun:
    """Return the start of a fit, or one with other labels of columns if that leads higher."""
    for _ in range(_ROUNDS_OF_COLUMNS):
        begun, elbo = settled(basis, begun)
        try:
            labels = labels_of(basis, begun.start)
            changed = in_best_columns(basis, gate, labels)
        except ImproperError:
            # the first pass over all rows says what is wrong with them
            return begun
        if np.array_equal(changed[gate.variable], labels[gate.variable]):
            return begun
        found = better(basis, elbo, [partial(start_from, basis, changed)])
        if found is None:
            return begun
        begun = found
    return begun
