"""Kinds of rows: what rows such as documents do in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..._typing import Array
from ...language import Variable
from ..ascent.problem import Factors, Problem
from ..local.statistics import LocalState, Rows
from ..rows.row_map import RowMap
from ..rows.subsample import Sample


class KindOfRows:
    """What rows of some kind do in another way; here rows that the compiler derives, for which nothing differs.

    A method that returns None leaves the answer to what is derived from the terms.
    """

    has_own_start = False
    """Whether fits begin at :meth:`own_start` instead of guesses."""

    def own_start(
        self, problem: Problem, sample: Sample, row_map: RowMap, rng: np.random.Generator, most: int
    ) -> tuple[Problem, dict[Variable, Any]] | None:
        """Return global factors to begin with, from a sample of the rows and chance.

        Parameters
        ----------
        most
            Passes over the rows that the fit makes at most, beside which the start must not be dear.
        """
        return None

    def given_locals(
        self, problem: Problem, values: Mapping[Variable, Any], fixed: Mapping[Variable, Any]
    ) -> Callable[[Rows], LocalState] | None:
        """Return what gives the local statistics of a block from values of local variables that a user gives.

        Parameters
        ----------
        values
            Of the local variables.
        fixed
            Factors of the globals that are given beside.
        """
        return None

    def for_each_datum(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return local factors of the rows, by name, as those of what the user's data have one for each."""
        return dict(found)

    def densities(self, factors: Mapping[str, Any], local: Callable[[], Mapping[str, Any]]) -> Array | None:
        """Return the log densities of what the user's data have one for each.

        Parameters
        ----------
        factors
            Of the globals, by name.
        local
            Returns those of the local variables.
        """
        return None

    def objective(
        self, problem: Problem, q: Factors, given: Mapping[str, Any], row_map: RowMap
    ) -> float | None:
        """Return the objective of global factors and some local ones, by name; the others are at their optimum."""
        return None


def kind_of(problem: Problem) -> KindOfRows:
    """Return the kind of a problem's rows."""
    return problem.kind
