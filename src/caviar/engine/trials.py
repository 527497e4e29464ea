"""Trials: starts compared, and brought near their optimum, on the subsample that they are made from."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from .._errors import ImproperError
from ..language import Variable
from .loop import Result, Settings, ascend
from .passes import Executor, Passes
from .plan import Plan
from .sample import Sample
from .status import Status

__all__ = ["Start", "best_of"]

log = logging.getLogger("caviar")

Start: TypeAlias = tuple[Plan, dict[Variable, Any]]
"""Global factors, and the plan whose reference points they are measured from."""

_ROUNDS = (6, 8, 16)
"""Iterations of the rounds of a trial; after each but the last the better half of the starts goes on."""

_FURTHER = Settings(max_iter=0, tol=1e-3, accelerate=True)

_TO_THE_END = Settings(max_iter=200, tol=1e-4, accelerate=True)


def best_of(starts: Sequence[Start], sample: Sample, executor: Executor) -> Start:
    """Return the start that leads to the highest objective within a few passes over the sample.

    Its factors are those after these passes. Where the sample leaves rows out, the best one goes on until it has nearly
    settled, so that passes over all rows begin near an optimum. The rows of the sample weigh as much as all rows do.
    A start that collapses on the sample is left out. Where rows are successive the first start is returned as it is:
    in a sample none are.
    """
    if starts[0][0].chain is not None or (len(starts) == 1 and not sample.is_part):
        return starts[0]
    # a sample is too small to be worth a device
    passes = Passes(sample, getattr(executor, "host", executor))
    reached = _winner(starts, passes)
    if sample.is_part:
        found = _fitted(_TO_THE_END, reached, passes)
        reached = reached if found is None else _where(found)
    return reached


def _winner(starts: Sequence[Start], passes: Passes) -> Start:
    """Return the start that is left where after each of several rounds the better half goes on."""
    remaining = list(starts)
    for n_iter in _ROUNDS:
        if len(remaining) == 1:
            break
        ends = [_fitted(replace(_FURTHER, max_iter=n_iter), start, passes) for start in remaining]
        # those that end alike keep their order, whatever rounding makes of it
        ranked = sorted((end for end in ends if end is not None), key=lambda end: -float(f"{end.elbo:.9g}"))
        if not ranked:
            break
        remaining = [_where(end) for end in ranked[: (len(ranked) + 1) // 2]]
    return remaining[0]


def _where(result: Result) -> Start:
    return result.plan, dict(result.q)


def _fitted(settings: Settings, start: tuple[Plan, Mapping[Variable, Any]], passes: Passes) -> Result | None:
    """Return where the ascent from a start ends; None if that is no fit."""
    try:
        result = ascend(settings, *start, passes)
    except ImproperError as error:
        log.info("start left out: %s", error)
        return None
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result if result.status in (Status.CONVERGED, Status.MAX_ITER) else None
