"""Fits of a model whose log joint density is tilted by a little of a statistic: linear response is their limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import caviar as cv
from caviar.engine.ascent.problem import Problem
from caviar.engine.ascent.state import advance, begin
from caviar.engine.evaluation.evaluate import factors_at, in_frame
from caviar.engine.response.quantities import Response
from caviar.engine.rows.row_map import RowMap

__all__ = ["Settled"]

_STEPS = (4e-3, 2e-3)
"""Of the tilts, in standard deviations of the statistic."""

_MOST_SWEEPS, _UNMOVED = 20_000, 2e-14


class Settled:
    """A fit that no sweep moves any more, and its tilts.

    Parameters
    ----------
    posterior
        Where it begins.
    data
        Those of the fit.
    """

    def __init__(self, posterior: cv.Posterior, data: Mapping[str, Any], **arguments: Any) -> None:
        problem, rows = posterior._evaluator.bind(data, **arguments)
        self.problem: Problem = problem.with_rows(problem.rows.thorough())
        self.rows: RowMap = rows
        self.factors = self._factors_from({name: posterior[name] for name in posterior})
        self.response = Response(self.problem, self.factors, rows)

    def _factors_from(self, factors: Mapping[str, Any]) -> dict[str, Any]:
        state = begin(self.problem, in_frame(self.problem, factors), self.rows)
        before: Any = None
        for _ in range(_MOST_SWEEPS):
            state = advance(state)
            assert state.problem is self.problem, "the reference points moved, and the tilt went with them"
            after = np.concatenate([np.ravel(eta) for v in self.problem.order for eta in state.natural[v]])
            if before is not None and np.abs(after - before).max() < _UNMOVED * np.abs(after).max():
                break
            before = after
        return factors_at(self.problem, state.q)

    def slopes(self, name: str, place: int) -> dict[str, np.ndarray]:
        """Return by how much the means of every variable change with the natural parameter of an entry of x of one."""
        variable = next(own for own in self.problem.order if own.name == name)
        fixed = self.problem.updates[variable].fixed
        number = variable.family.statistics.index("x")
        scale = np.sqrt(self.response.variance(name)[place])
        ends = {}
        for step in (sign * own for own in _STEPS for sign in (1.0, -1.0)):
            stated = fixed[number]
            tilt = np.zeros(stated.size)
            tilt[place] = step / scale
            fixed[number] = stated + tilt.reshape(stated.shape)
            ends[step] = {own: _means_of(q) for own, q in self._factors_from(self.factors).items()}
            fixed[number] = stated
        wide, narrow = (
            {own: (ends[h][own] - ends[-h][own]) / (2 * h) * scale for own in self.factors} for h in _STEPS
        )
        return {own: (4 * narrow[own] - wide[own]) / 3 for own in self.factors}

    def worst_of_all(self, seed: int = 0) -> float:
        """Return the largest difference of means to their slopes along a tilt by all statistics of all globals at once.

        The tilt is random, of one standard deviation; differences are in standard deviations of the entries.
        """
        operator, rng = self.response._operator, np.random.default_rng(seed)
        spreads = np.linalg.norm(operator.times(np.eye(operator.size)), axis=1)
        flat = rng.normal(size=len(spreads)) / np.where(spreads > 0, spreads, 1.0)
        tilts: dict[Any, list[np.ndarray]] = {}
        for variable in self.problem.order:
            start = operator.start_of(variable.name)
            for key, eta in zip(self.problem.keys[variable], operator.natural[variable], strict=True):
                own = flat[start : start + eta.size].reshape(eta.shape)
                is_matrix = variable.is_matrix(key.statistic)
                tilts.setdefault(variable, []).append(
                    0.5 * (own + own.swapaxes(-1, -2)) if is_matrix else own
                )
                start += eta.size
        told = operator.transposed(
            np.concatenate([np.ravel(t) for v in self.problem.order for t in tilts[v]])[:, None]
        )
        size = float(np.linalg.norm(told))
        ends = {}
        for step in (sign * own for own in _STEPS for sign in (1.0, -1.0)):
            before = {v: list(self.problem.updates[v].fixed) for v in tilts}
            for variable, own in tilts.items():
                fixed = self.problem.updates[variable].fixed
                for number, tilt in enumerate(own):
                    fixed[number] = fixed[number] + step / size * tilt
            ends[step] = {own: _means_of(q) for own, q in self._factors_from(self.factors).items()}
            for variable, stated in before.items():
                self.problem.updates[variable].fixed[:] = stated
        moved = told / size + self.response._solution.excess(told / size)
        worst = 0.0
        for name in self.factors:
            wide, narrow = ((ends[h][name] - ends[-h][name]) / (2 * h) for h in _STEPS)
            sd = np.sqrt(self.response.variance(name))
            found = (self.response._entries.columns(name).T @ moved)[:, 0]
            off = np.abs(found - (4 * narrow - wide) / 3)[sd > 0]
            worst = max(worst, float((off / sd[sd > 0]).max(initial=0.0)))
        return worst

    def worst(self, name: str, place: int = 0) -> float:
        """Return the largest difference of covariances with an entry of x to these slopes, as correlations."""
        slopes, sd = self.slopes(name, place), np.sqrt(self.response.variance(name)[place])
        differences = [
            np.abs(self.response.covariance(name, own)[place] - slope) / np.sqrt(self.response.variance(own))
            for own, slope in slopes.items()
        ]
        return float(np.concatenate(differences).max() / sd)


def _means_of(factor: Any) -> np.ndarray:
    """Return the means of all entries of a value, parts one after the other."""
    return np.concatenate([np.ravel(part.mean) for part in factor.entry_marginals((0.1, 0.9))])
