"""Guesses of labels that choose from one table: one cluster for each cell.

Which cluster is in which cell matters to the probabilities of the labels, and to the steps of a chain, whose states
then follow each other as they should.

A label of columns, or of groups, may choose among parameters of its own column: those of each cluster, or those of all
rows. Random labels of columns leave clusters too few columns to be told apart by, and what a column does not choose
stays at its prior. So columns have the labels that are best beside clusters of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice, permutations
from math import factorial, prod

import numpy as np

from ...._errors import ImproperError
from ...._typing import AnyArray, Array
from ....language import Variable
from ..clustering.partitions import location_points, partition
from ..components.gates import Gate
from .assignment import objective
from .basis import Basis, Guess
from .from_labels import from_labels
from .partitioned import in_clusters

_CLUSTERINGS = 3
"""Clusterings of the values, whose clusters are arranged each."""

_EVERY = 60
"""Arrangements that differ up to which all are compared; of more, some, improved by exchanges of two clusters."""

_BEGINNINGS, _EXCHANGES = 4, 60
"""Random arrangements in the place of all, and exchanges that are tried with each."""

_MOST_CELLS = 32
"""Cells of a table beyond which nothing is arranged."""

_MOST_NUMBERS = 200_000
"""Largest product of the number of rows and the size of the globals for which arrangements are compared."""

_MOST_CHANGES = 200
"""Columns times other categories up to which labels of columns are guessed, and changed one by one."""

_MOST_NUMBERS_OF_CHANGES = 20_000_000
"""Largest product of these changes, the number of rows, and the size of the globals."""


def in_cells(basis: Basis) -> Iterator[Guess]:
    """Yield labels of tables that several hidden labels of a row choose from."""
    is_dear = basis.sample.n_rows * basis.problem.n_natural > _MOST_NUMBERS
    for gates in _tables(basis):
        yield from _within(basis, gates)
        sizes = tuple(gate.size for gate in gates)
        several = _points(basis, gates)
        if not several or prod(sizes) > _MOST_CELLS:
            continue
        for number in range(_CLUSTERINGS):
            points, weights = several[number % len(several)], basis.weights(gates[0])
            clusters = partition(points, weights, prod(sizes), basis.rng)
            if is_dear:
                yield _placed(basis, gates, clusters, np.arange(prod(sizes)))
            else:
                yield _arranged(basis, gates, clusters)


def _within(basis: Basis, gates: Sequence[Gate]) -> Iterator[Guess]:
    """Yield labels of two that choose from a table, if only one of them has columns of its own.

    The other is clustered within each category of the first. The names of its clusters there matter only to its
    probabilities: the largest has the first name.
    """
    data_plate = basis.problem.bound.data_plate
    if len(gates) != 2 or any(g.variable.summed or g.variable.plates != (data_plate,) for g in gates):
        return
    alone = [_alone(basis, gate, other) for gate, other in (gates, gates[::-1])]
    points, first, other = (alone[0], *gates) if alone[1] is None else (alone[1], *gates[::-1])
    located = location_points(basis.problem, [other.variable], basis.sample)
    if points is None or located is None or all(own is not None for own in alone):
        return
    weights = basis.weights(first)
    for _ in range(_CLUSTERINGS):
        labels = partition(points, weights, first.size, basis.rng)
        inner = np.zeros_like(labels)
        for rows in (np.flatnonzero(labels == category) for category in np.unique(labels)):
            found = partition(located[rows], weights[rows], other.size, basis.rng)
            counts = np.bincount(found, weights[rows], other.size)
            inner[rows] = np.argsort(np.argsort(-counts, kind="stable"))[found]
        yield {first.variable: labels, other.variable: inner}


def _alone(basis: Basis, gate: Gate, other: Gate) -> Array | None:
    """Return the values whose location one gate of a table chooses, and the other does not."""
    return location_points(basis.problem, [gate.variable], basis.sample, [other.variable])


def _points(basis: Basis, gates: Sequence[Gate]) -> list[Array]:
    """Return points that the cells of a table are seen in: all values whose location one of its labels chooses."""
    labels = [gate.variable for gate in gates]
    located = location_points(basis.problem, labels, basis.sample)
    return [cloud.points for cloud in basis.clouds(gates[0])] if located is None else [located]


def _tables(basis: Basis) -> list[tuple[Gate, ...]]:
    """Return the gates of rows that choose from a table together, chains first."""
    by_variable = {gate.variable: gate for gate in basis.gates if gate.factor is not None and gate.size > 1}
    found: dict[frozenset[Variable], tuple[Gate, ...]] = {}
    for node in basis.problem.bound.nodes:
        for slot in node.slots.values() if isinstance(node, Variable) else ():
            labels = [own.by for own in slot.gates if isinstance(own.by, Variable) and own.by in by_variable]
            if len(labels) > 1 and all(label.plates == labels[0].plates for label in labels):
                gates = sorted((by_variable[own] for own in labels), key=lambda gate: gate.chain is None)
                found.setdefault(frozenset(labels), tuple(gates))
    return list(found.values())


def _placed(basis: Basis, gates: Sequence[Gate], clusters: AnyArray, cells: AnyArray) -> Guess:
    """Return the labels of rows whose clusters are in these cells."""
    shape = gates[0].shape(basis.problem, basis.sample.n_rows)
    places = np.unravel_index(cells[clusters].reshape(shape), tuple(gate.size for gate in gates))
    return {gate.variable: own for gate, own in zip(gates, places, strict=True)}


def _arranged(basis: Basis, gates: Sequence[Gate], clusters: AnyArray) -> Guess:
    """Return labels by the arrangement of clusters with the highest objective."""
    sizes = tuple(gate.size for gate in gates)

    def score(cells: AnyArray) -> float:
        return _score(basis, _placed(basis, gates, clusters, cells))

    if factorial(prod(sizes)) <= _EVERY * prod(map(factorial, sizes)):
        best = max(_distinct(sizes), key=score)
        return _placed(basis, gates, clusters, best)
    ends = [_exchanged(basis.rng.permutation(prod(sizes)), score, basis.rng) for _ in range(_BEGINNINGS)]
    return _placed(basis, gates, clusters, max(ends, key=lambda end: end[0])[1])


def _score(basis: Basis, guess: Guess) -> float:
    """Return the objective of labels, the globals after their updates; minus infinity where that is no fit."""
    try:
        return objective(from_labels(basis, guess))
    except ImproperError:
        return -np.inf


def _distinct(sizes: tuple[int, ...]) -> Iterator[AnyArray]:
    """Yield arrangements in cells that differ in more than the names of the categories."""
    seen = set()
    for cells in permutations(range(prod(sizes))):
        places = np.stack(np.unravel_index(cells, sizes))
        # categories in the order in which the clusters have them
        named = tuple(tuple(np.unique(own, return_index=True)[1].argsort().argsort()[own]) for own in places)
        if named not in seen:
            seen.add(named)
            yield np.asarray(cells)


def _exchanged(
    cells: AnyArray, score: Callable[[AnyArray], float], rng: np.random.Generator
) -> tuple[float, AnyArray]:
    """Return the score of an arrangement, and that, after exchanges of two clusters that raise it."""
    best = score(cells)
    pairs = list(combinations(range(len(cells)), 2))
    for place in rng.permutation(len(pairs))[:_EXCHANGES]:
        moved = cells.copy()
        moved[list(pairs[place])] = cells[list(pairs[place][::-1])]
        own = score(moved)
        if own > best:
            best, cells = own, moved
    return best, cells


def choosing_of_their_own(basis: Basis) -> list[Gate]:
    """Return the labels that are global variables and choose parameters that are repeated along their own plate.

    Another label chooses for the same values. Point masses have none.
    """
    if basis.problem.point:
        return []
    return [gate for gate in basis.gates if gate in basis.shared and _chooses_of_its_own(basis, gate)]


def in_columns(basis: Basis) -> Iterator[Guess]:
    """Yield labels by clusters of the rows, and beside them the labels of columns that are best."""
    gates = choosing_of_their_own(basis)
    for guess in islice(in_clusters(basis), _CLUSTERINGS if gates else 0):
        for gate in gates:
            alike = np.zeros(gate.shape(basis.problem, basis.sample.n_rows), dtype=np.int64)
            yield in_best_columns(basis, gate, {**guess, gate.variable: gate.known(basis.problem, alike)})


def in_best_columns(basis: Basis, gate: Gate, labels: Guess) -> Guess:
    """Return labels in which each column has the category that is best beside the other columns' as they are."""
    own = labels[gate.variable]
    now, best = _score(basis, labels), own.copy()
    for place in np.ndindex(own.shape):
        highest = now
        for category in range(gate.size):
            if category == own[place]:
                continue
            moved = own.copy()
            moved[place] = category
            reached = _score(basis, {**labels, gate.variable: moved})
            if reached > highest:
                best[place], highest = category, reached
    return {**labels, gate.variable: gate.known(basis.problem, best)}


def _chooses_of_its_own(basis: Basis, gate: Gate) -> bool:
    if gate.factor is not None or gate.size < 2 or not gate.variable.plates:
        return False
    n_changes = int(np.prod(gate.shape(basis.problem, basis.sample.n_rows))) * (gate.size - 1)
    if (
        n_changes > _MOST_CHANGES
        or n_changes * basis.sample.n_rows * basis.problem.n_natural > _MOST_NUMBERS_OF_CHANGES
    ):
        return False
    return any(
        slot.chosen_by(gate.variable) is not None and set(gate.variable.plates) & set(slot.node.plates)
        for node in basis.problem.bound.nodes
        if isinstance(node, Variable)
        for slot in node.slots.values()
    )
