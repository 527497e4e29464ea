"""Guesses without clustering: random labels, all labels alike, and none at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .basis import Basis, Guess

_DRAWS = 4
"""Random guesses if nothing else distinguishes the categories; one guess if something does."""

_OF_ANSWERS = 2
"""Random guesses of an ordinary mixture of answers."""

_MOST_ALIKE = 4
"""Categories of which each is tried for all gates without a plate."""


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
    """Yield each category for all gates without a plate, as of variables that are in a regression or not."""
    gates = [gate for gate in basis.gates if not gate.variable.plates]
    for category in range(min(max((gate.size for gate in gates), default=0), _MOST_ALIKE)):
        yield {gate.variable: np.array(min(category, gate.size - 1)) for gate in gates}
