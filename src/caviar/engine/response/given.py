r"""Fits in which some globals are known, at many of their values, without passes over the rows.

Where no row hides anything and at most two statistics meet in a term, the expected log joint density is bilinear in the
expected statistics. With those of the known globals moved by :math:`\Delta t_k` from a fit, and the other factors at
their optimum, the ELBO is

.. math:: L(\theta) = \hat L - \sum_k \hat H_k + \sum_k (\hat\eta_k + \tfrac12 \Delta\eta_k)' \Delta t_k
    + \sum_j \left[ A_j(\hat\eta_j + \Delta\eta_j) - A_j(\hat\eta_j) - \Delta\eta_j' \hat t_j \right]

with the natural parameters :math:`\hat\eta` of all updates at the fit, their changes :math:`\Delta\eta`, entropies H
and log-partitions A. The other factors must not meet in a term. Then they are independent given :math:`\theta`, and
this is the exact log density of the data and :math:`\theta`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._typing import AnyArray, Array, Statistics
from ...families._many_arrows import ManyArrows
from ...families.coupled_normals import CoupledLayout
from ...language import Variable
from ..ascent.problem import Problem, statistics_of
from ..ascent.state import AscentState, begun, ready
from ..binding.clamped.factor import PointMass
from ..design.keys import StatisticKey
from ..evaluation.evaluate import check_sizes, in_frame
from ..rows.row_map import RowMap
from .factors import flat
from .terms import terms_of

_MOST_STATISTICS = 20_000
"""Of all globals: their changes at all values are held together."""

_OF_STATISTIC = 20.0
"""Operations that a change of a statistic is worth."""


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


class _Other(NamedTuple):
    """What a factor says at n natural parameters: log-partition (n,), and figures by name of a variable, (n, G)."""

    log_partition: Array
    means: Mapping[str, Array]
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

    @property
    def _have_densities(self) -> bool:
        """Whether no global is a point, known in part, or a label."""
        return all(
            factor.learnt is factor and (own.members or own.family.transforms)
            for own, factor in self._state.q.items()
        )

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


class Given(Apart):
    """The fits of a model in which some globals are known, at many of their values together."""

    def __init__(self, state: AscentState, names: Collection[str]) -> None:
        super().__init__(state, names)
        problem = state.problem
        self._natural = {own: problem.updates[own].natural(dict(state.arrays)) for own in problem.order}
        self._terms = terms_of(problem)
        self._arrows = {
            variable: ManyArrows(variable.family, self._counts(variable, variable.family))
            for variable in self._others
            if isinstance(variable.family, CoupledLayout)
        }

    def _counts(self, variable: Variable, layout: CoupledLayout) -> AnyArray:
        """Return which numbers of a shared factor count."""
        bound = self._state.problem.bound
        return layout.counted([bound.of(member).active for member in variable.members])

    @property
    def is_available(self) -> bool:
        """Whether the fits follow without passes over the rows."""
        problem = self._state.problem
        if problem.factors or not self._terms.are_bilinear or self._n_statistics > _MOST_STATISTICS:
            return False
        if not self._have_densities:
            return False
        if any(own.members and own not in self._arrows for own in problem.order):
            return False
        if any(problem.bound.of(own).active is not None for own in problem.order if not own.members):
            return False
        return not self._others_meet() and all(
            arrows.is_apart(_joined(self._natural[own])) for own, arrows in self._arrows.items()
        )

    @property
    def _n_statistics(self) -> int:
        return sum(eta.size for own in self._natural.values() for eta in own)

    def _others_meet(self) -> bool:
        """Whether a term has two of the factors that are not known."""
        names = {own.name for own in self._others}
        keys = (term.contraction.keys for term in self._state.problem.compiled.terms)
        met = ([own.variable for own in each if isinstance(own, StatisticKey)] for each in keys)
        return any(sum(name in names for name in each) > 1 for each in met)

    @property
    def operations(self) -> float:
        """Operations at each value, about."""
        of_shared = sum(own.operations for own in self._arrows.values())
        return _OF_STATISTIC * self._n_statistics + of_shared

    def at(self, statistics: Mapping[str, Statistics]) -> Fits:
        """Return the fits at n values.

        Parameters
        ----------
        statistics
            Of each known variable, by name, with an axis of the values before all others.
        """
        problem, arrays = self._state.problem, self._state.arrays
        n = len(next(iter(statistics.values()))[0])
        changes, log_density = {}, np.full(n, self._state.elbo)
        for variable in self._known:
            log_density -= problem.own_entropy(variable, self._state.q[variable])
            natural = self._natural[variable]
            for key, value, eta in zip(
                problem.keys[variable], statistics[variable.name], natural, strict=True
            ):
                changes[key] = np.reshape(value, (n, *eta.shape)) - arrays[key]
                log_density += _products(eta, changes[key])
            base = self._state.q[variable].base_measure
            for value, share in zip(statistics[variable.name], base, strict=True):
                log_density += share * np.reshape(value, (n, -1)).sum(axis=1) if share else 0.0
        moved = self._terms.of_updates.change(arrays, changes, n)[0]
        for key in changes.keys() & moved.keys():
            log_density += 0.5 * _products(moved[key], changes[key])
        moves, sds = {}, {}
        for variable in self._others:
            keys, natural = problem.keys[variable], self._natural[variable]
            shifts = [
                np.broadcast_to(moved.get(key, np.zeros(())), (n, *eta.shape))
                for key, eta in zip(keys, natural, strict=True)
            ]
            both = [np.concatenate([eta[None], eta + own]) for eta, own in zip(natural, shifts, strict=True)]
            found = self._other(variable, both)
            log_density += found.log_partition[1:] - found.log_partition[0]
            log_density -= sum(_products(arrays[key], own) for key, own in zip(keys, shifts, strict=True))
            moves |= {name: own[1:] - own[0] for name, own in found.means.items()}
            sds |= {name: own[1:] for name, own in found.sds.items()}
        return Fits(np.where(np.isfinite(log_density), log_density, -np.inf), moves, sds)

    def _other(self, variable: Variable, natural: Sequence[Array]) -> _Other:
        """Return what a factor that is not known says at natural parameters (n, ...)."""
        n = len(natural[0])
        if variable in self._arrows:
            found, layout = self._arrows[variable].at(flat(natural, n)), variable.family
            assert isinstance(layout, CoupledLayout)
            places = {member.name: layout.place(number) for number, member in enumerate(variable.members)}
            return _Other(
                found.log_partition,
                {name: found.mean[:, place] for name, place in places.items()},
                {name: np.sqrt(found.variance[:, place]) for name, place in places.items()},
            )
        member: Any = variable.family.from_natural(tuple(natural))
        parts = member.entry_marginals((0.05, 0.95))
        means, sds = (
            {variable.name: flat([getattr(own, figure) for own in parts], n)} for figure in ("mean", "sd")
        )
        return _Other(np.reshape(member.log_partition, (n, -1)).sum(axis=1), means, sds)


def _joined(natural: Statistics) -> Array:
    """Return natural parameters as one row, (1, p)."""
    return flat([eta[None] for eta in natural], 1)


def _products(one: Array, other: Array) -> Array:
    """Return the sum of the products of an array and each of n others, (n,)."""
    return (one * other).reshape(len(other), -1).sum(axis=1)


def variances_of(state: AscentState) -> dict[str, Array]:
    """Return the variances of all entries of all globals under their factors, by name, (G,)."""
    return {name: sd**2 for name, sd in figures_of(state.q)[1].items()}


def figures_of(factors: Mapping[Variable, Any]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return means and standard deviations of all entries of variables, by name."""
    means, sds = {}, {}
    for variable, factor in factors.items():
        own = {variable.name: factor}
        if variable.members:
            own = factor.marginals
        for name, each in own.items():
            parts = each.entry_marginals((0.05, 0.95))
            means[name] = np.concatenate([np.ravel(part.mean) for part in parts])
            sds[name] = np.concatenate([np.ravel(part.sd) for part in parts])
    return means, sds
