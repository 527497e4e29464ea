"""Exchange: converged clusters are assigned to components again.

An assignment is made for the clusters of a guess. As a fit settles, rows go from one to another, and the components
that fitted best may fit no longer: of two with known weights the one with more rows may be left with the smaller
weight. No update exchanges them, so it is tried here, and kept where it leads higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..._errors import ImproperError
from ..design.keys import StatisticKey
from ..evaluation.evaluate import factors_at, local_distributions
from .factors.prior import Start
from .guesses.assignment import rearranged
from .guesses.basis import Basis, Guess
from .guesses.from_labels import from_labels
from .race import Begun, best_of

_ROUNDS = 3
"""Times that clusters are given to components anew: an exchange changes them in turn."""


def exchanged(basis: Basis, begun: Begun) -> Begun:
    """Return where a fit begins, or where one leads that has its clusters in other components, whichever is higher.

    Parameters
    ----------
    basis
        The model and its sample.
    begun
        With global factors that have nearly settled on the sample.
    """
    if not any(basis.differs(gate) and gate.size > 1 and gate.variable.plates for gate in basis.gates):
        return begun
    for _ in range(_ROUNDS):
        try:
            labels = labels_of(basis, begun.start)
        except ImproperError:
            # the first pass over all rows says what is wrong with them
            break
        others = rearranged(basis, labels, from_labels)
        if not others:
            break
        begun = best_with(basis, begun, others)
        found = labels_of(basis, begun.start)
        if all(np.array_equal(labels[variable], own) for variable, own in found.items()):
            break
    return begun


def best_with(basis: Basis, begun: Begun, guesses: Sequence[Guess]) -> Begun:
    """Return the winner of a race between where a fit begins and further labels, taken as they are."""
    others = [partial(_begun, basis, guess) for guess in guesses]
    return best_of([partial(_kept, begun.start), *others], basis)


def _kept(start: Start) -> Start:
    return start


def _begun(basis: Basis, guess: Guess) -> Start:
    problem, q, _ = from_labels(basis, guess)
    return problem, q


def labels_of(basis: Basis, start: Start) -> Guess:
    """Return the most probable label of each repetition of each gate with a plate, given global factors."""
    problem, q = start
    local = local_distributions(problem, factors_at(problem, q), basis.row_map, anew=False)
    found = {}
    for gate in basis.gates:
        if not gate.variable.plates:
            continue
        if gate.factor is None:
            key = StatisticKey(gate.variable.name, "x")
            shares = problem.statistics(gate.variable, q[gate.variable])[key]
        else:
            shares = local[gate.variable.name].probabilities
        found[gate.variable] = np.argmax(shares, axis=-1)
    return found
