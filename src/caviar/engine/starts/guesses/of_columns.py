"""Guesses of labels of columns, or of groups, each of which chooses among parameters of its own column.

A label may say whether a column has parameters of each cluster or those of all rows. Random labels of columns leave
clusters too few columns to be told apart by, and what a column does not choose stays at its prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from ....language import Variable
from ..components.gates import Gate
from .assignment import objective
from .basis import Basis, Guess
from .from_labels import from_labels
from .partitioned import in_clusters

_MOST_CHANGES = 200
"""Columns times other categories up to which labels of columns are guessed, and changed one by one."""

_MOST_NUMBERS = 20_000_000
"""Largest product of these changes, the number of rows, and the size of the globals."""

_CLUSTERINGS = 3
"""Guesses of the other labels."""


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
    now, best = objective(from_labels(basis, labels)), own.copy()
    for place in np.ndindex(own.shape):
        highest = now
        for category in range(gate.size):
            if category == own[place]:
                continue
            moved = own.copy()
            moved[place] = category
            reached = objective(from_labels(basis, {**labels, gate.variable: moved}))
            if reached > highest:
                best[place], highest = category, reached
    return {**labels, gate.variable: gate.known(basis.problem, best)}


def _chooses_of_its_own(basis: Basis, gate: Gate) -> bool:
    if gate.factor is not None or gate.size < 2 or not gate.variable.plates:
        return False
    n_changes = int(np.prod(gate.shape(basis.problem, basis.sample.n_rows))) * (gate.size - 1)
    if n_changes > _MOST_CHANGES or n_changes * basis.sample.n_rows * basis.problem.n_natural > _MOST_NUMBERS:
        return False
    return any(
        slot.chosen_by(gate.variable) is not None and set(gate.variable.plates) & set(slot.node.plates)
        for node in basis.problem.bound.nodes
        if isinstance(node, Variable)
        for slot in node.slots.values()
    )
