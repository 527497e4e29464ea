"""How natural parameters of all updates change with expected statistics: the derivative H, by passes over the rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from ...._typing import AnyArray, Array
from ...ascent.problem import Problem
from ...design.keys import StatisticKey
from ...local.statistics import Arrays, Sums
from ...rows.row_map import RowMap, Warm
from .blocks import RespondBlocks
from .terms import directions_of, terms_of


class Derivative:
    """How the natural parameters of all updates change with expected statistics, local factors at their optimum.

    Parameters
    ----------
    problem
        Of the fit.
    arrays
        Expected statistics of its globals, and sums over the rows.
    rows
        The map over the rows.
    warm
        Local factors near their optimum, where these depend on each other.

    Attributes
    ----------
    natural
        Natural parameters of the update of each global.
    n_statistics
        Numbers of the statistics of all globals, P.
    """

    def __init__(self, problem: Problem, arrays: Mapping[Hashable, Array], rows: RowMap, warm: Warm) -> None:
        self.problem, self._arrays = problem, dict(arrays)
        self._rows, self._warm, self._model = rows, warm, rows.model
        self.natural = {v: problem.updates[v].natural(self._arrays) for v in problem.order}
        self._shapes: dict[StatisticKey, tuple[int, ...]] = {}
        self._square = {key for v in problem.order for key in problem.keys[v] if v.is_matrix(key.statistic)}
        self._places: dict[str, int] = {}
        start = 0
        for variable in problem.order:
            own = self.natural[variable]
            self._places[variable.name] = start
            self._shapes |= {key: eta.shape for key, eta in zip(problem.keys[variable], own, strict=True)}
            start += sum(eta.size for eta in own)
        self.n_statistics = start
        self._terms = terms_of(problem)
        self._coefficients = self._model.coefficients(self._arrays) if problem.factors else None

    def start_of(self, name: str) -> int:
        """Return the place of the first statistic of a variable among those of all globals."""
        return self._places[name]

    def moved(self, statistics: Array) -> Array:
        """Return the changes of the natural parameters, (P, n), with changes of the statistics, (P, n)."""
        n = statistics.shape[1]
        changes = self._apart(statistics)
        sums = self._through_rows(changes, n)
        natural, _ = self._terms.of_updates.change(self._arrays, {**changes, **sums}, n)
        return self._joined(natural, n)

    def _through_rows(self, changes: Arrays, n: int) -> Arrays:
        """Return the changes of the sums over the rows that count in those of the natural parameters."""
        return self._sums_changes(changes, n)

    def _apart(self, statistics: Array) -> Arrays:
        """Return changes (P, n) of the statistics by key, (n, ...); those that do not change are left out."""
        found: Arrays = {}
        start = 0
        for key, shape in self._shapes.items():
            stop = start + math.prod(shape)
            own = statistics[start:stop]
            if own.any():
                found[key] = own.T.reshape(-1, *shape)
            start = stop
        return found

    def _joined(self, natural: Mapping[Hashable, Array], n: int) -> Array:
        """Return changes by key, (n, ...), one below the other, (P, n)."""
        parts = []
        for key, shape in self._shapes.items():
            own = natural.get(key)
            if own is None:
                parts.append(np.zeros((math.prod(shape), n)))
                continue
            if key in self._square:
                own = 0.5 * (own + own.swapaxes(-1, -2))
            parts.append(np.broadcast_to(own, (n, *shape)).reshape(n, -1).T)
        return np.concatenate(parts) if parts else np.zeros((0, n))

    def _sums_changes(self, changes: Arrays, n: int) -> Arrays:
        """Return by how much the sums over the rows change with n changes of the globals, (n, ...)."""
        if self._coefficients is None:
            return {}
        parts, concerned = self._terms.of_coefficients.change(self._arrays, changes, n)
        if not concerned.any():
            return {}
        return self._sums_along(parts, concerned)

    def _sums_along(self, parts: Arrays, concerned: AnyArray) -> Arrays:
        """Return by how much the sums over the rows change with changes of the coefficients, (n, ...)."""
        directions, shares = directions_of(parts, concerned)
        own = self._responses(directions)
        return {key: np.tensordot(shares, value, axes=(1, 0)) for key, value in own.items()}

    def _responses(self, directions: Sequence[Arrays]) -> Arrays:
        """Return by how much the sums over the rows change along some changes of the coefficients, by a pass."""
        model, rows = self._model, self._rows
        assert self._coefficients is not None
        of_rows = tuple(model.changed(own, self._coefficients) for own in directions)
        work = RespondBlocks(model, self._coefficients, of_rows)
        chunks = rows.chunks
        carried = [self._warm.get(chunk.number) for chunk in chunks]
        total, _ = rows.executor.sum(work, rows.source, chunks, carried)
        found: dict[Hashable, list[Array]] = {}
        for number, change in enumerate(of_rows):
            own = Sums(
                {key: value[number] for key, value in total.fused.items()},
                {key: value[number] for key, value in total.parts.items()},
                {},
                {},
            )
            for key, value in model.summary(own, Sums.zero(), change).parts.items():
                found.setdefault(key, []).append(value)
        return {key: np.stack(values) for key, values in found.items()}
