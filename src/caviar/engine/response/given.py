r"""Fits in which some globals are known, at many of their values, without passes over the rows.

Where no row hides anything and at most two statistics meet in a term, the expected log joint density is bilinear in the
expected statistics. With those of the known globals moved by :math:`\Delta t_k` from a fit, and the other factors at
their optimum, the ELBO is

.. math:: L(\theta) = \hat L - \sum_k \hat H_k + \sum_k (\hat\eta_k + \tfrac12 \Delta\eta_k)' \Delta t_k
    + \sum_j \left[ A_j(\hat\eta_j + \Delta\eta_j) - A_j(\hat\eta_j) - \Delta\eta_j' \hat t_j \right]

with the natural parameters :math:`\hat\eta` of all updates at the fit, their changes :math:`\Delta\eta`, entropies H
and log-partitions A, of what comes with the data the statistics times :math:`\eta`. The other factors must not meet in
a term. Then they are independent given :math:`\theta`, and this is the exact log density of the data and
:math:`\theta`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..._errors import ModelError
from ..._typing import AnyArray, Array, Statistics
from ...families.base.marginals import Marginals
from ...families.shared.coupled_normals import CoupledLayout
from ...families.shared.many_arrows import ManyArrows
from ...language import Variable
from ..ascent.problem import Factors
from ..ascent.state import AscentState
from ..binding.clamped.factor import ClampedFactor
from ..evaluation.given_by_passes import Apart, Fits, GivenByPasses, Passed, has_one_mode
from .expectations import correction_of_expectations
from .factors import flat
from .operator import ResponseOperator
from .passes.terms import Multilinear, terms_of, updates_of
from .quantities import Entries
from .solutions.chosen import ALWAYS_FORMED
from .solutions.formed import Formed
from .solutions.solution import FLAT

_MOST_STATISTICS = 20_000
"""Of all globals: their changes at all values are held together."""

_ENDS = (0.05, 0.95)
"""Of intervals that are not looked at."""

_OF_STATISTIC = 20.0
"""Operations that a change of a statistic is worth."""


class _Other(NamedTuple):
    """What a factor says at n natural parameters: log-partition (n,), and figures by name of a variable, (n, G)."""

    log_partition: Array
    means: Mapping[str, Array]
    sds: Mapping[str, Array]


class Given(Apart):
    """The fits of a model in which some globals are known, at many of their values together."""

    def __init__(self, state: AscentState, names: Collection[str]) -> None:
        super().__init__(state, names)
        problem = state.problem
        self._natural = {own: problem.updates[own].natural(dict(state.arrays)) for own in problem.order}
        self._terms = terms_of(problem)
        layouts = {own: own.family for own in self._others if isinstance(own.family, CoupledLayout)}
        counts = {variable: self._counts(variable, layout) for variable, layout in layouts.items()}
        self._have_rows = all(own.all() for own in counts.values())
        self._arrows = {
            own: ManyArrows(layout, counts[own], state.q[own].mean_of_all) for own, layout in layouts.items()
        }

    @cached_property
    def _forecasts(self) -> Multilinear | None:
        """The natural parameters of all repetitions, also those without rows; None if all have rows."""
        return None if self._have_rows else updates_of(self._state.problem)

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
        return not self._others_meet()

    @property
    def _n_statistics(self) -> int:
        return sum(eta.size for own in self._natural.values() for eta in own)

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
        said = moved if self._forecasts is None else self._forecasts.change(arrays, changes, n)[0]
        moves, sds = {}, {}
        for variable in self._others:
            keys, natural = problem.keys[variable], self._natural[variable]
            shifts, whole = (_at_keys(each, keys, natural, n) for each in (moved, said))
            both = [np.concatenate([eta[None], eta + own]) for eta, own in zip(natural, whole, strict=True)]
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
        factor, clamped = self._state.q[variable], self._state.problem.bound.of(variable).clamped
        learnt = natural if clamped is None else tuple(eta[:, ~clamped.is_known] for eta in natural)
        member: Any = variable.family.from_natural(tuple(learnt))
        log_partition = np.reshape(member.log_partition, (n, -1)).sum(axis=1)
        parts = member.entry_marginals(_ENDS)
        if clamped is not None:
            came = zip(factor.statistics_of_known, natural, strict=True)
            log_partition += sum(_products(own, eta) for own, eta in came)
            parts = _with_known(factor, parts)
        means, sds = (
            {variable.name: flat([getattr(own, figure) for own in parts], n)} for figure in ("mean", "sd")
        )
        return _Other(log_partition, means, sds)


class GivenInRows(GivenByPasses):
    r"""The fits where rows hide something that others meet, one after the other, each with linear response.

    The ELBO of such a fit is a bound, and its gap differs between values :math:`\theta` of the known globals. Linear
    response of the others alone, with the matrix :math:`K = L' H L`, tells most of it,

    .. math:: \log p(x, \theta) \approx L(\theta) - \tfrac12 \log |I - K|,

    and their standard deviations given the values.

    Where the ELBO has the expectations of the rows themselves, a Normal q whose predictors have the covariance C leaves
    out half the variance, under q, of what is not quadratic. The cubes are most of this. With the expected third
    derivatives :math:`\kappa_n` of the log density of each row they are
    :math:`\tfrac1{12} \sum_{nm} \kappa_n \kappa_m C_{nm}^3`, and K has them: with the coordinates of the numbers
    themselves first, and those of their squares second,

    .. math:: \|K_{12}\|^2 = \tfrac12 \sum_{nm} \kappa_n \kappa_m C_{nm}^3, \qquad
        \log p(x, \theta) \approx L(\theta) - \tfrac12 \log |I - K_{11}| + \tfrac16 \|K_{12}\|^2 .

    :math:`K_{22}` is not a part of it, because the expectation under q is linear in q.
    """

    @property
    def is_available(self) -> bool:
        """Whether all globals have densities and rows, what the rows hide has one mode, and the response is small."""
        problem = self._state.problem
        if not has_one_mode(problem) or not self._have_densities:
            return False
        if any(problem.bound.of(own).active is not None for own in problem.bound.latent):
            return False
        sizes = [sum(eta.size for eta in own.expected_statistics) for own in self._state.q.values()]
        return sum(sizes) <= ALWAYS_FORMED

    def _passed(
        self,
        elbo: float,
        statistics: Mapping[str, Statistics],
        arrays: Mapping[Hashable, Array],
        q: Factors,
    ) -> Passed:
        found, state = super()._passed(elbo, statistics, arrays, q), self._state
        # what the known globals have for factors does not matter: nothing is said to these
        operator = ResponseOperator(state.problem, {**state.q, **q}, arrays, state.rows, state.warm)
        known = np.zeros(operator.size, dtype=bool)
        for factor, own in zip(operator.factors, operator.coordinates, strict=True):
            known[own] = factor.variable in self._known
        matrix = np.where(known | known[:, None], 0.0, operator.matrix())
        solution, entries = Formed(operator, matrix), Entries(operator)
        if not solution.is_above(FLAT):
            raise ModelError("linear response of a fit with some globals known is flat along some direction")
        sds = {name: np.sqrt(entries.variances(name, solution)) for name in found.sds}
        correction = -0.5 * solution.log_determinant
        if not state.problem.rows.maximises:
            columns = np.concatenate([entries.columns(name) for name in found.sds], axis=1)
            correction = correction_of_expectations(matrix, columns)
        return found._replace(log_density=found.log_density + correction, sds=sds)


def _with_known(factor: ClampedFactor, parts: Sequence[Marginals]) -> list[Marginals]:
    """Return n figures of all repetitions, from those of the learnt ones."""
    pairs = zip(parts, factor.known.entry_marginals(_ENDS), strict=True)
    return [
        Marginals(factor.laid_out(own.mean, known.mean, 1), factor.laid_out(own.sd, 0.0, 1))
        for own, known in pairs
    ]


def _at_keys(
    moved: Mapping[Hashable, Array], keys: Sequence[Hashable], natural: Statistics, n: int
) -> list[Array]:
    """Return n changes of natural parameters."""
    pairs = zip(keys, natural, strict=True)
    return [np.broadcast_to(moved.get(key, np.zeros(())), (n, *eta.shape)) for key, eta in pairs]


def _products(one: Array, other: Array) -> Array:
    """Return the sum of the products of an array and each of n others, (n,)."""
    return (one * other).reshape(len(other), -1).sum(axis=1)
