"""Cut: a fit with thresholds, which no update of a factor moves: Newton's method over all rows after each step.

Given the utilities' own factors thresholds could move only between two of them. With these factors eliminated the
objective is a sum over the rows, concave in the thresholds, which depends on the means of the utilities alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.linalg import solveh_banded

from ...._errors import DataError
from ...._typing import AnyArray, Array
from ....language import Variable
from ....numerics.normal_tail import log_between
from ....numerics.records import replaced
from ...binding.clamped.factor import PointMass
from ...local.local_factor import LocalFactor
from ..problem import Problem
from ..schedule import AscentAround, Beginning
from ..state import AscentState, begin, retold

A = TypeVar("A", bound=AscentState)

_STEPS = 30
"""Steps of Newton's method at the most."""

_HALVINGS = 40
_SETTLED = 1e-12
"""Gain, relative to the objective, below which the thresholds have settled."""

_LOG_ROOT_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Cut(AscentAround[A]):
    """Another schedule whose steps end with the thresholds at their optimum.

    Attributes
    ----------
    own
        The other schedule.
    """

    def init(self, beginning: Beginning[A]) -> A:
        """Return the state before the first step, with the thresholds at their optimum."""
        state = self.own.init(beginning)
        moved = _moved(state)
        return state if moved is None else self.own.at(retold(moved))

    def step(self, state: A) -> A:
        """Return the state after a step, with the thresholds at their optimum."""
        after = self.own.step(state)
        moved = _moved(after) if after.status is None else None
        if moved is None:
            return after
        return retold(moved) if len(after.trace) > len(state.trace) else moved

    def judged(self, before: A, after: A, tol: float) -> A:
        """Return the state after an iteration of the other schedule."""
        change = (after.trace[-1] - before.trace[-1]) / before.per_row
        return self.own.judged(before, replaced(after, change=change), tol)


def _moved(state: A) -> A | None:
    """Return the state with each vector of thresholds at its optimum given the rest; None if that is no higher."""
    problem, q = state.problem, dict(state.q)
    for variable in (own for own in problem.order if own.is_point):
        cuts = np.asarray(q[variable].value)
        records = [_records(state, *own, cuts) for own in _utilities(problem, variable)]
        means, places, weights = (np.concatenate(parts) for parts in zip(*records, strict=True))
        _check_all_categories(variable, places, weights, len(cuts) + 1)
        q[variable] = PointMass.of(variable, best_cuts(cuts, means, places, weights))
    found = begin(problem, q, state.rows, state.warm)
    if not found.elbo > state.elbo:
        return None
    return replaced(
        state,
        problem=found.problem,
        rows=found.rows,
        q=found.q,
        arrays=found.arrays,
        objective=found.objective,
        warm=found.warm,
        by_batch=found.by_batch,
    )


def _utilities(problem: Problem, thresholds: Variable) -> list[tuple[LocalFactor, Variable]]:
    """Return the hidden utilities that are cut at some thresholds, each with its local factor."""
    answers = [
        node for node in problem.bound.observed if any(s.node is thresholds for s in node.slots.values())
    ]
    hidden = {own for answer in answers for own in answer.parents if isinstance(own, Variable)}
    return [
        (factor, variable)
        for factor in problem.factors
        for variable in factor.variables
        if variable in hidden and "lower" in variable.family.statistics
    ]


def _records(
    state: AscentState, factor: LocalFactor, utility: Variable, cuts: Array
) -> tuple[Array, AnyArray, Array]:
    """Return the mean of each utility, its category, and its weight; those without an answer are left out.

    A utility that labels choose has a mean for each of them, which weighs as much as the label is probable.
    """
    coefficients = state.problem.rows.coefficients(state.arrays)
    means, places, weights = [], [], []
    for rows, natural in state.rows.by_block(coefficients):
        linear, quadratic, upper = (
            factor.own(natural[factor.key], utility, name) for name in ("x", "xx", "upper")
        )
        each = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        shares = factor.shares(natural[factor.key])
        if shares is not None:
            shape = shares.shape[:-1] + (1,) * (linear.ndim - shares.ndim)
            each = (each * shares).reshape(*shape, rows.n_rows)
        each = np.broadcast_to(each, linear.shape)
        seen = (quadratic < 0) & (each > 0)
        ends = np.concatenate([cuts, [np.abs(upper).max(initial=1.0)]])
        place = np.abs(upper[..., None] - ends).argmin(axis=-1)
        means.append((linear / np.where(seen, -2.0 * quadratic, 1.0))[seen])
        places.append(place[seen])
        weights.append(each[seen])
    return np.concatenate(means), np.concatenate(places), np.concatenate(weights)


def _check_all_categories(thresholds: Variable, places: AnyArray, weights: Array, size: int) -> None:
    """Refuse data in which a category was never chosen.

    Raises
    ------
    DataError
        If so.
    """
    empty = np.flatnonzero(np.bincount(places, weights, size) == 0)
    if len(empty):
        raise DataError(
            f"no row has category {empty[0]}, so the data do not determine the thresholds "
            f"'{thresholds.name}' around it; number the categories without it, or give known thresholds"
        )


def best_cuts(cuts: Array, means: Array, places: AnyArray, weights: Array) -> Array:
    r"""Return the thresholds that maximise :math:`\sum_n w_n \log[\Phi(c_y - m_n) - \Phi(c_{y-1} - m_n)]`.

    Parameters
    ----------
    cuts
        To begin with, (K - 1,), increasing.
    means, places, weights
        m, category and weight of each record.
    """
    value, gradient, band = _derivatives(cuts, means, places, weights)
    for _ in range(_STEPS):
        step = solveh_banded(band, gradient, lower=True)
        for halving in range(_HALVINGS):
            moved = cuts + step * 0.5**halving
            if np.all(np.diff(moved) > 0):
                found = _derivatives(moved, means, places, weights)
                if found[0] >= value:
                    break
        else:
            return cuts
        gain, cuts = found[0] - value, moved
        value, gradient, band = found
        if gain <= _SETTLED * abs(value):
            return cuts
    return cuts


def _derivatives(cuts: Array, means: Array, places: AnyArray, weights: Array) -> tuple[float, Array, Array]:
    """Return the objective, its gradient, and minus its second derivatives: diagonal and first off-diagonal."""
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    lower, upper = ends[places] - means, ends[places + 1] - means
    log_p = log_between(lower, upper)
    size = len(cuts)
    below, above = (np.exp(-0.5 * end**2 - _LOG_ROOT_TWO_PI - log_p) for end in (lower, upper))
    gradient: Array = np.bincount(places, weights * above, size + 1)[:size].astype(np.float64)
    gradient = gradient - np.bincount(places, weights * below, size + 1)[1:]
    finite = [np.where(np.isfinite(end), end, 0.0) for end in (lower, upper)]
    of_upper = np.bincount(places, weights * (finite[1] + above) * above, size + 1)[:size]
    of_lower = np.bincount(places, weights * (below - finite[0]) * below, size + 1)[1:]
    between = -np.bincount(places, weights * below * above, size + 1)[1:]
    return float(weights @ log_p), gradient, np.stack([of_upper + of_lower, np.append(between[:-1], 0.0)])
