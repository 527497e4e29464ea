"""What the globals hear of all terms: the compiled update of each factor, and the sum of the terms.

An update is the derivative of the expected log joint by a factor's expected statistics. In the sum the parts that are
known beforehand are added up once, not in each iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..._typing import Array
from ...language import Axis, Variable
from ...numerics.linalg import symmetric_part
from ...numerics.spread import spread
from ..binding.bound_model import BoundModel
from ..design.contraction import Evaluation, multiplied, the_constant
from ..design.keys import FactorKey, StatisticKey
from .in_turn import InTurn, meetings_of
from .terms import Compiled, GlobalTerm


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
    found = {}
    for variable in variables:
        layout, in_turn = known[variable], None
        if layout.meetings:
            clamped = bound.of(variable).clamped
            is_known = None if clamped is None else clamped.is_known
            meetings = [(terms[number].contraction, own) for number, own in layout.meetings]
            in_turn = InTurn(variable, meetings, is_known)
        found[variable] = GlobalUpdate(layout, terms, in_turn)
    return found


class Told(NamedTuple):
    """What the value of a term follows from: a message, which is multiplied with a statistic of a factor.

    Attributes
    ----------
    number
        Of the term.
    key, shape
        Of the statistic.
    place
        Of the message among those of the update; those that depend on nothing else come after the others.
    of_numbers
        What the term is the product of beside its constant, the statistic last, where all are numbers; or None.
    """

    number: int
    key: StatisticKey
    place: int
    shape: tuple[int, ...]
    of_numbers: tuple[Hashable, ...] | None


class UpdateLayout:
    """The parts of the update of a global factor, without the values of the constants of its terms.

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
    shapes, zeros
        Of its statistics, and zeros of these shapes, which are not to be changed.
    fixed, changing
        Statistic, number of the term and position: of the messages that depend on nothing else, and of the others.
    told
        The terms whose values follow from the messages.
    groups
        Of each statistic, places among ``changing`` of its messages, and whether it is a symmetric matrix.
    made_changing, made_fixed
        Of each of these messages what makes it of the constant of its term; the number of that, whether it is of the
        whole of the term, and the place of the statistic.
    others
        Terms whose values do not follow from the messages.
    meetings
        Terms in which labels of the variable meet each other.
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
        self.zeros = [_unchanging_zeros(shape) for shape in self.shapes]
        self.square = [i for i, s in enumerate(statistics) if variable.is_matrix(s)]
        self.terms = [number for number, _ in uses]
        # entries of a sparse vector meet too, and have an update of their own
        self.meetings = () if variable.has_zeros else meetings_of(uses)
        meet = {own.number for own in self.meetings}
        self.fixed: list[tuple[int, int, int]] = []
        self.changing: list[tuple[int, int, int]] = []
        for number, position in uses:
            keys = terms[number].contraction.keys
            if number in meet:
                continue
            _, name = keys[position]  # type: ignore[misc]
            (self.fixed if len(keys) == 1 else self.changing).append(
                (statistics.index(name), number, position)
            )
        self.made_changing = [_made(terms[own[1]], *own) for own in self.changing]
        self.made_fixed = [_made(terms[own[1]], *own) for own in self.fixed]
        self.groups = [
            ([place for place, (own, *_) in enumerate(self.changing) if own == statistic], is_square)
            for statistic, is_square in enumerate(map(variable.is_matrix, statistics))
        ]
        self.told: list[Told] = []
        for place, (statistic, number, position) in enumerate((*self.changing, *self.fixed)):
            # of a term with two statistics of the factor, a message depends on the factor itself
            if terms[number].whole is None and self.terms.count(number) == 1:
                key, own = StatisticKey(variable.name, statistics[statistic]), terms[number].contraction
                keys = (*own.keys[:position], *own.keys[position + 1 :], key)
                of_numbers = keys if own.formula.is_scalar and place < len(self.changing) else None
                self.told.append(Told(number, key, place, self.shapes[statistic], of_numbers))
        self.others = sorted(set(self.terms) - {number for number, *_ in self.told})


def _unchanging_zeros(shape: tuple[int, ...]) -> Array:
    zeros = np.zeros(shape)
    zeros.flags.writeable = False
    return zeros


def _made(
    term: GlobalTerm, statistic: int, number: int, position: int
) -> tuple[Callable[[Array], Evaluation], int, bool, int]:
    said = term.said_to(position)
    return said.formula.derivative(position, None), number, said is term.whole, statistic


TermValue: TypeAlias = Callable[[Mapping[Hashable, Array]], float]
"""Returns the value of a term: where an update has a message of it, that times a statistic."""


def _times_statistic(
    message: Callable[[Mapping[Hashable, Array]], Array], key: StatisticKey, shape: tuple[int, ...]
) -> TermValue:
    """Return what gives a message times a statistic of this shape; axes of length one are the same all along."""

    def value(arrays: Mapping[Hashable, Array]) -> float:
        said, statistic = message(arrays), arrays[key]
        if not (shape or said.ndim or statistic.ndim):
            return said.item() * statistic.item()
        if not said.shape == statistic.shape == shape:
            return float(np.add.reduce(said * spread(statistic, shape), None))
        return said.ravel().dot(statistic.ravel()).item()

    return value


class GlobalUpdate:
    """The compiled update of one global factor: derivative of the expected log joint by its expected statistics.

    Parameters
    ----------
    layout
        What it is made of.
    terms
        All terms.
    in_turn
        What updates labels that meet each other; None of other variables.

    Attributes
    ----------
    fixed, places_fixed
        What the terms say that depend on nothing else, summed up; statistic, number of the term, and position of each.
    constants
        What each of these says.
    places_changing
        The same of what the others say.
    """

    def __init__(
        self, layout: UpdateLayout, terms: Sequence[GlobalTerm], in_turn: InTurn | None = None
    ) -> None:
        self._layout, self._every, self._in_turn = layout, terms, in_turn
        self.variable, self.terms, self.others = layout.variable, layout.terms, layout.others
        self.places_changing, self.places_fixed = layout.changing, layout.fixed
        self.fixed: list[Array] = list(layout.zeros)
        self.constants: list[Array] = []
        self._messages = [
            make(((is_whole and terms[number].whole) or terms[number].contraction).constant)
            for make, number, is_whole, _ in layout.made_changing
        ]
        for make, number, is_whole, statistic in layout.made_fixed:
            constant = ((is_whole and terms[number].whole) or terms[number].contraction).constant
            said = constant if make is the_constant else make(constant)({})
            shape = layout.shapes[statistic]
            own = said if said.shape == shape else spread(said, shape)
            self.fixed[statistic] = self.fixed[statistic] + own
            self.constants.append(own)

    @property
    def told(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The terms whose values follow from what they say to a statistic of the factor, and its shape."""
        for own in self._layout.told:
            yield own.number, own.shape

    def said(self, place: int, arrays: Mapping[Hashable, Array]) -> Array:
        """Return what one term says to a statistic of the factor, by its place: those that change come first."""
        n_changing = len(self._messages)
        return self._messages[place](arrays) if place < n_changing else self.constants[place - n_changing]

    def value_of(self, own: int) -> TermValue:
        """Return what the value of a term is made of."""
        number, key, place, shape, of_numbers = self._layout.told[own]
        if of_numbers:
            return partial(multiplied, self._every[number].contraction.constant.item(), of_numbers)
        n_changing = len(self._messages)
        if place < n_changing:
            return _times_statistic(self._messages[place], key, shape)
        return _times_statistic(the_constant(self.constants[place - n_changing]), key, shape)

    @property
    def linear_terms(self) -> list[tuple[int, StatisticKey, int]]:
        """The terms that are a known array times a statistic: number, statistic, and place in ``constants``."""
        n_changing = len(self._messages)
        return [
            (number, key, place - n_changing)
            for number, key, place, *_ in self._layout.told
            if place >= n_changing
        ]

    @property
    def meets(self) -> bool:
        """Whether labels of the factor meet each other, and are updated in turn."""
        return self._in_turn is not None

    def natural(self, arrays: Mapping[Hashable, Array]) -> tuple[Array, ...]:
        """Return the natural parameters of the optimal factor."""
        if self.variable.is_point:
            # its place is not an optimum of terms that are linear in it
            return tuple(
                np.asarray(arrays[StatisticKey(self.variable.name, s)])
                for s in self.variable.family.statistics
            )
        natural: list[Any] = []
        messages = self._messages
        for (places, is_square), own in zip(self._layout.groups, self.fixed, strict=True):
            total = own
            if places:
                total = messages[places[0]](arrays)
                for place in places[1:]:
                    total = total + messages[place](arrays)
                # the prior last: a count of rows that cancels, as of those that are not 0, must not take it along
                total = total + own
            # only the symmetric part of m_i x_j matters to a symmetric statistic
            natural.append(symmetric_part(total) if is_square else total)
        if self._in_turn is not None:
            return (self._in_turn.natural(natural[0], arrays),)
        return tuple(natural)

    def magnitude(self, arrays: Mapping[Hashable, Array]) -> tuple[Array, ...]:
        """Return the sum of the sizes of all products that each natural parameter is the sum of."""
        total = [np.zeros(fixed.shape) for fixed in self.fixed]
        for number, position in self._layout.uses:
            term = self._every[number]
            _, name = term.contraction.keys[position]  # type: ignore[misc]
            statistic = self.variable.family.statistics.index(name)
            derivative = term.said_to(position).absolute.derivative(position)
            total[statistic] = total[statistic] + derivative(_of_size(arrays, term))
        for statistic in self._layout.square:
            total[statistic] = 0.5 * (total[statistic] + np.swapaxes(total[statistic], -1, -2))
        return tuple(total)


def _of_size(arrays: Mapping[Hashable, Array], term: GlobalTerm) -> dict[Hashable, Array]:
    return {key: np.abs(arrays[key]) for key in term.contraction.keys}


class Linear(NamedTuple):
    """Terms that are one known array times a statistic."""

    key: StatisticKey
    constant: Array
    numbers: Any
    """The array in one row, or the number that it is."""


def values_of(several: Sequence[Linear], arrays: Mapping[Hashable, Array]) -> list[float]:
    """Return the sum of the terms for each statistic."""
    found = []
    for key, constant, numbers in several:
        statistic = arrays[key]
        if statistic.shape == constant.shape:
            value = numbers.dot(statistic.ravel()).item() if statistic.ndim else numbers * statistic.item()
        else:
            value = float(np.add.reduce(constant * spread(statistic, constant.shape), None))
        found.append(value)
    return found


class OfStatistic(NamedTuple):
    """Terms that are a known array times the same statistic: the update that has each array, and its place there."""

    key: StatisticKey
    where: Sequence[tuple[Variable, int]]

    def added(self, updates: Mapping[Variable, GlobalUpdate]) -> Linear:
        """Return their sum."""
        total, *others = [updates[variable].constants[place] for variable, place in self.where]
        for constant in others:
            total = total + constant
        return Linear(self.key, total, total.ravel() if total.ndim else total.item())


class Places(NamedTuple):
    """Where the terms are, by how they are added up; this follows from the statement.

    Attributes
    ----------
    own
        Variable -> its own terms in which nothing varies, by number, and the others, where these are linear.
    constant, linear, others
        Of the other terms: numbers of those in which nothing varies, those that are linear in one statistic, and
        numbers of the rest.
    in_products
        Local factor -> numbers of the terms that it meets in its matrix product.
    """

    own: Mapping[Variable, tuple[Sequence[int], Sequence[OfStatistic]]]
    constant: Sequence[int]
    linear: Sequence[OfStatistic]
    others: Sequence[int]
    in_products: Mapping[FactorKey, Sequence[int]]


def places_in_sum(
    compiled: Compiled, updates: Mapping[Variable, GlobalUpdate], own_terms: Mapping[Variable, slice]
) -> Places:
    """Return how the terms are added up.

    Parameters
    ----------
    compiled
        The terms.
    updates
        The updates of the globals, which know what the terms say to them.
    own_terms
        Variable -> the terms of its prior among all, where they may have to be told as a divergence.
    """
    numbers = range(len(compiled.terms))
    products = in_products(compiled)
    inside = {number for own in products.values() for number in own}
    constant = {number for number in numbers if not compiled.terms[number].contraction.keys}
    found = [(own, *linear) for own, update in updates.items() for linear in update.linear_terms]
    place_of = {number: (key, variable, place) for variable, number, key, place in found}
    linear = set(place_of)
    own: dict[Variable, tuple[Sequence[int], Sequence[OfStatistic]]] = {}
    own_numbers: set[int] = set()
    for variable, place in own_terms.items():
        where = set(numbers[place])
        if where <= constant | linear:
            own[variable] = sorted(where & constant), _by_statistic(sorted(where - constant), place_of)
            own_numbers |= where
    rest = linear - own_numbers - inside
    others = [number for number in numbers if number not in inside | own_numbers | constant | rest]
    of_rest = _by_statistic(sorted(rest), place_of)
    return Places(own, sorted(constant - own_numbers), of_rest, others, products)


def _by_statistic(
    numbers: Sequence[int], place_of: Mapping[int, tuple[StatisticKey, Variable, int]]
) -> list[OfStatistic]:
    """Return linear terms, by number, together where they have the same statistic."""
    found: dict[StatisticKey, list[tuple[Variable, int]]] = {}
    for number in numbers:
        key, variable, place = place_of[number]
        found.setdefault(key, []).append((variable, place))
    return [OfStatistic(*own) for own in found.items()]


class SummedTerms:
    """All terms, those that are linear in one statistic added up.

    Parameters
    ----------
    places
        How they are added up.
    updates
        The updates of the globals, which know what the terms say to them.
    terms
        All terms.
    value_of
        Returns what the value of a term is made of, by its number.

    Attributes
    ----------
    own
        Variable -> the sum of its own terms in which nothing varies, and the others.
    in_products
        Local factor -> the values of the terms that it meets in its matrix product. With its entropy they are its
        log-partition.
    """

    def __init__(
        self,
        places: Places,
        updates: Mapping[Variable, GlobalUpdate],
        terms: Sequence[GlobalTerm],
        value_of: Callable[[int], TermValue],
    ) -> None:
        self.own: dict[Variable, tuple[float, list[Linear]]] = {
            variable: (_sum_of_constants(terms, known), [own.added(updates) for own in varying])
            for variable, (known, varying) in places.own.items()
        }
        self._constant = _sum_of_constants(terms, places.constant)
        self._linear = [own.added(updates) for own in places.linear]
        self._others = [value_of(number) for number in places.others]
        self.in_products = {key: [value_of(n) for n in own] for key, own in places.in_products.items()}

    def beside(self, arrays: Mapping[Hashable, Array]) -> float:
        """Return the sum of the terms that are not own ones, and are met in no matrix product."""
        total = self._constant
        for own in values_of(self._linear, arrays):
            total += own
        for value in self._others:
            total += value(arrays)
        return total


def who_tells(updates: Mapping[Variable, GlobalUpdate], n_terms: int) -> list[tuple[Variable, int] | None]:
    """Return for each term the variable whose update has a message of it, the shortest one, and which that is."""
    told = [
        (math.prod(shape), number, (variable, place))
        for variable, update in updates.items()
        for place, (number, shape) in enumerate(update.told)
    ]
    # the shortest message last, which is kept
    told.sort(key=lambda own: -own[0])
    where = {number: own for _, number, own in told}
    return [where.get(number) for number in range(n_terms)]


def in_products(compiled: Compiled) -> Mapping[FactorKey, Sequence[int]]:
    """Return the numbers of the terms that each local factor meets in its matrix product."""
    found: dict[FactorKey, list[int]] = {}
    for number, term in enumerate(compiled.terms):
        for key in term.contraction.keys:
            part = compiled.parts.get(key)
            if part is not None and part.factor is not None and part.feature is not None:
                found.setdefault(part.factor.key, []).append(number)
    return found


def _sum_of_constants(terms: Sequence[GlobalTerm], numbers: Sequence[int]) -> float:
    """Return the sum of the terms with these numbers, in which nothing varies."""
    return sum([terms[number].contraction.constant.item() for number in numbers])
