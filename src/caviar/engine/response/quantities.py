"""Covariances of the entries of values of global variables, by linear response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..._errors import ModelError
from ..._typing import AnyArray, Array, Statistics
from ..ascent.problem import Factors, Problem, statistics_of
from ..ascent.state import AscentState, begun, ready
from ..design.keys import FactorKey
from ..evaluation.evaluate import check_sizes, in_frame
from ..rows.row_map import RowMap
from .expectations import correction_of_expectations
from .factors import FactorResponse
from .operator import NO_DETERMINANT, ResponseOperator
from .passes.blocks import is_worth_curving, look_with_curvature
from .priors import parameters_of, slopes_of_objective, tilts_of
from .second_order import Tilts
from .solutions.chosen import ALWAYS_FORMED, log_determinant_at, solution_of
from .solutions.solution import Solution, why_saddle

_MOST_AT_ONCE = 512
"""Entries whose variances are found together."""

_UNSETTLED = 1.0
"""Standard deviations that a fit may yet move for its responses to tell something."""

_SADDLE, _NEARLY_FLAT = -1e-7, 1e-4
"""Eigenvalue below which there is no covariance, and size below which it may be 0 if the fit went on."""

_TELLING = 0.05
"""Share of a direction from which on a variable is named with it."""

FLAT_DIRECTION = "along some direction, such as a rotation of factors, the objective does not change"


class Entries:
    """The entries of all globals.

    Parameters
    ----------
    operator
        Whose coordinates they are in.
    """

    def __init__(self, operator: ResponseOperator) -> None:
        self._operator = operator

    @cached_property
    def starts(self) -> dict[str, int]:
        """The first coordinate of each global factor, by name."""
        operator = self._operator
        pairs = zip(operator.factors, operator.coordinates, strict=True)
        return {factor.variable.name: own.start for factor, own in pairs}

    @cached_property
    def places(self) -> dict[str, tuple[FactorResponse, slice]]:
        """For each global variable, its factor and the entries of the factor that belong to it."""
        found: dict[str, tuple[FactorResponse, slice]] = {}
        for own in self._operator.factors:
            found[own.variable.name] = own, slice(None)
            for number, member in enumerate(own.variable.members):
                found[member.name] = own, own.variable.family.place(number)  # type: ignore[attr-defined]
        return found

    def columns(self, name: str) -> Array:
        """Return what each entry of a variable is in standardised coordinates, (r, n)."""
        factor, mine = self.places[name]
        start = self.starts[factor.variable.name]
        found = np.zeros((self._operator.size, factor.n_entries))
        for places, value in zip(factor.value_places, factor.roots.values, strict=True):
            found[start : start + len(value), places] = value
            start += len(value)
        return found[:, mine]

    def within(self, name: str) -> Array:
        """Return the variance of each entry of a variable under its factor, (n,)."""
        factor, mine = self.places[name]
        return factor.variances(mine)

    def variances(self, name: str, solution: Solution) -> Array:
        """Return the variance of each entry of a variable, (n,); infinite along flat directions."""
        columns, found = self.columns(name), self.within(name)
        for start in range(0, len(found), _MOST_AT_ONCE):
            portion = columns[:, start : start + _MOST_AT_ONCE]
            found[start : start + _MOST_AT_ONCE] += (portion * solution.excess(portion)).sum(axis=0)
        return np.where(solution.flat(columns), np.inf, np.maximum(found, 0.0))


class Response:
    """The linear response of a fit.

    Parameters
    ----------
    problem
        Of the data of the fit.
    factors
        Global factors by name, measured from the user's origin; beside a shared one the marginals of its variables,
        which tell what groups without rows are forecast to be.
    rows
        The map over the rows.
    is_whole
        Whether a shared factor has coordinates for all its statistics, unless they are very many; otherwise only for
        what the other factors say to it.
    has_determinant
        Whether the determinant is needed: then what has none is refused before any passes.

    Attributes
    ----------
    shift
        By how many standard deviations the factors are off where all updates agree, about; infinity at a saddle point.
    elbo
        The objective of these factors for these data; None where local factors depend on each other, whose sweeps may
        end elsewhere.
    """

    def __init__(
        self,
        problem: Problem,
        factors: Mapping[str, Any],
        rows: RowMap,
        *,
        is_whole: bool = True,
        has_determinant: bool = False,
    ) -> None:
        why = problem.rows.why_no_response() if problem.factors else ""
        if why:
            raise ModelError(f"this model has no linear response: {why}")
        problem = problem.with_rows(problem.rows.thorough())
        check_sizes(problem, factors)
        self._session = rows.executor.session
        with self._session():
            state, curvature = _begun(problem, in_frame(problem, factors), rows)
            looked = state.problem, state.q, state.arrays, state.rows, state.warm
            self._operator = ResponseOperator(
                *looked, factors, is_whole=is_whole, has_determinant=has_determinant, curvature=curvature
            )
            self._solution: Solution = solution_of(self._operator)
            self._entries = Entries(self._operator)
            self.shift = self._shift(state)
        self._state, self._factors = state, factors
        self.elbo = None if problem.rows.keeps_locals else state.elbo

    @property
    def smallest_eigenvalue(self) -> float:
        """Of I - V^(1/2) H V^(1/2): positive at a maximum, negative at a saddle point, 0 along a flat direction."""
        with self._session():
            return self._solution.smallest_eigenvalue

    def is_above(self, value: float) -> bool:
        """Return whether the smallest eigenvalue is above a value, which takes less than the eigenvalue."""
        with self._session():
            return self._solution.is_above(value)

    @property
    def weakest_direction(self) -> str:
        """The variables along which the objective changes least, or rises, in words."""
        with self._session():
            _, vector = self._solution.smallest
        shares = []
        for factor in self._operator.factors:
            start = self._entries.starts[factor.variable.name]
            own = vector[start : start + sum(factor.roots.ranks)]
            shares.append((float(own @ own), factor.variable.name))
        shares.sort(reverse=True)
        total = sum(share for share, _ in shares)
        named = [f"'{name}'" for share, name in shares if share > _TELLING * total] or ["some direction"]
        return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"

    def log_determinant(self) -> float:
        """Return the log of the determinant of I - V^(1/2) H V^(1/2), point masses at their values.

        Raises
        ------
        ModelError
            Where there is no covariance, along a flat direction, and for too many coordinates.
        """
        self.check()
        if self._operator.rows_are_apart:
            raise ModelError(NO_DETERMINANT)
        with self._session():
            are_points = self._are_points
            found = (
                log_determinant_at(self._operator, ~are_points)
                if are_points.any()
                else self._solution.log_determinant
            )
        if found == -np.inf:
            raise ModelError(f"the determinant of linear response is 0: {FLAT_DIRECTION}")
        return found

    @property
    def has_expectations(self) -> bool:
        """Whether the ELBO has the expected log densities of rows that are not linear in statistics."""
        problem = self._state.problem
        return bool(problem.factors) and not problem.rows.maximises

    def elbo_correction(self) -> float:
        """Return what second order adds to the ELBO: mostly minus half the log determinant.

        Raises
        ------
        ModelError
            As for :meth:`log_determinant`.
        """
        log_determinant, operator = self.log_determinant(), self._operator
        if not self.has_expectations or self._are_points.any():
            return -0.5 * log_determinant
        with self._session():
            counts = operator.counts
            matrix = operator.matrix()[np.ix_(counts, counts)]
            return correction_of_expectations(matrix, self._met[counts], operator.meet_rows[counts])

    @property
    def _met(self) -> Array:
        """What each number of the factors that meet the rows is in standardised coordinates, (r, n)."""
        operator = self._operator
        meet, pairs = operator.meet_rows, zip(operator.factors, operator.coordinates, strict=True)
        names = [own.variable.name for own, place in pairs if meet[place].any()]
        return np.concatenate([self._entries.columns(name) for name in names], axis=1)

    @property
    def _are_points(self) -> AnyArray:
        """Whether each coordinate is of a point mass, (r,)."""
        found = [
            np.full(sum(own.roots.ranks), self._state.q[own.variable].learnt is None)
            for own in self._operator.factors
        ]
        return np.concatenate(found) if found else np.zeros(0, dtype=bool)

    @property
    def hides_labels(self) -> bool:
        """Whether rows have hidden labels."""
        return any(own.labels for own in self._state.problem.factors)

    def _shift(self, state: AscentState) -> float:
        """Return by how many standard deviations the factors are off where all updates agree, at most; about."""
        pieces = []
        for factor in self._operator.factors:
            variable = factor.variable
            learnt = state.q[variable].learnt
            if learnt is None or not len(factor.places):
                pieces.append(np.zeros((len(factor.places), factor.places.shape[1])))
                continue
            known, target = state.problem.bound.of(variable).clamped, self._operator.natural[variable]
            target = target if known is None else known.unknown(target)
            n = len(factor.places)
            differences = (
                np.broadcast_to(new, np.broadcast_shapes(np.shape(new), np.shape(old))) - old
                for new, old in zip(target, learnt.natural, strict=True)
            )
            moves = np.concatenate([own.reshape(n, -1) for own in differences], axis=1)
            # a forecast is not at an optimum, and nothing depends on it
            pieces.append(np.where(factor.counts[:, None], moves, 0.0))
        residual = np.zeros(self._operator.n_statistics)
        for factor, own in zip(self._operator.factors, pieces, strict=True):
            residual[factor.places] = own
        told = self._operator.transposed(residual[:, None])
        if not self.is_above(_SADDLE):
            return np.inf
        # along flat directions, of which rounding makes the eigenvalue negative as often as not, nothing is told
        squared = float((told * (told + self._solution.excess(told))).sum())
        return float(np.sqrt(squared)) if squared > 0 else 0.0

    def check(self) -> None:
        """Refuse where there is no covariance.

        Raises
        ------
        ModelError
            At a saddle point, and where the factors have not settled.
        """
        if not self.is_above(_SADDLE):
            raise ModelError(why_saddle(self.smallest_eigenvalue, self.weakest_direction))
        if self.shift > _UNSETTLED:
            raise ModelError(
                f"the fit has not settled for these data: its factors would still move by {self.shift:.2g} "
                "standard deviations. Give the data (and sample_weight=) of the fit; or fit with "
                "schedule='batch', a lower tol or a higher max_iter"
            )

    @property
    def why_none(self) -> str:
        """Why there is no covariance, in a few words; empty if there is one."""
        if not self.is_above(_SADDLE):
            return (
                FLAT_DIRECTION
                if self.smallest_eigenvalue > -_NEARLY_FLAT
                else f"the fit ended at a saddle point, and the ELBO rises along {self.weakest_direction}"
            )
        return "the fit has not settled" if self.shift > _UNSETTLED else ""

    def covariance(self, one: str, other: str) -> Array:
        """Return the covariances of all entries of two global variables, (n, m)."""
        self.check()
        a, b = self._entries.columns(one), self._entries.columns(other)
        with self._session():
            found = a.T @ self._solution.excess(b)
        factor, mine = self._entries.places[one]
        if factor is self._entries.places[other][0]:
            found += factor.within(mine, self._entries.places[other][1])
        flat = self._solution.flat(a)[:, None] & self._solution.flat(b)
        return np.where(flat, np.copysign(np.inf, found), found)

    def variance(self, name: str) -> Array:
        """Return the variance of each entry of a global variable, (n,); infinite along flat directions."""
        self.check()
        with self._session():
            return self._entries.variances(name, self._solution)

    def second_order(self, names: Sequence[str]) -> dict[str, tuple[Array, Array]]:
        """Return what second order adds to the mean of each entry of variables, and to its variance, (n,) each.

        All of them together take little more than one.

        Raises
        ------
        ModelError
            Where there is no covariance, for point masses, and for too many coordinates.
        """
        sds = {name: np.sqrt(self.variance(name)) for name in names}
        operator = self._operator
        if operator.rows_are_apart or operator.size > ALWAYS_FORMED:
            raise ModelError(
                f"second order takes at most {ALWAYS_FORMED} coordinates; this model has {operator.size:,}"
            )
        if self._are_points.any():
            raise ModelError("second order needs distributions, but some variables are point masses")
        if not sds:
            return {}
        with self._session():
            columns = np.concatenate([self._entries.columns(name) for name in names], axis=1)
            told = self._tilts.corrections(columns, np.concatenate(list(sds.values())))
        ends = np.cumsum([len(own) for own in sds.values()])[:-1]
        shifts, variances = (np.split(own, ends) for own in told)
        return dict(zip(names, zip(shifts, variances, strict=True), strict=True))

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self._operator.size

    def second_order_of_widest(self, n: int, names: Sequence[str]) -> list[tuple[str, float, float]]:
        """Return the name of each of the numbers that linear response widens most, and what second order adds to it.

        This is how far its mean moves and by what factor its standard deviation changes; both are NaN where the series
        has no terms. The list is empty beside point masses, and where a shared factor and the rows are
        eliminated together.

        Parameters
        ----------
        n
            How many numbers.
        names
            Of the variables whose numbers these may be.
        """
        operator = self._operator
        if operator.rows_are_apart or self._are_points.any():
            return []
        variances = {name: self.variance(name) for name in names}
        widest = sorted(
            (
                (float(own / within), name, place)
                for name, each in variances.items()
                for place, (own, within) in enumerate(zip(each, self.within(name), strict=True))
                if np.isfinite(own) and 0 < within < np.inf
            ),
            reverse=True,
        )[:n]
        if not widest:
            return []
        sds = np.sqrt([variances[name][place] for _, name, place in widest])
        with self._session():
            columns = np.stack([self._entries.columns(name)[:, place] for _, name, place in widest], axis=1)
            shifts, added = self._tilts.corrections(columns, sds)
        ratios = np.sqrt(np.maximum(sds**2 + added, 0.0)) / sds
        return [
            (own[1], *figures)
            for own, figures in zip(widest, zip(shifts / sds, ratios, strict=True), strict=True)
        ]

    @cached_property
    def _tilts(self) -> Tilts:
        numbers = self._met if self.has_expectations else None
        return Tilts(self._state, self._operator, self._solution, numbers)

    def has_unseen(self, name: str) -> bool:
        """Whether nothing is observed below some repetitions of a variable: the evidence does not depend on these."""
        bound = self._operator.problem.bound
        (variable,) = (own for own in bound.latent if own.name == name)
        active = bound.of(variable).active
        return active is not None and not np.all(active)

    def within(self, name: str) -> Array:
        """Return the variance of each entry of a variable under its factor, (n,)."""
        return self._entries.within(name)

    def tells(self, name: str) -> bool:
        """Whether the variances of a global variable are computed; not if this takes very many responses."""
        factor, mine = self._entries.places[name]
        return factor.tells(mine)

    def sensitivity(self, name: str) -> dict[str, Array]:
        """Return by how much the mean of each entry of a variable, (n,), changes with each parameter of the priors.

        The change of the natural parameters of a prior is a tilt of the log joint density.

        Returns
        -------
        dict
            ``"VARIABLE.PARAMETER"`` -> derivatives, shape of the parameter + (n,).
        """
        self.check()
        columns, problem, found = self._entries.columns(name), self._operator.problem, {}
        for parameter in parameters_of(problem):
            like = self._operator.natural[parameter.variable]
            tilts = [self._told(parameter.variable.name, tilt) for tilt in tilts_of(problem, parameter, like)]
            told = np.stack(tilts, axis=1) if tilts else np.zeros((self._operator.size, 0))
            with self._session():
                slopes = columns.T @ (told + self._solution.excess(told))
            shape = (*parameter.value.shape, columns.shape[1])
            found[f"{parameter.variable.name}.{parameter.name}"] = slopes.T.reshape(shape)
        return found

    def elbo_sensitivity(self) -> dict[str, Array]:
        """Return the derivatives of the objective by each parameter of the priors, in the shape of the parameter."""
        self.check()
        problem = self._operator.problem
        return {
            f"{own.variable.name}.{own.name}": slopes_of_objective(
                problem, own, *self._operator.expected(own.variable)
            )
            for own in parameters_of(problem)
        }

    def prior_values(self) -> dict[str, tuple[str, str, Array]]:
        """Return the parameters of the priors: name -> variable, name of the parameter, and its stated value."""
        return {
            f"{own.variable.name}.{own.name}": (own.variable.name, own.name, own.value)
            for own in parameters_of(self._operator.problem)
        }

    def _told(self, name: str, tilt: Statistics) -> Array:
        """Return a tilt by changes of natural parameters of one variable in standardised coordinates, (r,)."""
        start = self._operator.start_of(name)
        flat = np.zeros(self._operator.n_statistics)
        stop = start + sum(own.size for own in tilt)
        flat[start:stop] = np.concatenate([own.ravel() for own in tilt])
        return self._operator.transposed(flat[:, None])[:, 0]


def _begun(
    problem: Problem, q: Factors, rows: RowMap
) -> tuple[AscentState, Mapping[FactorKey, Array] | None]:
    """Return the state of a fit, and the responses from its pass over the rows if one pass gives both."""
    problem, q, arrays, coefficients = ready(problem, q, statistics_of(problem, q), may_return=True)
    rows = rows.at(problem.rows)
    # a symmetric matrix has about half as many coordinates as entries
    n_changes = sum(arrays[key].size for own in problem.order for key in problem.keys[own]) // 2
    if not problem.factors or not is_worth_curving(rows.model, n_changes):
        return begun(problem, q, arrays, rows, rows.look(coefficients)), None
    look, curvature = look_with_curvature(rows, coefficients)
    return begun(problem, q, arrays, rows, look), curvature
