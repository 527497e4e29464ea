"""How the terms of a model change with expected statistics: their messages to the globals and to the rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Axis, Plate
from ...ascent.problem import Problem
from ...design.contraction import Contraction, Derivative
from ...design.keys import StatisticKey
from ...local.statistics import Arrays

_CHANGES = Axis(Plate("changes"))
"""The axis of several changes of an operand."""


@dataclass(frozen=True, eq=False)
class _Message:
    """The message of a term to one of its operands.

    Attributes
    ----------
    target
        What it is added to.
    contraction
        The term.
    position
        Of the operand that is left out.
    moved
        The messages of the same term with several changes in the place of another operand, by its position; made when
        they are needed.
    """

    target: Hashable
    contraction: Contraction
    position: int
    moved: dict[int, Derivative] = field(default_factory=dict)

    def change(self, place: int, arrays: Mapping[Hashable, Array], changes: Array) -> Array:
        """Return by how much the message changes with those of the operand at a place, (n, ...) both."""
        if self.contraction.gather is None:
            return self._moved(place)({**arrays, _CHANGES: changes})
        # an array of all combinations of labels for each of many changes would be large
        n, shape = len(changes), changes.shape[1:]
        if n <= math.prod(shape):
            return self._one_by_one(place, arrays, changes)
        # what changes with one number at a time, added up
        of_numbers = self._one_by_one(place, arrays, np.eye(math.prod(shape)).reshape(-1, *shape))
        return np.tensordot(changes.reshape(n, -1), of_numbers, axes=1)

    def _one_by_one(self, place: int, arrays: Mapping[Hashable, Array], changes: Array) -> Array:
        return np.stack([self._moved(place)({**arrays, _CHANGES: own})[()] for own in changes])

    def _moved(self, place: int) -> Derivative:
        if place not in self.moved:
            axis = _CHANGES if self.contraction.gather is None else None
            other = self.contraction.replaced(place, _CHANGES, axis)
            self.moved[place] = other.derivative(self.position, keep=axis)
        return self.moved[place]


class Multilinear:
    """Sums of derivatives of contractions, by what they are added to.

    Parameters
    ----------
    uses
        What a derivative is added to, the contraction, and the position of the operand that is left out.
    """

    def __init__(self, uses: Iterable[tuple[Hashable, Contraction, int]]) -> None:
        self._messages = [_Message(*own) for own in uses if len(own[1].keys) > 1]

    def change(
        self, arrays: Mapping[Hashable, Array], changes: Mapping[Hashable, Array], n: int
    ) -> tuple[Arrays, AnyArray]:
        """Return by how much each sum changes, and which of n changes it is that change any of them.

        Parameters
        ----------
        arrays
            All operands.
        changes
            Of some of them, with an axis of the changes before all others, as in what comes back, which has axes of
            length one where a sum does not vary.
        """
        found: Arrays = {}
        concerned = np.zeros(n, dtype=bool)
        which = {key: own.reshape(n, -1).any(axis=1) for key, own in changes.items()}
        for message in self._messages:
            for place, key in enumerate(message.contraction.keys):
                if place == message.position or key not in changes or not which[key].any():
                    continue
                own = which[key]
                concerned |= own
                value = message.change(place, arrays, changes[key][own])
                if not own.all():
                    several = np.zeros((n, *value.shape[1:]))
                    several[own] = value
                    value = several
                before = found.get(message.target)
                found[message.target] = value if before is None else before + value
        return found, concerned


class Terms(NamedTuple):
    """Derivatives of the terms of a problem, without their values.

    Attributes
    ----------
    of_updates
        The natural parameters sent to the globals.
    of_coefficients
        The natural parameters sent to the rows.
    with_themselves
        Names of the factors of which two statistics meet in a term.
    are_bilinear
        Whether at most two statistics of globals meet in a term.
    """

    of_updates: Multilinear
    of_coefficients: Multilinear
    with_themselves: frozenset[str]
    are_bilinear: bool


def terms_of(problem: Problem) -> Terms:
    """Return the derivatives of the terms of a problem."""
    needed: set[Hashable] = set(problem.rows.parts_of_messages) if problem.factors else set()
    if problem.factors:
        needed |= {key for key, part in problem.compiled.parts.items() if part.factor is not None}
    of_coefficients = Multilinear(
        (key, term.contraction, position)
        for term in problem.compiled.terms
        for position, key in enumerate(term.contraction.keys)
        if key in needed
    )
    met, most = set(), 0
    for term in problem.compiled.terms:
        names = [key.variable for key in term.contraction.keys if isinstance(key, StatisticKey)]
        met, most = met | {name for name in names if names.count(name) > 1}, max(most, len(names))
    shared = {variable.name for variable in problem.order if variable.members}
    return Terms(Multilinear(_uses(problem, shared)), of_coefficients, frozenset(met), most <= 2)


def directions_of(parts: Arrays, concerned: AnyArray) -> tuple[list[Arrays], Array]:
    """Return changes of the coefficients that a pass goes along, and what n changes are of them, (n, d).

    They are those that concern the rows, or one of each number of the coefficients if these are fewer.
    """
    n, places = len(concerned), np.flatnonzero(concerned)
    whole = {key: np.broadcast_to(own, (n, *own.shape[1:])) for key, own in parts.items()}
    sizes = [math.prod(own.shape[1:]) for own in parts.values()]
    if sum(sizes) >= len(places):
        shares = np.zeros((n, len(places)))
        shares[places, np.arange(len(places))] = 1.0
        return [{key: own[place] for key, own in whole.items()} for place in places], shares
    directions: list[Arrays] = []
    for (key, own), size in zip(whole.items(), sizes, strict=True):
        directions += [{key: unit.reshape(own.shape[1:])} for unit in np.eye(size)]
    return directions, np.concatenate([own.reshape(n, -1) for own in whole.values()], axis=1)


def updates_of(problem: Problem) -> Multilinear:
    """Return the derivatives of the terms by the globals, also by repetitions without rows, which follow the others."""
    return Multilinear(_uses(problem, frozenset()))


def _uses(problem: Problem, shared: Collection[str]) -> Iterator[tuple[Hashable, Any, int]]:
    """Yield where the statistics of the globals are in the terms.

    ``shared`` has the names of shared factors whose repetitions without rows respond to nothing.
    """
    names = {variable.name for variable in problem.order}
    for term in problem.compiled.terms:
        for position, key in enumerate(term.contraction.keys):
            if isinstance(key, StatisticKey) and key.variable in names:
                # groups without rows in a shared factor follow the others, as forecasts
                said = term.contraction if key.variable in shared else term.said_to(position)
                yield key, said, position
