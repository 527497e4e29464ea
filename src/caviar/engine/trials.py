"""Trials: starts compared, and brought near their optimum, on the subsample that they are made from."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
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

_SHORT = Settings(max_iter=15, tol=1e-3, accelerate=True)
_LONG = Settings(max_iter=30, tol=1e-3, accelerate=True)
"""Of a trial: short where its passes cost as much as those of the fit itself."""

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
    passes = Passes(sample, executor)
    best: Result | None = None
    for start in starts if len(starts) > 1 else ():
        found = _fitted(_LONG if sample.is_part else _SHORT, start, passes)
        if found is not None and (best is None or found.elbo > best.elbo):
            best = found
    reached = starts[0] if best is None else (best.plan, dict(best.q))
    if sample.is_part:
        found = _fitted(_TO_THE_END, reached, passes)
        reached = reached if found is None else (found.plan, dict(found.q))
    return reached


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
