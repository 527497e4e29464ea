"""Coupled: a fit in which globals share Gaussian factors, started with a separate factor for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ....families import Categorical, Dirichlet, ExponentialFamily, MultivariateNormal
from ....language import Variable
from ...rows.row_map import RowMap
from ..problem import Problem
from ..schedule import Around, Beginning
from ..state import FitState

S = TypeVar("S", bound=FitState)

_NARROW = 1e-6
"""Standard deviation of a variable that starts at a point, relative to its size."""


@dataclass(frozen=True)
class Coupled(Around[S]):
    """Runs another schedule on the problem in which the globals of each group share one factor.

    Starts have a separate factor for each variable.

    Attributes
    ----------
    own
        The other schedule.
    """

    def init(self, beginning: Beginning[S]) -> S:
        """Return the state before the first step, without the race of starts, which had other factors."""
        problem, q = coupled_start(beginning.problem, beginning.q)
        given = [own for own in problem.order if {own, *own.members} & set(beginning.given)]
        return self.own.init(replace(beginning, problem=problem, q=q, given=given, raced=None))

    def from_plain(self, document: Mapping[str, Any], problem: Problem, rows: RowMap) -> S:
        """Return the state from these values."""
        return self.own.from_plain(document, problem.together, rows)


def coupled_start(problem: Problem, q: Mapping[Variable, Any]) -> tuple[Problem, dict[Variable, Any]]:
    """Return the problem with shared factors, and a start in it, with variables still independent."""
    together, found = problem.together, dict(q)
    for variable in together.coupled:
        found[variable] = variable.family.independent([_spread(found.pop(own)) for own in variable.members])
    return together, {variable: found[variable] for variable in together.order}


def _spread(factor: Any) -> Any:
    """Return a starting factor as a distribution: a point becomes a narrow one."""
    if isinstance(factor, ExponentialFamily):
        return factor
    if issubclass(factor.family, Categorical):
        return Categorical(factor.expected_statistics[0])
    mean = np.asarray(factor.mean, dtype=np.float64)
    variances = (_NARROW * (1.0 + np.abs(mean))) ** 2
    is_vector = issubclass(factor.family, Dirichlet | MultivariateNormal)
    own = variances[..., None] if is_vector else variances[..., None, None]
    return factor.family.of_spread(mean, own * np.eye(own.shape[-2]))
