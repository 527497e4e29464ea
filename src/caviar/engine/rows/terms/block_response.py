r"""One directional pass over a block of rows: how its sums respond to changes of the coefficients.

Natural parameters of local factors are linear in the coefficients and in the statistics of each other local factor, and
sums are linear in each factor's statistics. So their changes are the same row terms, one operand at a time in the place
of its change, with the covariance :math:`V_n` of each factor's statistics in the middle:

.. math::
    \delta\eta_n = \delta W\, T_n + \sum_{m \neq n} H_{nm}\, \delta u_m, \qquad
    \delta u_n = V_n\, \delta\eta_n, \qquad \delta S = \sum_n \delta u_n T_n'
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from ...._errors import ImproperError
from ...._typing import Array
from ....numerics.extrapolated import Extrapolation
from ...design.keys import FactorKey
from ...local.statistics import Coefficients, LocalState, Sums
from .row_term import BlockWork, FactorOfRows, RowTerm

_MOST_SWEEPS = 2_000
_SETTLED = 1e-14
"""Change of local factors that depend on each other, relative to their size, from sweep to sweep at their optimum."""

_PLAIN_TO_OPTIMUM, _NEARLY_LINEAR = 20, 1e-3
"""Sweeps to the optimum that are plain, and change of a sweep below which it is nearly linear in the last."""

_ROUNDING = 0.1
"""The same change relative to the size of what cancels."""

_STALLED = 1e-10
"""The same after as many sweeps as are extrapolated, where rounding keeps it from falling further: of values far from 0
a product has fewer digits than their differences need."""

_PLAIN, _MOST_EXTRAPOLATED = 6, 300
"""Sweeps for the linear changes that begin alone, which tell whether these grow; and from which on they end alone."""


class BlockResponse:
    """The directional pass of a model over a block.

    Parameters
    ----------
    inferences
        Local factors, and the row terms that speak to each.
    products
        Row terms that meet the data in the matrix products.
    contracted
        The others.
    """

    def __init__(
        self,
        inferences: Sequence[FactorOfRows],
        products: Sequence[RowTerm],
        contracted: Sequence[RowTerm],
    ) -> None:
        self._inferences = tuple(inferences)
        self._products = tuple(products)
        self._contracted = tuple(contracted)
        self._coupling = tuple(term for term in contracted if term.couples)

    def sums(
        self,
        work: BlockWork,
        changes: Sequence[Coefficients],
        given: Mapping[FactorKey, Sequence[Array]] | None = None,
    ) -> Sums:
        """Return by how much the sums over a block change, with an axis of the D changes before all others.

        Parameters
        ----------
        work
            The block; where local factors depend on each other or are given, with their statistics.
        changes
            Of the coefficients.
        given
            Local factors that are inferred elsewhere: the change of their statistics (E, B) for each of the changes.
        """
        known = {} if given is None else given
        inferences = [own for own in self._inferences if own.factor.key not in known]
        natural = self._settled(work, inferences)
        responses = {
            own.factor.key: own.factor.response(natural[own.factor.key], work.state[own.factor.key])
            for own in inferences
        }
        base = self._counted(work, work.state)
        found = []
        for number, change in enumerate(changes):
            moved = {key: values[number] for key, values in known.items()}
            moved |= self._moved(work, inferences, responses, change, moved)
            found.append(self._summed(work, base, moved, change))
        return _stacked(found)

    def moved(
        self,
        work: BlockWork,
        changes: Sequence[Coefficients],
        given: Mapping[FactorKey, Sequence[Array]],
    ) -> list[LocalState]:
        """Return by how much the statistics of the local factors that are not given change, with each change.

        Parameters
        ----------
        work, changes, given
            As for :meth:`sums`; the local factors are at their optimum.
        """
        inferences = [own for own in self._inferences if own.factor.key not in given]
        responses = {
            own.factor.key: own.factor.response(own.natural(work).copy(), work.state[own.factor.key])
            for own in inferences
        }
        found = []
        for number, change in enumerate(changes):
            known = {key: values[number] for key, values in given.items()}
            every = self._moved(work, inferences, responses, change, known)
            found.append({own.factor.key: every[own.factor.key] for own in inferences})
        return found

    def said_by_others(self, work: BlockWork, target: FactorKey, moved: LocalState) -> Array:
        """Return by how much the natural parameters (E, B) of a factor change with the statistics of the others."""
        return self._said_by_others(work, target, moved) + np.zeros_like(work.state[target])

    def _settled(self, work: BlockWork, inferences: Sequence[FactorOfRows]) -> LocalState:
        """Bring local factors to their optimum, and return their natural parameters (E, B)."""
        natural: LocalState = {}
        extrapolation = Extrapolation()
        for sweep in range(_MOST_SWEEPS):
            largest, last = 0.0, natural.copy()
            for own in inferences:
                key, before = own.factor.key, work.state.get(own.factor.key)
                natural[key] = own.natural(work).copy()
                work.state[key] = natural[key].copy()
                own.factor.infer(work.state[key])
                largest = max(largest, np.inf if before is None else _difference(work.state[key], before))
            if largest < _settled_at(sweep) or not self._coupling:
                break
            if _PLAIN_TO_OPTIMUM <= sweep < _MOST_EXTRAPOLATED and largest < _NEARLY_LINEAR:
                ahead = _extrapolated(extrapolation, natural, last, natural)
                if _inferred(inferences, ahead, work.state):
                    natural |= ahead
        return natural

    def _moved(
        self,
        work: BlockWork,
        inferences: Sequence[FactorOfRows],
        responses: Mapping[FactorKey, Callable[[Array], Array]],
        change: Coefficients,
        given: LocalState,
    ) -> LocalState:
        """Return by how much the statistics of local factors change, (E, B) each."""
        said = {own.factor.key: own.change(work, change).copy() for own in inferences}
        sizes = self._sizes(work, responses, said, given) if self._coupling else {}
        moved, extrapolation, earlier, shrinks = dict(given), Extrapolation(), np.inf, True
        for sweep in range(_MOST_SWEEPS):
            largest, last = 0.0, moved.copy()
            for own in inferences:
                key, before = own.factor.key, moved.get(own.factor.key)
                total = said[key] + self._said_by_others(work, key, moved)
                moved[key] = responses[key](total)
                largest = max(
                    largest, np.inf if before is None else _difference(moved[key], before, sizes[key])
                )
            if largest < _settled_at(sweep) or not self._coupling:
                return moved
            shrinks = largest < earlier if sweep <= _PLAIN else shrinks
            if shrinks and _PLAIN <= sweep < _MOST_EXTRAPOLATED:
                moved |= _extrapolated(extrapolation, said, last, moved)
            earlier = largest
        raise ImproperError(
            "local variables of a row that depend on each other do not settle: their factors are at no maximum of the "
            "objective"
        )

    def _sizes(
        self,
        work: BlockWork,
        responses: Mapping[FactorKey, Callable[[Array], Array]],
        said: LocalState,
        given: LocalState,
    ) -> dict[FactorKey, float]:
        """Return how large changes of each local factor may be that are rounding where changes cancel.

        If all logits of a label or share change by the same number, it does not change. What is left is rounding, and
        would never settle.
        """
        rng, moved = np.random.default_rng(0), dict(given)
        # twice, for the first is told by the others
        for key, own in (*said.items(), *said.items()):
            largest = np.abs(own + self._said_by_others(work, key, moved)).max(initial=0.0)
            moved[key] = responses[key](largest * rng.choice((-1.0, 1.0), size=own.shape))
        return {key: _ROUNDING * float(np.abs(moved[key]).max(initial=0.0)) for key in said}

    def _said_by_others(self, work: BlockWork, target: FactorKey, moved: LocalState) -> Array | float:
        """Return by how much the natural parameters of a factor change with the statistics of the others."""
        total = None
        for term in self._coupling:
            for other in term.targets if target in term.targets else ():
                if other == target or other not in moved:
                    continue
                if total is None:
                    total = np.zeros_like(work.state[target])
                own, work.state[other] = work.state[other], moved[other]
                term.forward(target, work, work.coefficients, total)
                work.state[other] = own
        return 0.0 if total is None else total

    def _summed(self, work: BlockWork, base: LocalState, moved: LocalState, change: Coefficients) -> Sums:
        """Return by how much the sums over a block change."""
        sums, counted = Sums.zero(), self._counted(work, moved)
        for term in self._contracted:
            for key in term.targets:
                work.counted = {**base, key: counted[key]}
                own = Sums.zero()
                term.backward(work, own)
                sums.add(own)
        work.counted = counted
        work.weigh(in_place=False)
        for product in self._products:
            product.backward(work, sums)
        work.counted = base
        work.weigh(in_place=False)
        for product in self._products:
            product.backward_change(work, change, sums)
        return Sums({key: total.copy() for key, total in sums.fused.items()}, sums.parts, {}, {})

    def _counted(self, work: BlockWork, state: LocalState) -> LocalState:
        """Return statistics with zeros where a repetition does not count."""
        columns, factors = work.rows.columns, (own.factor for own in self._inferences)
        return {factor.key: factor.counted(state[factor.key], columns) for factor in factors}


def _inferred(inferences: Sequence[FactorOfRows], natural: LocalState, state: LocalState) -> bool:
    """Write the statistics of natural parameters to a state; return whether there are any."""
    found: LocalState = {}
    for own in inferences:
        found[own.factor.key] = natural[own.factor.key].copy()
        try:
            own.factor.infer(found[own.factor.key])
        except ImproperError:
            return False
    if not all(np.isfinite(own).all() for own in found.values()):
        return False
    state |= found
    return True


def _extrapolated(
    extrapolation: Extrapolation, keys: Iterable[FactorKey], before: LocalState, after: LocalState
) -> LocalState:
    """Return the changes of local factors to go on from: those of each row are linear in themselves alone."""
    every = list(keys)
    one, other = (np.concatenate([own[key] for key in every]) for own in (before, after))
    found, start, parts = extrapolation.next(one, other), 0, {}
    for key in every:
        stop = start + len(after[key])
        parts[key] = found[start:stop]
        start = stop
    return parts


def _settled_at(sweep: int) -> float:
    """Return the change of a sweep below which local factors are settled."""
    return _SETTLED if sweep < _MOST_EXTRAPOLATED else _STALLED


def _difference(one: Array, other: Array, size: float = 0.0) -> float:
    """Return the largest difference between two states, relative to the largest number of one, or a larger size."""
    largest = max(np.abs(one).max(initial=0.0), size)
    return float(np.abs(one - other).max(initial=0.0) / largest) if largest else 0.0


def _stacked(found: Iterable[Sums]) -> Sums:
    """Return sums as one, with an axis of them before all others."""
    every = list(found)

    def together(name: str) -> dict[Hashable, Array]:
        return {key: np.stack([getattr(own, name)[key] for own in every]) for key in getattr(every[0], name)}

    return Sums(together("fused"), together("parts"), {}, {})  # pyright: ignore[reportArgumentType]
