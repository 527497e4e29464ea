"""Fits in which some globals are known, by passes over rows that hide something."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import NamedTuple

import numpy as np

from ..._typing import Array, Statistics
from ..ascent.elbo import Objective
from ..ascent.problem import Factors, Problem
from ..ascent.state import AscentState
from .cost import operations_of_a_pass
from .given import Apart, Fits, figures_of

_MOST_PASSES, _SETTLED = 40, 3e-3
"""Passes to the fit at a value, and the rise of its ELBO at which they end."""

_OF_A_PASS = 0.25
"""Of the operations of a pass: those of small tables take less time each than small matrices do."""


class Passed(NamedTuple):
    """The fit at a value, found by passes over the rows, and where the fits at values nearby begin.

    Attributes
    ----------
    log_density
        Of data and value, up to what the ELBO of the fit lacks.
    shifts, sds
        As of :class:`Fits`, for one value: by name, (G,).
    arrays, q
        Expected statistics and sums over the rows, and the other factors.
    """

    log_density: float
    shifts: Mapping[str, Array]
    sds: Mapping[str, Array]
    arrays: Mapping[Hashable, Array]
    q: Factors


class GivenByPasses(Apart):
    """The same fits one after the other, by passes over the rows, where these hide something."""

    def __init__(self, state: AscentState, names: Collection[str]) -> None:
        super().__init__(state, names)
        self._means = figures_of({own: state.q[own] for own in self._others})[0]
        self._session = state.rows.executor.session

    def fit_at(self, statistics: Mapping[str, Statistics], beside: Passed | None) -> Passed:
        """Return the fit at a value, begun at that of a value beside it."""
        problem, rows = self._state.problem, self._state.rows
        arrays = dict(self._state.arrays if beside is None else beside.arrays)
        q = dict(self._state.q if beside is None else beside.q)
        for variable in self._known:
            q.pop(variable, None)
            arrays.update(zip(problem.keys[variable], statistics[variable.name], strict=True))
        elbo, before, warm = -np.inf, -np.inf, self._state.warm
        with self._session():
            for _ in range(_MOST_PASSES):
                look = rows.look(problem.rows.coefficients(arrays), warm)
                arrays.update(look.summary.parts)
                elbo = Objective(problem, q, dict(arrays), look.summary).value
                if elbo - before < _SETTLED:
                    break
                before, warm = elbo, look.warm
                for variable in self._others:
                    q[variable] = problem.update(variable, arrays)
                    problem.tell(arrays, variable, q[variable])
        return self._passed(elbo, statistics, arrays, q)

    def _passed(
        self,
        elbo: float,
        statistics: Mapping[str, Statistics],
        arrays: Mapping[Hashable, Array],
        q: Factors,
    ) -> Passed:
        for variable in self._known:
            # they have no factor, with which their own terms would be told
            known, linear = self._state.problem.summed_terms.own.get(variable, (0.0, ()))
            elbo += known + sum(own.value(arrays) for own in linear)
            base = zip(statistics[variable.name], self._state.q[variable].base_measure, strict=True)
            elbo += sum(share * float(np.sum(value)) for value, share in base if share)
        means, sds = figures_of({own: q[own] for own in self._others})
        return Passed(elbo, {name: own - self._means[name] for name, own in means.items()}, sds, arrays, q)


class GivenByRows(GivenByPasses):
    """The same fits, of which one pass finds each: no global that is not known meets what the rows hide.

    What the rows hide is exact then, and the ELBO is the log density.
    """

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether the fits of a problem are exact, and have one mode: hidden labels have several."""
        if problem.chains or any(own.labels for own in problem.factors):
            return False
        return not problem.rows.why_inexact()

    @property
    def is_available(self) -> bool:
        """Whether the fits are exact, and all globals have densities."""
        return self.takes(self._state.problem) and self._have_densities

    @property
    def operations(self) -> float:
        """Operations at each value, about."""
        return _OF_A_PASS * operations_of_a_pass(self._state.problem, self._state.rows.source.n_rows)

    def at(self, statistics: Mapping[str, Statistics]) -> Fits:
        """Return the fits at n values.

        Parameters
        ----------
        statistics
            Of each known variable, by name, with an axis of the values before all others.
        """
        n = len(next(iter(statistics.values()))[0])
        with self._session():
            found = [
                self._at({name: tuple(part[number] for part in own) for name, own in statistics.items()})
                for number in range(n)
            ]
        log_density = np.array([own.log_density for own in found])
        shifts, sds = (
            {name: np.stack([getattr(own, figure)[name] for own in found]) for name in found[0].shifts}
            for figure in ("shifts", "sds")
        )
        return Fits(np.where(np.isfinite(log_density), log_density, -np.inf), shifts, sds)

    def _at(self, statistics: Mapping[str, Statistics]) -> Passed:
        problem, rows, q = self._state.problem, self._state.rows, dict(self._state.q)
        arrays = dict(self._state.arrays)
        for variable in self._known:
            q.pop(variable)
            arrays.update(zip(problem.keys[variable], statistics[variable.name], strict=True))
        for variable in self._others:
            q[variable] = problem.update(variable, arrays)
            problem.tell(arrays, variable, q[variable])
        look = rows.look(problem.rows.coefficients(arrays), self._state.warm)
        arrays.update(look.summary.parts)
        return self._passed(Objective(problem, q, arrays, look.summary).value, statistics, arrays, q)
