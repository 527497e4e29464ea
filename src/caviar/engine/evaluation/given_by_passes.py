"""Fits in which some globals are known: where they begin, and those of rows that hide something, by passes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..._typing import Array, Statistics
from ...families import Categorical
from ...language import Variable
from ..ascent.elbo import Objective
from ..ascent.problem import Factors, Problem, statistics_of
from ..ascent.state import AscentState, begun, ready
from ..binding.clamped.factor import PointMass
from ..compiled.global_update import values_of
from ..design.keys import StatisticKey
from ..rows.row_map import RowMap
from .evaluate import check_sizes, in_frame

_MOST_PASSES, _SETTLED = 40, 3e-3
"""Passes to the fit at a value, and the rise of its ELBO at which they end."""

_NEARER, _SMALLEST_STEP = 3e-4, 0.1
"""Share of an update up to which iterations that lower the objective are shortened."""

_OF_A_PASS = 0.25
"""Of the operations of a pass: those of small tables take less time each than small matrices do."""

_OF_PREDICTOR, _CALL = 400.0, 2e4
"""Operations of a pass for a row, and of a contraction of any size, about."""


class Fits(NamedTuple):
    """What the fits say.

    Attributes
    ----------
    log_density
        Of the data and the values, (n,); minus infinity where a factor is improper.
    shifts
        By how much the means of all entries of each other variable differ from those of the fit, by name, (n, G), the
        parts of a joint factor one after the other. The means themselves are measured from the problem's origins.
    sds
        Of these entries.
    """

    log_density: Array
    shifts: Mapping[str, Array]
    sds: Mapping[str, Array]


def state_at(problem: Problem, factors: Mapping[str, Any], rows: RowMap) -> AscentState:
    """Return the state of a fit with these factors by name, measured from the user's origin."""
    check_sizes(problem, factors)
    with rows.executor.session():
        q = in_frame(problem, factors)
        problem, q, arrays, coefficients = ready(problem, q, statistics_of(problem, q), may_return=True)
        rows = rows.at(problem.rows)
        return begun(problem, q, arrays, rows, rows.look(coefficients))


class Apart:
    """The globals of a fit, some of which are known.

    Parameters
    ----------
    state
        The fit of all globals.
    names
        Of the globals that are known.
    """

    def __init__(self, state: AscentState, names: Collection[str]) -> None:
        self._state, order = state, state.problem.order
        self._known = [variable for variable in order if variable.name in names]
        self._others = [variable for variable in order if variable.name not in names]
        self._updating = state.problem.updating(self._others)

    @property
    def _have_densities(self) -> bool:
        """Whether no global is a point or a label, and none of the known ones came with the data in part."""
        return all(
            factor.learnt is not None
            and (own.members or own.family.transforms)
            and (factor.learnt is factor or own not in self._known)
            for own, factor in self._state.q.items()
        )

    def _others_meet(self) -> bool:
        """Whether a term has two of the factors that are not known."""
        names = {own.name for own in self._others}
        keys = (term.contraction.keys for term in self._state.problem.compiled.terms)
        met = ([own.variable for own in each if isinstance(own, StatisticKey)] for each in keys)
        return any(sum(name in names for name in each) > 1 for each in met)

    def statistics(self, values: Mapping[str, Any]) -> dict[str, Statistics]:
        """Return the statistics of n values of each known variable, measured from the problem's origins.

        Parameters
        ----------
        values
            By name, (n, plates..., event...), measured from the user's origin.
        """
        problem = self._state.problem
        points = {own.name: PointMass.of(own, values[own.name]) for own in self._known}
        moved = in_frame(problem, points, self._known)
        return {own.name: moved[own].expected_statistics for own in self._known}


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


class Correction(NamedTuple):
    """What a fit at a value lacks, which varies slowly with the value.

    Attributes
    ----------
    log_density
        Of the data and the value.
    variances
        Of entries of the other variables, by name, (G,).
    """

    log_density: float = 0.0
    variances: Mapping[str, Array] = {}


class GivenByPasses(Apart):
    """The same fits one after the other, by passes over the rows, where these hide something.

    Attributes
    ----------
    every
        Of a row of values, one in so many takes a correction of its own; for the others it is between those.
    """

    every: ClassVar[int] = 1

    def __init__(self, state: AscentState, names: Collection[str]) -> None:
        super().__init__(state, names)
        self._means = figures_of(state.problem, {own: state.q[own] for own in self._others})[0]
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
        step, last = 1.0, dict[Variable, Statistics]()
        settled = _SETTLED if problem.rows.maximises else _NEARER
        natural = {own: q[own].natural for own in self._others}
        with self._session():
            for _ in range(_MOST_PASSES):
                look = rows.look(problem.rows.coefficients(arrays), warm)
                arrays.update(look.summary.parts)
                elbo = Objective(problem, q, dict(arrays), look.summary).value
                if elbo < before and step > _SMALLEST_STEP and not problem.rows.maximises:
                    # an iteration may go too far; the objective rises at the beginning of the way
                    step *= 0.5
                    natural = {own: _between(last[own], natural[own], 0.5) for own in natural}
                    self._tell(natural, arrays, q)
                    continue
                if elbo - before < settled * step:
                    break
                before, warm, last, natural = elbo, look.warm, natural, {}
                for variable in self._others:
                    own = self._updating.update_with_natural(variable, arrays)[0]
                    natural[variable] = _between(last[variable], own, step) if step < 1.0 else own
                    self._tell({variable: natural[variable]}, arrays, q)
        return self._passed(elbo, statistics, arrays, q)

    def correction(self, passed: Passed) -> Correction:
        """Return what is added to the fit at a value."""
        return Correction()

    def _tell(
        self, natural: Mapping[Variable, Statistics], arrays: dict[Hashable, Array], q: dict[Variable, Any]
    ) -> None:
        """Give some variables the factors with these natural parameters."""
        for variable, own in natural.items():
            q[variable] = self._state.problem.factor(variable, own)
            self._state.problem.tell(arrays, variable, q[variable])

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
            elbo += known + sum(values_of(linear, arrays))
            base = zip(statistics[variable.name], self._state.q[variable].base_measure, strict=True)
            elbo += sum(share * float(np.sum(value)) for value, share in base if share)
        means, sds = figures_of(self._state.problem, {own: q[own] for own in self._others})
        return Passed(elbo, {name: own - self._means[name] for name, own in means.items()}, sds, arrays, q)


class GivenByRows(GivenByPasses):
    """The same fits, of which one pass finds each: no global that is not known meets what the rows hide.

    What the rows hide is exact then, and the ELBO is the log density.
    """

    @property
    def is_available(self) -> bool:
        """Whether the fits are exact, and all globals have densities."""
        return has_one_mode(self._state.problem) and self._have_densities

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
        # at values that are far away the data are impossible to double precision
        with self._session(), np.errstate(all="ignore"):
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
            q[variable] = self._updating.update(variable, arrays)
            problem.tell(arrays, variable, q[variable])
        look = rows.look(problem.rows.coefficients(arrays), self._state.warm)
        arrays.update(look.summary.parts)
        return self._passed(Objective(problem, q, arrays, look.summary).value, statistics, arrays, q)


def _between(start: Statistics, end: Statistics, share: float) -> Statistics:
    """Return the natural parameters a share of the way from some to others."""
    return tuple(a + share * (b - a) for a, b in zip(start, end, strict=True))


def why_apart(problem: Problem) -> str:
    """Return why draws are evaluated one after another; nothing if they can be together."""
    if problem.chains or problem.compiled.zero_terms or problem.untold_terms or problem.coupled:
        return "rows or terms that are more than products"
    if problem.factors and not problem.rows.is_dense:
        return "local variables meet the rows otherwise than in a matrix product"
    if any(factor.labelled for factor in problem.factors):
        return "local variables are known in part"
    if any(issubclass(own.family, Categorical) or problem.bound.of(own).clamped for own in problem.order):
        return "some globals are labels, or known"
    return ""


def has_one_mode(problem: Problem) -> bool:
    """Whether what the rows hide is exact given all globals, and has one mode: hidden labels have several."""
    if problem.chains or any(own.labels for own in problem.factors):
        return False
    return not problem.rows.why_inexact()


def variances_of(state: AscentState) -> dict[str, Array]:
    """Return the variances of all entries of all globals under their factors, by name, (G,)."""
    return {name: sd**2 for name, sd in figures_of(state.problem, state.q)[1].items()}


def figures_of(
    problem: Problem, factors: Mapping[Variable, Any]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return means and standard deviations of all entries of variables, by name."""
    means, sds = {}, {}
    for variable, factor in factors.items():
        own = {variable.name: factor}
        if variable.members:
            own = {
                each.name: problem.with_known(each, factor.marginals[each.name]) for each in variable.members
            }
        for name, each in own.items():
            parts = each.entry_marginals((0.05, 0.95))
            means[name] = np.concatenate([np.ravel(part.mean) for part in parts])
            sds[name] = np.concatenate([np.ravel(part.sd) for part in parts])
    return means, sds


def operations_of_a_pass(problem: Problem, n_rows: int) -> float:
    """Return the approximate number of operations of a pass over rows that hide something, calls included."""
    return _OF_PREDICTOR * n_rows + _CALL * len(problem.compiled.terms)
