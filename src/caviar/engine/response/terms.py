"""How the terms of a model change with expected statistics: their messages to the globals and to the rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..._typing import AnyArray, Array
from ..ascent.problem import Problem
from ..design.keys import StatisticKey
from ..local.statistics import Arrays
from .multilinear import Multilinear


class Terms(NamedTuple):
    """Derivatives of the terms of a problem, without their values.

    Attributes
    ----------
    of_updates
        What is said to the globals.
    of_coefficients
        What is said to the rows.
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
    return Terms(Multilinear(_uses(problem)), of_coefficients, frozenset(met), most <= 2)


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


def _uses(problem: Problem) -> Iterator[tuple[Hashable, Any, int]]:
    """Yield where the statistics of the globals are in the terms: what is said to each."""
    names = {variable.name for variable in problem.order}
    shared = {variable.name for variable in problem.order if variable.members}
    for term in problem.compiled.terms:
        for position, key in enumerate(term.contraction.keys):
            if isinstance(key, StatisticKey) and key.variable in names:
                # groups without rows in a shared factor follow the others, as forecasts; they respond to nothing
                said = term.contraction if key.variable in shared else term.said_to(position)
                yield key, said, position
