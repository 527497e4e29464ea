"""A start from labels: the globals that follow from them by their own updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...._typing import AnyArray
from ....language import Variable
from ...binding.clamped.factor import PointMass
from ...local.local_factor import LocalFactor
from ...local.statistics import LocalState, Rows
from ..factors.given_locals import GivenLocals, expected_of, with_labels
from ..factors.swept import Swept, swept
from .basis import Basis, Guess

_ROUNDS = 3
"""Rounds in which what is hidden beside guessed labels follows from them."""


def from_labels(basis: Basis, guess: Guess) -> Swept:
    """Return the globals after their updates with some labels at these values; what has none is drawn.

    Gates that are global variables stay at their labels meanwhile, and numbers 0 or 1 that multiply something at 1.
    """
    problem, sample = basis.problem, basis.sample
    local = _by_factor(basis, guess)
    fixed = {
        gate.variable: problem.with_known(
            gate.variable, PointMass.of(gate.variable, np.asarray(guess[gate.variable]))
        )
        for gate in basis.gates
        if gate.factor is None and gate.variable in guess
    }
    n_rows = sample.n_rows
    every = Rows(sample.columns, sample.row_weights, n_rows, slice(0, n_rows))
    state = _states(basis, local, every)
    for factor in problem.factors:
        (variable, *others) = factor.variables
        if not others and variable in basis.points:
            state[factor.key] = expected_of(problem, factor, {variable: basis.points[variable]}, every)
    if any(factor.key not in state for factor in problem.factors):
        state = {**basis.draws, **state}

    def give(rows: Rows) -> LocalState:
        return {key: values[:, rows.where].copy() for key, values in state.items()}

    ones = {
        variable: PointMass.of(variable, np.ones(np.shape(basis.q[variable].mean)))
        for variable in basis.present
    }
    fixed = {**basis.held, **fixed}
    q: dict[Variable, Any] = {**basis.q, **fixed, **ones}
    kept = frozenset((*fixed, *ones))
    problem, q, arrays = swept(problem, q, give, sample, basis.row_map, kept)
    labels = {variable: values for own in local.values() for variable, values in own.items()}
    for _ in range(_ROUNDS if basis.follows else 0):
        given = GivenLocals(problem, q, labels, basis.row_map)
        if given.are_all:
            break
        problem, q, arrays = swept(problem, q, given, sample, basis.row_map, kept)
    for variable in ones:
        q[variable] = problem.update(variable, arrays)
        arrays.update(problem.statistics(variable, q[variable]))
    return problem, q, arrays


def _by_factor(basis: Basis, guess: Guess) -> dict[LocalFactor, dict[Variable, AnyArray]]:
    """Return the labels of local factors that are guessed."""
    found: dict[LocalFactor, dict[Variable, AnyArray]] = {}
    for gate in basis.gates:
        if gate.factor and gate.variable in guess:
            found.setdefault(gate.factor, {})[gate.variable] = guess[gate.variable]
    return found


def _states(basis: Basis, local: Mapping[LocalFactor, Mapping[Variable, AnyArray]], rows: Rows) -> LocalState:
    """Return the local factors with guessed labels; labels beside them in one factor are drawn."""
    are_drawn = any(label not in own for factor, own in local.items() for label in factor.labels)
    drawn = basis.draws if are_drawn else None
    return {
        factor.key: with_labels(basis.problem, factor, own, rows, basis.points, drawn)
        for factor, own in local.items()
    }
