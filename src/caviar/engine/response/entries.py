"""Entries of the values of globals in the standardised coordinates of an operator."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..._typing import Array
from .factors import FactorResponse
from .operator import ResponseOperator
from .solution import Solution

_MOST_AT_ONCE = 512
"""Entries whose variances are found together."""


class Entries:
    """The entries of all globals.

    Parameters
    ----------
    operator
        Whose coordinates they are in.
    """

    def __init__(self, operator: ResponseOperator) -> None:
        self._operator = operator

    @cached_property
    def starts(self) -> dict[str, int]:
        """The first coordinate of each global factor, by name."""
        operator = self._operator
        pairs = zip(operator.factors, operator.coordinates, strict=True)
        return {factor.variable.name: own.start for factor, own in pairs}

    @cached_property
    def places(self) -> dict[str, tuple[FactorResponse, slice]]:
        """For each global variable, its factor and the entries of the factor that belong to it."""
        found: dict[str, tuple[FactorResponse, slice]] = {}
        for own in self._operator.factors:
            found[own.variable.name] = own, slice(None)
            for number, member in enumerate(own.variable.members):
                found[member.name] = own, own.variable.family.place(number)  # type: ignore[attr-defined]
        return found

    def columns(self, name: str) -> Array:
        """Return what each entry of a variable is in standardised coordinates, (r, n)."""
        factor, mine = self.places[name]
        start = self.starts[factor.variable.name]
        found = np.zeros((self._operator.size, factor.n_entries))
        for places, value in zip(factor.value_places, factor.roots.values, strict=True):
            found[start : start + len(value), places] = value
            start += len(value)
        return found[:, mine]

    def within(self, name: str) -> Array:
        """Return the variance of each entry of a variable under its factor, (n,)."""
        factor, mine = self.places[name]
        return factor.variances(mine)

    def variances(self, name: str, solution: Solution) -> Array:
        """Return the variance of each entry of a variable, (n,); infinite along flat directions."""
        columns, found = self.columns(name), self.within(name)
        for start in range(0, len(found), _MOST_AT_ONCE):
            portion = columns[:, start : start + _MOST_AT_ONCE]
            found[start : start + _MOST_AT_ONCE] += (portion * solution.excess(portion)).sum(axis=0)
        return np.where(solution.flat(columns), np.inf, np.maximum(found, 0.0))
