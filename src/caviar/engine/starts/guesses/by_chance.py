"""Guesses without clustering: random labels, all labels alike, and none at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...._errors import ImproperError
from .assignment import objective
from .basis import Basis, Guess
from .from_labels import from_labels

_DRAWS = 4
"""Random guesses if nothing else distinguishes the categories; one guess if something does."""

_OF_ANSWERS = 2
"""Random guesses of an ordinary mixture of answers."""

_MOST_ALIKE = 4
"""Categories of which each is tried for all gates without a plate: the best ones of a single gate."""

_MOST_NUMBERS = 20_000_000
"""Largest product of the categories of a gate, the rows and the size of the globals for which all are compared."""


def without_labels(basis: Basis) -> Iterator[Guess]:
    """Yield no labels where nothing is clustered: gates are at their priors when the others are updated."""
    if not any(basis.clouds(gate) for gate in basis.gates if gate.size > 1):
        yield {}


def at_random(basis: Basis) -> Iterator[Guess]:
    """Yield random labels, more of them where there is nothing to be clustered.

    Of ordinary mixtures only where they are of answers: elsewhere clusters of the rows lead at least as far.
    """
    gates = [gate for gate in basis.gates if gate.size > 1]
    if not gates or (basis.is_plain and not basis.problem.chains and not basis.is_of_answers):
        return
    n_draws = 1 if all(basis.clouds(gate) for gate in gates) else _DRAWS
    for _ in range(_OF_ANSWERS if basis.is_of_answers else n_draws):
        yield {
            gate.variable: basis.rng.integers(0, gate.size, gate.shape(basis.problem, basis.sample.n_rows))
            for gate in gates
        }


def alike(basis: Basis) -> Iterator[Guess]:
    """Yield categories for all gates without a plate, as of variables that are in a regression or not.

    Of one gate with many categories, as the times of a change or the values of a number in a curve, these are the best
    ones: the others follow the first category closely, and then hold it where it is.
    """
    gates = [gate for gate in basis.gates if not gate.variable.plates]
    n_categories = max((gate.size for gate in gates), default=0)
    guesses: list[Guess] = [
        {gate.variable: np.array(min(category, gate.size - 1)) for gate in gates}
        for category in range(n_categories)
    ]
    n_numbers = n_categories * basis.sample.n_rows * basis.problem.n_natural
    if len(gates) == 1 and n_categories > _MOST_ALIKE and n_numbers <= _MOST_NUMBERS:
        guesses.sort(key=lambda guess: -_objective(basis, guess))
    yield from guesses[:_MOST_ALIKE]


def _objective(basis: Basis, guess: Guess) -> float:
    """Return the objective of labels, the globals after their updates; minus infinity where that is no fit."""
    try:
        return objective(from_labels(basis, guess))
    except ImproperError:
        return -np.inf
