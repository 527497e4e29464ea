"""The compiled update of a global factor: the derivative of the expected log joint by its expected statistics."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from ..._typing import Array
from ...language import Axis, Variable
from ..binding.bound_model import BoundModel
from ..design.keys import StatisticKey
from ..local.local_factor import meets_more
from .terms import GlobalTerm


def updates_of(
    variables: Sequence[Variable],
    terms: Sequence[GlobalTerm],
    bound: BoundModel,
    layouts: dict[Variable, UpdateLayout] | None = None,
) -> dict[Variable, GlobalUpdate]:
    """Return the compiled update of each global variable, from the terms that have it.

    Parameters
    ----------
    layouts
        Those that are known of these terms; those that are found are added.
    """
    known = {} if layouts is None else layouts
    if any(variable not in known for variable in variables):
        uses: dict[str, list[tuple[int, int]]] = {variable.name: [] for variable in variables}
        for number, term in enumerate(terms):
            for position, key in enumerate(term.contraction.keys):
                if isinstance(key, StatisticKey) and key.variable in uses:
                    uses[key.variable].append((number, position))
        for variable in variables:
            known[variable] = UpdateLayout(variable, uses[variable.name], terms, bound)
    return {variable: GlobalUpdate(known[variable], terms) for variable in variables}


class UpdateLayout:
    """What the update of a global factor is made of, whatever the constants of its terms are.

    Parameters
    ----------
    variable
        Whose factor it is.
    uses
        Where its statistics are: number of a term, and the position in it.
    terms
        All terms.
    bound
        For the sizes of its axes.

    Attributes
    ----------
    shapes
        Of its statistics.
    fixed, changing
        Statistic, number of the term and position: of the messages that depend on nothing else, and of the others.
    told
        Number of a term, statistic and message whose product is its value, and the shape of the statistic.
    others
        Terms whose values do not follow from the messages.
    square
        Statistics that are symmetric matrices.
    """

    def __init__(
        self,
        variable: Variable,
        uses: Sequence[tuple[int, int]],
        terms: Sequence[GlobalTerm],
        bound: BoundModel,
    ) -> None:
        self.variable = variable
        self.uses = tuple(uses)
        statistics, size = variable.family.statistics, bound.size
        self.shapes = [
            tuple([bound.sizes[plate] for plate in variable.plates_of(s)])
            + tuple([size(Axis(variable, c)) for c in variable.letters[s]])
            for s in statistics
        ]
        self.square = [i for i, s in enumerate(statistics) if variable.is_matrix(s)]
        self.terms = [number for number, _ in uses]
        self.fixed: list[tuple[int, int, int]] = []
        self.changing: list[tuple[int, int, int]] = []
        told: list[tuple[int, StatisticKey, int]] = []
        for number, position in uses:
            keys = terms[number].contraction.keys
            _, name = keys[position]  # type: ignore[misc]
            own = (statistics.index(name), number, position)
            if len(keys) == 1:
                self.fixed.append(own)
            else:
                self.changing.append(own)
                if terms[number].whole is None:
                    told.append((number, StatisticKey(variable.name, name), len(self.changing) - 1))
        numbers = [number for number, *_ in told]
        # of a term with two statistics of the factor, a message depends on the factor itself
        self.told = [
            (number, key, place, self.shapes[self.changing[place][0]])
            for number, key, place in told
            if numbers.count(number) == 1
        ]
        self.others = sorted(set(self.terms) - {number for number, *_ in self.told})


class GlobalUpdate:
    """The compiled update of one global factor: derivative of the expected log joint by its expected statistics.

    Parameters
    ----------
    layout
        What it is made of.
    terms
        All terms.
    """

    def __init__(self, layout: UpdateLayout, terms: Sequence[GlobalTerm]) -> None:
        self._layout, self._every = layout, terms
        self.variable, self.terms, self.others = layout.variable, layout.terms, layout.others
        self._told, self._square = layout.told, layout.square
        self.fixed: list[Array] = [np.zeros(shape) for shape in layout.shapes]
        for statistic, number, position in layout.fixed:
            self.fixed[statistic] = self.fixed[statistic] + terms[number].message(position)({})
        self._statistics = [statistic for statistic, *_ in layout.changing]
        self._messages = [terms[number].message(position) for _, number, position in layout.changing]

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
        for statistic, message in zip(self._statistics, found, strict=True):
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
        for number, position in self._layout.uses:
            term = self._every[number]
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
