"""The compiled update of a global factor: the derivative of the expected log joint by its expected statistics."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, MutableSequence, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..._typing import Array
from ...language import Axis, Variable
from ...numerics.linalg import symmetric_part
from ...numerics.spread import spread
from ..binding.bound_model import BoundModel
from ..design.contraction import Derivative, Evaluation
from ..design.keys import StatisticKey
from ..local.local_factor import excluded_labels
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


class Told(NamedTuple):
    """A term whose value is linear in a statistic of a factor.

    Attributes
    ----------
    number
        Of the term.
    key, shape
        Of the statistic.
    message
        Returns what the term says to it.
    place
        Of that among the messages of the update.
    """

    number: int
    key: StatisticKey
    shape: tuple[int, ...]
    message: Evaluation
    place: int

    def value(self, arrays: Mapping[Hashable, Array]) -> float:
        """Return the value of the term."""
        return _product(self.message(arrays), arrays[self.key], self.shape)


def _same(constant: Array, arrays: Mapping[Hashable, Array]) -> Array:
    return constant


def _product(message: Array, statistic: Array, shape: tuple[int, ...]) -> float:
    """Return the sum of a message times a statistic of this shape; axes of length one are the same all along."""
    if message.shape == statistic.shape == shape:
        return message.ravel().dot(statistic.ravel()).item()
    return float(np.add.reduce(message * spread(statistic, shape), None))


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
        self._constants: list[Array] = []
        self.terms: list[int] = []
        told: list[Told] = []
        self._square = [i for i, s in enumerate(statistics) if variable.is_matrix(s)]
        for number, term, position in uses:
            self.terms.append(number)
            _, name = term.contraction.keys[position]  # type: ignore[misc]
            statistic = statistics.index(name)
            derivative = term.derivative(position)
            key, shape = StatisticKey(variable.name, name), shapes[statistic]
            if len(term.contraction.keys) == 1:
                constant = spread(derivative({}), shape)
                self.fixed[statistic] = self.fixed[statistic] + constant
                # after those that change: counted from the end
                self._constants.insert(0, constant)
                message, place = partial(_same, constant), -len(self._constants)
            else:
                message, place = derivative.function, len(self.changing)
                self.changing.append((statistic, derivative))
            if term.whole is None:
                told.append(Told(number, key, shape, message, place))
        numbers = [own.number for own in told]
        # of a term with two statistics of the factor, a message depends on the factor itself
        self.told = [own for own in told if numbers.count(own.number) == 1]
        """Terms whose values follow from the messages."""
        self.others = sorted(set(self.terms) - {own.number for own in self.told})
        """The other terms."""
        self._messages = [derivative.function for _, derivative in self.changing]

    def messages(self, arrays: Mapping[Hashable, Array]) -> list[Array]:
        """Return what each term that changes says to the factor, then what the others say."""
        return [message(arrays) for message in self._messages] + self._constants

    def tell(
        self, values: MutableSequence[float], messages: Sequence[Array], arrays: Mapping[Hashable, Array]
    ) -> None:
        """Write the values of terms, which are linear in the factor's statistics, into those of all terms.

        Parameters
        ----------
        messages
            Those to this factor, found with the other factors and the sums of ``arrays``.
        """
        for number, key, shape, _, place in self.told:
            message, own = messages[place], arrays[key]
            if message.shape == own.shape == shape:
                values[number] = message.ravel().dot(own.ravel()).item()
            else:
                values[number] = _product(message, own, shape)

    def natural(
        self, arrays: Mapping[Hashable, Array], messages: Sequence[Array] | None = None
    ) -> tuple[Array, ...]:
        """Return the natural parameters of the optimal factor, from the messages if they are there."""
        found = self.messages(arrays) if messages is None else messages
        natural: list[Any] = [None] * len(self.fixed)
        for (statistic, _), message in zip(self.changing, found, strict=False):
            before = natural[statistic]
            natural[statistic] = message if before is None else before + message
        for statistic, own in enumerate(self.fixed):
            # the prior last: a count of rows that cancels, as of those that are not 0, must not take it along
            natural[statistic] = own if natural[statistic] is None else natural[statistic] + own
        for statistic in self._square:
            # only the symmetric part of m_i x_j matters to a symmetric statistic
            natural[statistic] = symmetric_part(natural[statistic])
        return tuple(natural)

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
