"""A model with data, and a start that leads to a good end: the values that made the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import caviar as cv

__all__ = ["Case", "Problem", "cases_of"]

TOLERANCE = 0.01
"""Nats a row that a default fit may end below the one from the values that made the data."""


@dataclass(frozen=True)
class Problem:
    """What is fitted, and where from."""

    model: cv.Model
    data: Mapping[str, Any]
    init: Mapping[str, Any]
    rows: int


@dataclass(frozen=True)
class Case:
    """A problem by name, made of its own generator."""

    name: str
    make: Callable[[np.random.Generator], Problem]

    def problem(self) -> Problem:
        """Return the problem; always the same one."""
        return self.make(np.random.default_rng(sum(map(ord, self.name))))

    def shortfalls(self, n_seeds: int) -> list[float]:
        """Return by how many nats a row the default fit of each seed ends below the one from the values."""
        problem = self.problem()
        good = problem.model.fit(problem.data, init=problem.init, seed=0).elbo
        ends = [problem.model.fit(problem.data, seed=seed).elbo for seed in range(n_seeds)]
        return [(good - end) / problem.rows for end in ends]


def cases_of(**makers: Callable[[np.random.Generator], Problem]) -> list[Case]:
    """Return cases by their names, words joined by underscores."""
    return [Case(name.replace("_", " "), make) for name, make in makers.items()]
