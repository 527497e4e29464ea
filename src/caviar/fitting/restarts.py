"""Starts of a fit: where they begin, those of small tables side by side, and refusal of ends that are not usable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._errors import DataError, ImproperError, ParameterError
from ..engine.ascent.driver import Result, Settings
from ..engine.ascent.kinds_of_factor import extreme_parameter
from ..engine.ascent.problem import Problem
from ..engine.ascent.schedule import Beginning, Schedule
from ..engine.ascent.status import Status
from ..engine.assemble import few_looks, several, why_not_grouped
from ..engine.rows.row_map import RowMap
from ..engine.starts.by_restart import chance_start, drawn_start
from ..engine.starts.factors.prior import prior_start
from ..engine.starts.from_data import data_start
from ..engine.starts.from_user import given_start
from ..engine.starts.race import Begun
from ..engine.starts.trials import sample_of_start
from ..language import Variable
from ..numerics.cached import cached_property
from .checkpointing import Keeper


def side_by_side(
    problem: Problem,
    row_map: RowMap,
    init: str | Mapping[str, Any],
    settings: Settings,
    schedule: Schedule[Any],
    keeper: Keeper,
    own_seeds: Sequence[Callable[[], np.random.Generator]],
) -> dict[int, Beginning[Any]]:
    """Return where starts of small tables begin, each with its seed, most at the ends of passes side by side."""
    moves = schedule.batch_moves
    is_one = settings.n_restarts - keeper.ends.n_ended < 2 or not settings.max_iter
    if is_one or moves is None or why_not_grouped(problem):
        return {}
    found: dict[int, Beginning[Any]] = {}
    for number, seed in enumerate(own_seeds):
        try:
            found[number] = beginning(problem, row_map, init, seed, replace(settings, restart=number))
        except ImproperError:
            # it is made again in its turn, which says why
            continue
        except KeyboardInterrupt:
            if not found:
                raise
            first, begun = next(iter(found.items()))
            stopped = replace(schedule.init(begun), status=Status.INTERRUPTED)
            return {first: replace(begun, raced=stopped)}
    # a race has brought others near their ends
    alike = [number for number, own in found.items() if own.problem is problem and own.raced is None]
    starts = [found[number].q for number in alike]
    climb = several(problem, starts, row_map, moves=moves)
    if climb is not None:
        climb.climb(settings)
        ends = {number: climb.reached(place, row_map) for place, number in enumerate(alike)}
        known = {number: end for number, end in ends.items() if end is not None}
        if any(end.status is Status.INTERRUPTED for end in known.values()):
            # the best so far is all that is left
            best = max(known, key=lambda number: known[number].elbo)
            stopped = replace(known[best], status=Status.INTERRUPTED)
            return {keeper.ends.n_ended: replace(found[best], raced=stopped)}
        found |= {n: replace(found[n], raced=end, is_settled=True) for n, end in known.items()}
    return found


class _Once:
    """The generator of a start, made when it is first asked for."""

    def __init__(self, make: Callable[[], np.random.Generator]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> np.random.Generator:
        return self._make()

    def __call__(self) -> np.random.Generator:
        return self._made


def beginning(
    problem: Problem,
    row_map: RowMap,
    init: str | Mapping[str, Any],
    seed: Callable[[], np.random.Generator],
    settings: Settings,
) -> Beginning[Any]:
    """Return where a start begins."""
    rng = _Once(seed)

    def from_data(problem: Problem) -> Begun:
        # the first start is the likeliest to lead far; the others are there to end elsewhere
        sample = partial(sample_of_start, problem, row_map.source)
        among = row_map, rng(), settings.max_iter, few_looks, several
        if settings.restart:
            return chance_start(problem, sample(), *among, settings.restart)
        return data_start(problem, sample, *among)

    if isinstance(init, Mapping):
        begun = given_start(problem, init, row_map, lambda: from_data(problem).start)
    elif isinstance(init, str) and init == "prior":
        begun = Begun((problem, drawn_start(problem, rng()) if settings.restart else prior_start(problem)))
    elif isinstance(init, str) and init == "auto":
        begun = from_data(problem)
    else:
        raise ParameterError(
            f"init is 'auto', 'prior' or a mapping from names to values, or a posterior; got {init!r}"
        )
    problem, q = begun.start
    given = [v for v in problem.order if isinstance(init, Mapping) and v.name in init]
    return Beginning(problem, q, row_map, rng, given, **begun.race)


def usable(best: Result | None) -> Result:
    """Return the best end of the starts unless its objective is impossible or infinite.

    Raises
    ------
    DataError
        If known probabilities of zero leave the data no possibility.
    ImproperError
        If no start led to a finite objective.
    """
    assert best is not None
    if best.impossible:
        raise DataError(_why_impossible(best.impossible))
    if not np.isfinite(best.elbo):
        raise ImproperError(_why_not_finite(best))
    return best


def _why_not_finite(best: Result) -> str:
    """Say why no start led to a finite objective."""
    if any(best.problem.bound.is_flat(variable) for variable in best.problem.order):
        return (
            f"no start led to a finite objective: {best.status.explanation}. There are too few rows for a flat prior; "
            f"give a proper one"
        )
    wrong = [name for name, value in best.by_factor().items() if not np.isfinite(value)]
    nodes = [node for node in best.problem.bound.nodes if isinstance(node, Variable)]
    extremes = [(node.name, extreme_parameter(node, best.problem.bound.values_of)) for node in nodes]
    said = "; ".join(f"'{name}' has a {extreme}" for name, extreme in extremes if extreme)
    because = f" ({said})" if said else ""
    return (
        f"no start led to a finite objective: the terms of {' and '.join(map(repr, wrong))} leave the range of double "
        f"precision{because}. Give priors and data sizes that are nearer to each other and to 1"
    )


def _why_impossible(name: str) -> str:
    return (
        f"under the known probabilities of zero, the fit ended where '{name}' has the probability 0: the "
        f"data are impossible, or factors that depend on each other have together excluded every "
        f"possibility. Make the known probabilities positive"
    )
