"""The sum of all terms, in which what is known beforehand is added up once: an iteration asks for no more."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from ..._typing import Array
from ...language import Variable
from ...numerics.spread import spread
from ..design.keys import FactorKey, StatisticKey
from .global_update import GlobalUpdate
from .terms import Compiled

Value: TypeAlias = Callable[[Mapping[Hashable, Array]], float]
"""Returns the value of a term."""


class Linear(NamedTuple):
    """Terms that are one known array times a statistic."""

    key: StatisticKey
    constant: Array
    numbers: Array


def values_of(several: Sequence[Linear], arrays: Mapping[Hashable, Array]) -> list[float]:
    """Return the sum of the terms for each statistic."""
    found = []
    for key, constant, numbers in several:
        statistic = arrays[key]
        if statistic.shape == constant.shape:
            value = numbers.dot(statistic if statistic.ndim == 1 else statistic.ravel()).item()
        else:
            value = float(np.add.reduce(constant * spread(statistic, constant.shape), None))
        found.append(value)
    return found


class SummedTerms:
    """All terms, those that are linear in one statistic added up.

    Parameters
    ----------
    compiled
        The terms.
    updates
        The updates of the globals, which know what the terms say to them.
    own_terms
        Variable -> the terms of its prior among all, where they may have to be told as a divergence.
    values
        What returns the value of each term.

    Attributes
    ----------
    own
        Variable -> the sum of its own terms in which nothing varies, and the others.
    in_products
        Local factor -> what returns the value of each term that it meets in its matrix product. With its entropy they
        are its log-partition.
    """

    def __init__(
        self,
        compiled: Compiled,
        updates: Mapping[Variable, GlobalUpdate],
        own_terms: Mapping[Variable, slice],
        values: Sequence[Value],
    ) -> None:
        numbers = range(len(compiled.terms))
        products = in_products(compiled)
        inside = {number for own in products.values() for number in own}
        constant = {number for number in numbers if not compiled.terms[number].contraction.keys}
        linear = {
            number: (key, array) for update in updates.values() for number, key, array in update.linear_terms
        }
        self.own: dict[Variable, tuple[float, list[Linear]]] = {}
        own_numbers: set[int] = set()
        for variable, own in own_terms.items():
            where = set(numbers[own])
            if where <= constant | linear.keys():
                known = sum(values[number]({}) for number in sorted(where & constant))
                self.own[variable] = known, _added(linear[number] for number in sorted(where - constant))
                own_numbers |= where
        rest = linear.keys() - own_numbers - inside
        self._constant = sum(values[number]({}) for number in sorted(constant - own_numbers))
        self._linear = _added(linear[number] for number in sorted(rest))
        self._others = [
            values[number] for number in numbers if number not in inside | own_numbers | constant | rest
        ]
        self.in_products = {key: [values[number] for number in own] for key, own in products.items()}

    def beside(self, arrays: Mapping[Hashable, Array]) -> float:
        """Return the sum of the terms that are no own ones, and are met in no matrix product."""
        total = self._constant
        for own in values_of(self._linear, arrays):
            total += own
        for value in self._others:
            total += value(arrays)
        return total


def in_products(compiled: Compiled) -> Mapping[FactorKey, Sequence[int]]:
    """Return the numbers of the terms that each local factor meets in its matrix product."""
    found: dict[FactorKey, list[int]] = {}
    for number, term in enumerate(compiled.terms):
        for key in term.contraction.keys:
            part = compiled.parts.get(key)
            if part is not None and part.factor is not None and part.feature is not None:
                found.setdefault(part.factor.key, []).append(number)
    return found


def _added(terms: Iterable[tuple[StatisticKey, Array]]) -> list[Linear]:
    """Return the sum of the arrays for each statistic."""
    total: dict[StatisticKey, Array] = {}
    for key, constant in terms:
        total[key] = total[key] + constant if key in total else constant
    return [Linear(key, constant, constant.ravel()) for key, constant in total.items()]
