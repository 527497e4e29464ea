"""Trials: starts compared, and brought near their optimum, on the subsample that they are made from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from .._errors import ImproperError
from ..language import Variable
from .loop import Result, Settings, ascend, first_moment
from .moment import Moment
from .passes import Passes
from .plan import Plan
from .sample import Sample
from .status import Status

__all__ = ["Start", "best_of"]

log = logging.getLogger("caviar")

Start: TypeAlias = tuple[Plan, dict[Variable, Any]]
"""Global factors, and the plan whose reference points they are measured from."""

_MOST = 8
"""Starts that are left after that at the most."""

_ROUNDS = (6, 8, 16)
"""Iterations of the rounds of a trial; after each but the last the better half of the starts goes on."""

_CLOSER = 0.2
"""What each round leaves of the nats a row by which a start may be behind the best: all come closer to their ends."""

_SETTLED_BEHIND = 0.01
"""Nats a row by which a start that has settled may be behind the best: further rounds would bring it no nearer."""

_FURTHER = Settings(max_iter=0, tol=1e-3, accelerate=True)

_TO_THE_END = Settings(max_iter=200, tol=1e-4, accelerate=True)


def best_of(
    starts: Sequence[Callable[[], Start]], sample: Sample, passes: Passes, behind: float = np.inf
) -> Start:
    """Return the start that leads to the highest objective within a few passes over the sample.

    Its factors are those after these passes. Where the sample leaves rows out, the best one goes on until it has nearly
    settled, so that passes over all rows begin near an optimum. The rows of the sample weigh as much as all rows do.
    A start that collapses on the sample is left out.

    Parameters
    ----------
    starts
        What returns a start, one for each.
    passes
        Passes over the sample: it is too small to be worth a device.
    behind
        Nats a row by which a start may be behind the best before the first iteration.
    """
    if len(starts) == 1 and not sample.is_part:
        return starts[0]()
    reached = _winner(_possible(starts), passes, behind)
    if sample.is_part and reached[0].factors:
        found = _fitted(_TO_THE_END, reached, passes)
        reached = reached if found is None else _where(found)
    return reached


def _possible(starts: Sequence[Callable[[], Start]]) -> list[Start]:
    """Return the starts whose first updates stay inside their families; raise what the first one does if none do."""
    found: list[Start] = []
    errors: list[ImproperError] = []
    for start in starts:
        try:
            found.append(start())
        except ImproperError as error:
            log.info("start left out: %s", error)
            errors.append(error)
    if not found:
        raise errors[0]
    return found


def _winner(starts: Sequence[Start], passes: Passes, behind: float) -> Start:
    """Return the start that is left where after each of several rounds the better half goes on."""
    remaining = _near_the_best(starts, passes, behind)
    begun: Sequence[Moment | None] = [moment for _, moment in remaining]
    left = [start for start, _ in remaining]
    per_row = max(passes.source.total_weight, 1.0)
    for n_iter in _ROUNDS:
        if len(left) == 1:
            break
        settings = replace(_FURTHER, max_iter=n_iter)
        ends = [_fitted(settings, start, passes, moment) for start, moment in zip(left, begun, strict=True)]
        # those that end alike keep their order, whatever rounding makes of it
        ranked = sorted((end for end in ends if end is not None), key=lambda end: -_digits(end.elbo))
        if not ranked:
            break
        behind *= _CLOSER
        best = ranked[: (len(ranked) + 1) // 2]
        left = [_where(end) for end in best if ranked[0].elbo - end.elbo <= _margin(end, behind) * per_row]
        begun = [None] * len(left)
    return left[0]


def _near_the_best(
    starts: Sequence[Start], passes: Passes, behind: float
) -> list[tuple[Start, Moment | None]]:
    """Return the starts, best first, but those far behind, and where each is before the first iteration."""
    found = []
    for start in starts:
        try:
            moment = first_moment(_FURTHER, *start, passes)
            elbo = _digits(moment.state.elbo)
        except ImproperError as error:
            log.info("start left out: %s", error)
            continue
        # a point in the place of a distribution has no objective yet
        found.append((elbo if np.isfinite(elbo) else np.inf, (start, moment)))
    found.sort(key=lambda one: -one[0])
    finite = [elbo for elbo, _ in found if np.isfinite(elbo)]
    least = max(finite, default=0.0) - behind * max(passes.source.total_weight, 1.0)
    return [begun for elbo, begun in found if elbo >= least][:_MOST] or [(starts[0], None)]


def _margin(end: Result, behind: float) -> float:
    return min(behind, _SETTLED_BEHIND) if end.status is Status.CONVERGED else behind


def _digits(elbo: float) -> float:
    return float(f"{elbo:.9g}")


def _where(result: Result) -> Start:
    return result.plan, dict(result.q)


def _fitted(
    settings: Settings,
    start: tuple[Plan, Mapping[Variable, Any]],
    passes: Passes,
    moment: Moment | None = None,
) -> Result | None:
    """Return where the ascent from a start, or its moment before the first iteration, ends; None if that is no fit."""
    try:
        result = ascend(settings, *start, passes, moment)
    except ImproperError as error:
        log.info("start left out: %s", error)
        return None
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result if result.status in (Status.CONVERGED, Status.MAX_ITER) else None
