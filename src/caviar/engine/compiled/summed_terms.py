"""The sum of all terms; the parts that are known beforehand are added up once, not in each iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._typing import Array
from ...language import Variable
from ...numerics.spread import spread
from ..design.keys import FactorKey, StatisticKey
from .global_update import GlobalUpdate, TermValue, term_values
from .terms import Compiled, GlobalTerm


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


class Places(NamedTuple):
    """Numbers of the terms by how they are added up; they follow from the statement.

    Attributes
    ----------
    own
        Variable -> its own terms in which nothing varies, and the others, where these are linear.
    constant, linear, others
        Of the other terms: those in which nothing varies, those that are linear in one statistic, and the rest.
    in_products
        Local factor -> the terms that it meets in its matrix product.
    """

    own: Mapping[Variable, tuple[Sequence[int], Sequence[int]]]
    constant: Sequence[int]
    linear: Sequence[int]
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
    linear = {number for update in updates.values() for number, *_ in update.linear_terms}
    own: dict[Variable, tuple[Sequence[int], Sequence[int]]] = {}
    own_numbers: set[int] = set()
    for variable, place in own_terms.items():
        where = set(numbers[place])
        if where <= constant | linear:
            own[variable] = sorted(where & constant), sorted(where - constant)
            own_numbers |= where
    rest = linear - own_numbers - inside
    others = [number for number in numbers if number not in inside | own_numbers | constant | rest]
    return Places(own, sorted(constant - own_numbers), sorted(rest), others, products)


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
        linear = {
            number: (key, array) for update in updates.values() for number, key, array in update.linear_terms
        }
        self.own: dict[Variable, tuple[float, list[Linear]]] = {
            variable: (_sum_of_constants(terms, known), _added([linear[n] for n in varying]))
            for variable, (known, varying) in places.own.items()
        }
        self._constant = _sum_of_constants(terms, places.constant)
        self._linear = _added([linear[number] for number in places.linear])
        self._others = [value_of(number) for number in places.others]
        self.in_products = {key: [value_of(n) for n in own] for key, own in places.in_products.items()}

    def beside(self, arrays: Mapping[Hashable, Array]) -> float:
        """Return the sum of the terms that are not own ones, and are met in no matrix product."""
        total = self._constant
        for own in values_of(self._linear, arrays):
            total += own
        for value in term_values(self._others, arrays) if self._others else ():
            total += value
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


def _added(terms: Iterable[tuple[StatisticKey, Array]]) -> list[Linear]:
    """Return the sum of the arrays for each statistic."""
    total: dict[StatisticKey, Array] = {}
    for key, constant in terms:
        total[key] = total[key] + constant if key in total else constant
    return [
        Linear(key, constant, constant.ravel() if constant.ndim else constant.item())
        for key, constant in total.items()
    ]
