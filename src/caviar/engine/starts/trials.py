"""Trials: starts of models that multiply what several labels choose, which all go on for a while before they race.

The labels of a product wait for each other. Neither the objective before the first iteration nor a few iterations later
tell where such a start ends: of two dozen the best one was in the middle after twelve iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..._errors import ImproperError
from ..ascent.driver import Settings
from ..ascent.schedule import Beginning
from ..ascent.schedules.batch import Batch, BatchState
from .factors.prior import Start
from .guesses.basis import Basis
from .products.scales import balanced
from .products.statement import multiplies_labels
from .race import Race

_FEW = 8
"""Starts that are few enough to race as they are."""

_KEPT = 4
"""Starts that are left."""

_MOST_NUMBERS = 200_000
"""Rows times numbers that globals consist of, up to which passes are cheap enough."""

_FOR_A_WHILE = Settings(max_iter=50, tol=1e-5)


def tried(basis: Basis, starts: Sequence[Callable[[], Start]]) -> Sequence[Callable[[], Start]]:
    """Return the best starts after a while; all as they are, of other models, of few starts and of large tables."""
    problem, n_rows = basis.problem, basis.sample.n_rows
    is_dear = n_rows * problem.n_natural > _MOST_NUMBERS
    if is_dear or len(starts) <= _FEW or not multiplies_labels(problem):
        return starts
    race = Race(basis.row_map, basis.sample, float("inf"), basis.passes)
    states = [state for start in starts if (state := _after_a_while(race, start)) is not None]
    best = sorted(states, key=lambda state: -state.elbo)[:_KEPT]
    return [partial(_start_of, state) for state in best] or starts


def _after_a_while(race: Race, start: Callable[[], Start]) -> BatchState | None:
    try:
        return race.run(Batch().init(Beginning(*start(), race.row_map)), _FOR_A_WHILE)
    except ImproperError:
        return None


def _start_of(state: BatchState) -> Start:
    return balanced((state.problem, dict(state.q)))
