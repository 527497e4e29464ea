"""Warm-up: the first rounds of a fit with nested plates, in which groups of globals are updated in turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...language import Variable
from ..ascent.driver import Settings, iterate
from ..ascent.problem import Problem
from ..ascent.schedule import Beginning
from ..ascent.schedules.alternating import Alternating
from ..ascent.status import Status
from ..binding.nested import outer_variables
from ..rows.row_map import RowMap
from .factors.prior import prior_start

_ROUNDS = Settings(max_iter=20, tol=0.0)


def settled(
    problem: Problem, q: Mapping[Variable, Any], row_map: RowMap
) -> tuple[Problem, dict[Variable, Any]]:
    """Return global factors after the first rounds; as they are, where no plates are nested."""
    outer = outer_variables(problem.bound.nodes, problem.order)
    others = [variable for variable in problem.order if variable not in outer]
    if not outer or not others:
        return problem, dict(q)
    of_outer, of_others = problem.updating(outer), problem.updating(others)
    rounds = Alternating(of_outer, of_others, lambda kept: {**kept, **prior_start(of_outer, kept)})
    state = iterate(rounds, rounds.init(Beginning(problem, q, row_map)), _ROUNDS)
    if state.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return problem, dict(state.q)
