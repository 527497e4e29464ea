"""The compiled update of a global factor: the derivative of the expected log joint by its expected statistics."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from ..._typing import Array
from ...language import Axis, Variable
from ..binding.bound_model import BoundModel
from ..design.contraction import Derivative
from ..design.keys import StatisticKey
from ..local.local_factor import meets_more
from .terms import GlobalTerm


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
        Where its statistics are: number of a term, the term, and the position in it.
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
        told: list[tuple[int, StatisticKey, int]] = []
        self._square = [i for i, s in enumerate(statistics) if variable.is_matrix(s)]
        for number, term, position in uses:
            self.terms.append(number)
            _, name = term.contraction.keys[position]  # type: ignore[misc]
            statistic = statistics.index(name)
            derivative = term.derivative(position)
            if len(term.contraction.keys) == 1:
                self.fixed[statistic] = self.fixed[statistic] + derivative({})
            else:
                self.changing.append((statistic, derivative))
                if term.whole is None:
                    told.append((number, StatisticKey(variable.name, name), len(self.changing) - 1))
        numbers = [number for number, *_ in told]
        # of a term with two statistics of the factor, a message depends on the factor itself
        self._told = [
            (number, key, place, shapes[self.changing[place][0]])
            for number, key, place in told
            if numbers.count(number) == 1
        ]
        """Number of a term, statistic and message whose product is its value, and the shape of the statistic."""
        self.others = sorted(set(self.terms) - {number for number, *_ in self._told})
        """Terms whose values do not follow from the messages."""
        self._messages = [derivative.function for _, derivative in self.changing]

    def messages(self, arrays: Mapping[Hashable, Array]) -> list[Array]:
        """Return what each term that changes says to the factor."""
        return [message(arrays) for message in self._messages]

    def values(
        self, messages: Sequence[Array], arrays: Mapping[Hashable, Array]
    ) -> Iterator[tuple[int, float]]:
        """Yield the number and the value of terms, which are linear in the factor's statistics.

        Parameters
        ----------
        messages
            Those to this factor, found with the other factors and the sums of ``arrays``.
        """
        for number, key, place, shape in self._told:
            message, own = messages[place], arrays[key]
            if own.shape != shape:
                own = np.broadcast_to(own, shape)
            if message.shape == shape:
                yield number, float(np.vdot(message, own))
            else:
                yield number, float(np.add.reduce(message * own, axis=None))

    def natural(
        self, arrays: Mapping[Hashable, Array], messages: Sequence[Array] | None = None
    ) -> tuple[Array, ...]:
        """Return the natural parameters of the optimal factor, from the messages if they are there."""
        changing: list[Array | float] = [0.0] * len(self.fixed)
        found = self.messages(arrays) if messages is None else messages
        for (statistic, _), message in zip(self.changing, found, strict=True):
            changing[statistic] = changing[statistic] + message
        # the prior last: a count of rows that cancels, as of those that are not 0, must not take it along
        total = [own + fixed for own, fixed in zip(changing, self.fixed, strict=True)]
        for statistic in self._square:
            # only the symmetric part of m_i x_j matters to a symmetric statistic
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
    excluded = meets_more(met[..., None])
    return (np.where(excluded[..., 0], -np.inf, logits),)
