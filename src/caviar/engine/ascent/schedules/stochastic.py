"""The stochastic schedule: natural-gradient steps, each from a small batch of the rows."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from ...._errors import ImproperError
from ....language import Variable
from ...binding.coordinates import refuse_far_priors
from ...rows.row_map import RowMap
from ...rows.subsample import Sample
from ...rows.tasks import Chunk
from ..collapse import has_collapsed
from ..driver import Result, Settings, record, result_of, tell
from ..elbo import Objective
from ..moment import Walk
from ..problem import Factors, Problem, statistics_of
from ..state import begin, ready, updated_globals
from ..status import Status
from .schedule import Stochastic

__all__ = ["wander", "wander_on"]


log = logging.getLogger("caviar")

_BLOCKS_A_CHUNK = 4
"""Blocks of a batch that one thread sums."""


def wander(
    settings: Settings,
    schedule: Stochastic,
    problem: Problem,
    q: Factors,
    rows: RowMap,
    sample: Sample,
    rng: np.random.Generator,
    given: Collection[Variable] = (),
) -> Result:
    """Return where natural-gradient steps lead from these global factors; their objective is that of a last full pass.

    The first natural parameters are those of an update from the subsample, which is taken for all rows. Distributions
    that a user gave stay as they are until the first step.
    """
    few = RowMap(problem.rows, sample, rows.executor.host)
    began = begin(problem, q, few if problem.chain is None else rows)
    start = updated_globals(began)
    kept = {v: factor for v, factor in began.q.items() if v in given and hasattr(factor, "natural")}
    walk = Walk(
        start.problem,
        rows.at(start.problem.rows),
        {**start.q, **kept},
        {**start.natural, **{v: factor.natural for v, factor in kept.items()}},
        [began.elbo if kept else start.elbo],
        n_iter=0,
        step=0,
        change=np.inf,
        random_state=rng.bit_generator.state,
    )
    return wander_on(settings, schedule, walk, rng)


def wander_on(settings: Settings, schedule: Stochastic, walk: Walk, rng: np.random.Generator) -> Result:
    """Return where natural-gradient steps lead from where an earlier walk stood."""
    status = None
    rng.bit_generator.state = walk.random_state
    trace = walk.trace
    try:
        record(settings, walk)
        while walk.status is None and walk.n_iter < settings.max_iter:
            problem, batches = walk.problem, _batches(walk.rows, schedule, rng)
            weights = np.array([walk.rows.weight(chunks) for chunks in batches])
            for number in range(len(walk.estimates), len(batches)):
                # steps in proportion to what batches weigh: so all rows count alike in the end
                rate = min(1.0, schedule.rate(walk.step + 1) * weights[number] / weights.mean())
                walk = _step(walk, batches[number], rate)
                if walk.problem is problem:
                    # from other reference points the rows may fall into other batches
                    record(settings, walk)
            estimate = float(np.array(walk.estimates) @ weights / walk.rows.source.total_weight)
            trace.append(estimate)
            walk = _after_pass(settings, walk, trace, rng)
            record(settings, walk)
            if tell(settings, walk.n_iter, estimate, walk.change):
                walk = replace(walk, status=walk.status or Status.STOPPED)
                record(settings, walk)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except ImproperError as error:
        if not any(walk.problem.bound.is_flat(variable) for variable in walk.problem.order):
            refuse_far_priors(walk.problem.bound, walk.problem.coordinates)
            raise
        log.info("collapsed: %s", error)
        status = Status.COLLAPSED
    state = begin(walk.problem, walk.q, walk.rows)
    if has_collapsed(state.problem, state.q, state.arrays):
        status = Status.COLLAPSED
    return result_of(state, [*walk.trace, state.elbo], status or walk.status or Status.MAX_ITER, walk.step)


def _after_pass(settings: Settings, walk: Walk, trace: list[float], rng: np.random.Generator) -> Walk:
    """Return the walk at the beginning of the next pass; its status tells whether there needs to be one."""
    change = (trace[-1] - trace[-2]) / walk.rows.source.total_weight
    return replace(
        walk,
        objectives=trace,
        n_iter=len(trace) - 1,
        change=change,
        random_state=rng.bit_generator.state,
        estimates=(),
        status=Status.CONVERGED if abs(change) < settings.tol else None,
    )


def _batches(rows: RowMap, schedule: Stochastic, rng: np.random.Generator) -> list[list[Chunk]]:
    """Return the chunks of each batch of a pass over all rows.

    Blocks come in random order; where a source reads many rows together, its groups of rows do, and the blocks in them.
    """
    blocks = rows.blocks(schedule.batch_rows)
    size = max(stop - start for start, stop in blocks)
    together = max(1, rows.source.rows_together // size)
    groups = [blocks[start : start + together] for start in range(0, len(blocks), together)]
    order = [groups[i][j] for i in rng.permutation(len(groups)) for j in rng.permutation(len(groups[i]))]
    length = max(1, round(schedule.batch_rows / size))
    batches = [order[start : start + length] for start in range(0, len(order), length)]
    return [
        [Chunk(number, tuple(piece)) for number, piece in enumerate(_pieces(own))]
        for own in batches
        if rows.weight([Chunk(0, tuple(own))]) > 0
    ]


def _pieces(blocks: Sequence[tuple[int, int]]) -> list[Sequence[tuple[int, int]]]:
    return [blocks[start : start + _BLOCKS_A_CHUNK] for start in range(0, len(blocks), _BLOCKS_A_CHUNK)]


def _step(walk: Walk, chunks: list[Chunk], rate: float) -> Walk:
    """Return where a step from one batch leads, with what the batch says of the objective before it."""
    natural = walk.natural
    problem, q, arrays, coefficients = ready(walk.problem, walk.q, statistics_of(walk.problem, walk.q))
    if problem is not walk.problem:
        # other reference points: points, which have no natural parameters of their own, take those of this batch whole
        natural = {v: factor.natural for v, factor in q.items() if hasattr(factor, "natural")}
    rows = walk.rows.at(problem.rows)
    summary = rows.summarize_share(coefficients, chunks)
    arrays.update(summary.parts)
    estimate = Objective(problem).set_all(q, arrays, summary)
    q, natural = dict(q), dict(natural)
    for variable in problem.order:
        hat, _ = problem.update_with_natural(variable, arrays)
        before = natural.get(variable, hat)
        natural[variable] = tuple((1 - rate) * a + rate * b for a, b in zip(before, hat, strict=True))
        q[variable] = problem.factor(variable, natural[variable])
        arrays.update(problem.statistics(variable, q[variable]))
    estimates = (*walk.estimates, estimate)
    step = walk.step + 1
    return replace(walk, problem=problem, rows=rows, q=q, natural=natural, step=step, estimates=estimates)
