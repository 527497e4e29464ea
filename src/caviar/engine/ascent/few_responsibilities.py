"""A problem whose rows have few responsibilities each, and the same problem with all of them again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..rows.e_step import IndependentRows
from ..rows.truncated.truncated_rows import TruncatedRows
from .problem import CompiledRows, CompileRows, Problem

FEW = 16
"""Mean number of components of a row where nobody says how many."""

VERY_MANY = 200
"""Components from which on rows have few responsibilities where nobody says whether they do."""


def with_few(problem: Problem, responsibilities: int) -> Problem:
    """Return a problem whose rows have few responsibilities."""
    return problem.compiled_by(lambda every: _FewOf(every, responsibilities))


def with_every(problem: Problem) -> Problem:
    """Return a problem whose rows have all responsibilities."""
    return problem.compiled_by(lambda few: few.every if isinstance(few, _FewOf) else few)


def has_few(problem: Problem) -> bool:
    """Whether the rows of a problem have few responsibilities."""
    return isinstance(problem.rows, TruncatedRows)


@dataclass(frozen=True)
class _FewOf:
    """Compiles rows, and lets each have few responsibilities."""

    every: CompileRows
    responsibilities: int

    def __call__(self, *model: Any) -> CompiledRows:
        """Return the compiled rows of a model."""
        own = self.every(*model)
        assert isinstance(own.model, IndependentRows)
        return replace(own, model=TruncatedRows.of(own.model, self.responsibilities))
