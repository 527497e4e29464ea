"""Cells: combinations of two labels that share values, whose rows are given to other combinations.

Labels of one sum or product wait for each other: rows that are in a wrong combination keep the numbers of both labels
where they are. No update of one label leads out of that, and few guesses of all labels have every combination in its
place. So the rows of a combination, all at once, change places with those of another, or join them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations, permutations

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray
from .candidates import start_from
from .components.gates import Gate
from .exchange import labels_of
from .guesses.assignment import objective
from .guesses.basis import Basis, Guess
from .guesses.from_labels import from_labels
from .moves import better, settled
from .race import Begun

_ROUNDS = 4
"""Times that the rows of a combination are given to another one: the next ones may be possible after the first."""

_MOST_NUMBERS = 200_000
"""Rows times numbers that globals consist of, up to which it is tried."""

_MOST_MOVES = 150
"""Moves of two labels in a round; of more some are drawn."""

_TRIED = 12
"""Moves that are tried in the model in a round: those that promise most by what their labels come to."""


def with_cells_moved(basis: Basis, begun: Begun) -> Begun:
    """Return where a fit begins, or where one leads whose rows have other combinations of labels, if that is higher.

    Of likelihoods none are tried: a component of few rows may raise one without a bound.
    """
    gates = [
        gate
        for gate in basis.gates
        if gate.factor is not None and gate.size > 1 and gate in basis.shared and not gate.variable.summed
    ]
    is_dear = basis.sample.n_rows * basis.problem.n_natural > _MOST_NUMBERS
    if len(gates) < 2 or is_dear or basis.problem.point:
        return begun
    for _ in range(_ROUNDS):
        begun, elbo = settled(basis, begun)
        labels = labels_of(basis, begun.start)
        moves = [partial(start_from, basis, guess) for guess in _promising(basis, gates, labels)]
        found = better(basis, elbo, moves)
        if found is None:
            break
        begun = found
    return begun


def _promising(basis: Basis, gates: list[Gate], labels: Guess) -> list[Guess]:
    """Return the moves whose labels have the highest objective, the globals after their updates."""
    scored: list[tuple[float, Guess]] = []
    for one, other in combinations(gates, 2):
        if labels[one.variable].shape == labels[other.variable].shape:
            for move in _moves(basis, one, other, labels):
                try:
                    scored.append((objective(from_labels(basis, move)), move))
                except ImproperError:
                    continue
    scored.sort(key=lambda own: -own[0])
    return [move for _, move in scored[:_TRIED]]


def _moves(basis: Basis, one: Gate, other: Gate, labels: Guess) -> Iterator[Guess]:
    """Yield labels in which the rows of two combinations change places, or those of one join those of another."""
    shape = one.size, other.size
    cells = np.ravel_multi_index((labels[one.variable], labels[other.variable]), shape)
    held = set(np.unique(cells).tolist())
    joins = [(a, b, False) for a, b in permutations(range(shape[0] * shape[1]), 2) if a in held]
    # to join an empty combination is to change places with it
    swaps = [(a, b, True) for a, b, _ in joins if a < b and b in held]
    changes = [*joins, *swaps]
    if len(changes) > _MOST_MOVES:
        changes = [changes[place] for place in basis.rng.permutation(len(changes))[:_MOST_MOVES]]
    for a, b, is_swap in changes:
        moved: AnyArray = np.where(cells == a, b, np.where(is_swap & (cells == b), a, cells))
        first, second = np.unravel_index(moved, shape)
        yield {**labels, one.variable: first, other.variable: second}
