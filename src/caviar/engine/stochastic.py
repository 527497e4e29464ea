"""The stochastic schedule: natural-gradient steps, each from a small batch of the rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._errors import ImproperError
from .._typing import Statistics
from ..language import Variable
from .collapse import has_collapsed
from .loop import Progress, Result, Settings, result_of
from .objective import Objective
from .passes import Passes
from .plan import Plan
from .sample import Sample
from .schedules import Stochastic
from .state import Factors, begin, ready, statistics_of, updated_globals
from .status import Status
from .work import Chunk

__all__ = ["wander"]

log = logging.getLogger("caviar")

_BLOCKS_A_CHUNK = 4
"""Blocks of a batch that one thread sums."""


@dataclass(frozen=True)
class _Place:
    """Where the globals stand: their factors, and the natural parameters that these were made of."""

    plan: Plan
    q: Factors
    natural: dict[Variable, Statistics]


def wander(
    settings: Settings,
    schedule: Stochastic,
    plan: Plan,
    q: Factors,
    passes: Passes,
    sample: Sample,
    rng: np.random.Generator,
) -> Result:
    """Return where natural-gradient steps lead from these global factors; their objective is that of a last full pass.

    The first natural parameters are those of an update from the subsample, which stands for all rows.
    """
    passes.forget()
    # a step is as exact as the last pass
    passes.refine()
    passes.memoize(0)
    executor = getattr(passes.executor, "host", passes.executor)
    settled = Passes(sample, executor) if plan.chain is None else passes
    start = updated_globals(begin(plan, q, settled))
    place = _Place(start.plan, start.q, dict(start.natural))
    trace, change, step = [start.elbo], np.inf, 0
    per_row = passes.source.total_weight
    status = Status.MAX_ITER
    try:
        while len(trace) <= settings.max_iter:
            batches = _batches(place.plan, passes, schedule, rng)
            weights = np.array([passes.weight(chunks) for chunks in batches])
            estimates = np.zeros(len(batches))
            for number, chunks in enumerate(batches):
                step += 1
                # a batch of fewer rows than the others says less
                rate = schedule.rate(step) * min(1.0, weights[number] / weights.mean())
                place, estimates[number] = _step(place, passes, chunks, rate)
            estimate = float(estimates @ weights / per_row)
            change = (estimate - trace[-1]) / per_row
            trace.append(estimate)
            if settings.callback is not None:
                told = (settings.restart, settings.n_restarts, len(trace) - 1, settings.max_iter)
                settings.callback(Progress(*told, trace[-1], change))
            if abs(change) < settings.tol:
                status = Status.CONVERGED
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except ImproperError as error:
        log.info("collapsed: %s", error)
        status = Status.COLLAPSED
    state = begin(place.plan, place.q, passes)
    if has_collapsed(state.plan, state.q, state.arrays):
        status = Status.COLLAPSED
    return result_of(state, [*trace, state.elbo], status)


def _batches(plan: Plan, passes: Passes, schedule: Stochastic, rng: np.random.Generator) -> list[list[Chunk]]:
    """Return the chunks of each batch of a pass over all rows.

    Blocks come in random order; where a source reads many rows together, its groups of rows do, and the blocks in them.
    """
    blocks = passes.blocks(plan, schedule.batch_rows)
    size = max(stop - start for start, stop in blocks)
    together = max(1, passes.source.rows_together // size)
    groups = [blocks[start : start + together] for start in range(0, len(blocks), together)]
    order = [groups[i][j] for i in rng.permutation(len(groups)) for j in rng.permutation(len(groups[i]))]
    length = max(1, round(schedule.batch_rows / size))
    batches = [order[start : start + length] for start in range(0, len(order), length)]
    return [
        [Chunk(number, tuple(piece)) for number, piece in enumerate(_pieces(own))]
        for own in batches
        if passes.weight([Chunk(0, tuple(own))]) > 0
    ]


def _pieces(blocks: Sequence[tuple[int, int]]) -> list[Sequence[tuple[int, int]]]:
    return [blocks[start : start + _BLOCKS_A_CHUNK] for start in range(0, len(blocks), _BLOCKS_A_CHUNK)]


def _step(place: _Place, passes: Passes, chunks: list[Chunk], rate: float) -> tuple[_Place, float]:
    """Return where a step from one batch leads, and what the batch says of the objective before it."""
    plan, q, natural = place.plan, place.q, place.natural
    plan, q, arrays, coefficients = ready(plan, q, statistics_of(plan, q))
    if plan is not place.plan:
        # other reference points: points, which have no natural parameters of their own, take those of this batch whole
        natural = {v: factor.natural for v, factor in q.items() if hasattr(factor, "natural")}
    summary = passes.summarize_share(plan, coefficients, chunks)
    arrays.update(summary.parts)
    estimate = Objective(plan).set_all(q, arrays, summary)
    q, natural = dict(q), dict(natural)
    for variable in plan.order:
        hat, _ = plan.update_with_natural(variable, arrays)
        before = natural.get(variable, hat)
        natural[variable] = tuple((1 - rate) * a + rate * b for a, b in zip(before, hat, strict=True))
        q[variable] = plan.factor(variable, natural[variable])
        arrays.update(plan.statistics(variable, q[variable]))
    return _Place(plan, q, natural), estimate
