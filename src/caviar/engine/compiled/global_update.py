"""The compiled update of a global factor: the derivative of the expected log joint by its expected statistics."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from ..._typing import Array
from ...language import Axis, Variable
from ..binding.bound_model import BoundModel
from ..design.contraction import Derivative
from ..design.keys import StatisticKey
from ..local.local_factor import excluded_labels
from .terms import GlobalTerm

__all__ = ["GlobalUpdate", "possible", "updates_of"]


def updates_of(
    variables: Sequence[Variable], terms: Sequence[GlobalTerm], bound: BoundModel
) -> dict[Variable, GlobalUpdate]:
    """Return the compiled update of each global variable, from the terms that have it."""
    uses: dict[Variable, list[tuple[int, GlobalTerm, int]]] = {variable: [] for variable in variables}
    by_name = {variable.name: own for variable, own in uses.items()}
    for number, term in enumerate(terms):
        for position, key in enumerate(term.contraction.keys):
            if isinstance(key, StatisticKey) and key.variable in by_name:
                by_name[key.variable].append((number, term, position))
    return {variable: GlobalUpdate(variable, own, bound) for variable, own in uses.items()}


class GlobalUpdate:
    """The compiled update of one global factor: derivative of the expected log joint by its expected statistics.

    Parameters
    ----------
    variable
        Whose factor it is.
    uses
        Where its statistics stand: number of a term, the term, and the position in it.
    bound
        For the sizes of its axes.
    """

    def __init__(
        self, variable: Variable, uses: Sequence[tuple[int, GlobalTerm, int]], bound: BoundModel
    ) -> None:
        self.variable = variable
        statistics = variable.family.statistics
        shapes = [
            tuple([bound.sizes[plate] for plate in variable.plates_of(s)])
            + tuple([bound.size(Axis(variable, c)) for c in variable.letters[s]])
            for s in statistics
        ]
        self._uses = tuple(uses)
        self.fixed: list[Array] = [np.zeros(shape) for shape in shapes]
        self.changing: list[tuple[int, Derivative]] = []
        self.terms: list[int] = []
        self._square = [i for i, s in enumerate(statistics) if len(variable.letters[s]) == 2]
        for number, term, position in uses:
            self.terms.append(number)
            _, name = term.contraction.keys[position]  # type: ignore[misc]
            statistic = statistics.index(name)
            derivative = term.derivative(position)
            if len(term.contraction.keys) == 1:
                self.fixed[statistic] = self.fixed[statistic] + derivative({})
            else:
                self.changing.append((statistic, derivative))

    def natural(self, arrays: Mapping[Hashable, Array]) -> tuple[Array, ...]:
        """Return the natural parameters of the optimal factor."""
        changing: list[Array | float] = [0.0] * len(self.fixed)
        for statistic, derivative in self.changing:
            changing[statistic] = changing[statistic] + derivative(arrays)
        # the prior last: a count of rows that cancels, as of those that are not 0, must not take it along
        total = [own + fixed for own, fixed in zip(changing, self.fixed, strict=True)]
        for statistic in self._square:
            # m_i x_j stands for its symmetric part, which is all that a symmetric statistic sees
            total[statistic] = 0.5 * (total[statistic] + np.swapaxes(total[statistic], -1, -2))
        return tuple(total)

    def magnitude(self, arrays: Mapping[Hashable, Array]) -> tuple[Array, ...]:
        """Return the sum of the sizes of all products that each natural parameter is the sum of."""
        total = [np.zeros(fixed.shape) for fixed in self.fixed]
        for _, term, position in self._uses:
            _, name = term.contraction.keys[position]  # type: ignore[misc]
            statistic = self.variable.family.statistics.index(name)
            derivative = term.said_to(position).absolute.derivative(position)
            total[statistic] = total[statistic] + derivative(_of_size(arrays, term))
        for statistic in self._square:
            total[statistic] = 0.5 * (total[statistic] + np.swapaxes(total[statistic], -1, -2))
        return tuple(total)


def _of_size(arrays: Mapping[Hashable, Array], term: GlobalTerm) -> dict[Hashable, Array]:
    return {key: np.abs(arrays[key]) for key in term.contraction.keys}


def possible(
    zeros: GlobalUpdate, natural: tuple[Array, ...], arrays: Mapping[Hashable, Array]
) -> tuple[Array, ...]:
    """Return natural parameters of labels with minus infinity for those that known probabilities of zero rule out.

    Parameters
    ----------
    zeros
        Update from the terms that count such zeros: labels that meet more of them than another are ruled out.
    natural
        Of the labels; of another variable, which meets none, as they are.
    arrays
        Expected statistics, and sums over the rows.
    """
    if not zeros.terms:
        return natural
    (logits,), (met,) = natural, zeros.natural(arrays)
    excluded = excluded_labels((*met.shape, 1), None, met[..., None])
    return (np.where(excluded[..., 0], -np.inf, logits),)
