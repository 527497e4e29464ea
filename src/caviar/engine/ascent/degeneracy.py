"""Degenerate steps: those that lead to no finite numbers, to a component on (almost) no data, or down."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ..._errors import FallingElboWarning, ImproperError
from ...numerics.records import replaced
from ..binding.coordinates import refuse_far_priors
from .collapse import has_collapsed
from .problem import Problem
from .state import AscentState
from .status import Status

log = logging.getLogger("caviar")

A = TypeVar("A", bound=AscentState)


def checked(state: A, step: Callable[[A], A]) -> A | None:
    """Return the state after a step, with the status that says why no other follows, if none does.

    It is None where the step has collapsed and left nothing to be kept: the state before it is the last one.

    Raises
    ------
    ImproperError
        If an update has left its family under proper priors.

    Warns
    -----
    FallingElboWarning
        If an update lowered the objective.
    """
    try:
        after = step(state)
    except ImproperError as error:
        refused_or_collapsed(state.problem, error)
        return None
    if has_collapsed(after.problem, after.q, after.arrays):
        # at the edge of a family updates may be nonsense: a state that fell is not kept
        kept = np.isfinite(after.elbo) and not after.fell_at
        return replaced(after, status=Status.COLLAPSED) if kept else None
    if after.fell_at:
        refuse_far_priors(state.problem.bound, state.problem.coordinates)
        warnings.warn(
            f"the update of {after.fell_at}. Exact coordinate ascent cannot do that: either widths in the data differ "
            f"by more than double precision holds, or it is a bug; then please report it, with the model and data.",
            FallingElboWarning,
            stacklevel=2,
        )
        return replaced(after, status=Status.FELL)
    return after


def refused_or_collapsed(problem: Problem, error: ImproperError) -> None:
    """Return where a flat prior explains that an update has left its family: the fit has collapsed.

    Raises
    ------
    ImproperError
        If no prior is flat.
    """
    if not problem.flat:
        refuse_far_priors(problem.bound, problem.coordinates)
        raise error
    log.info("collapsed: %s", error)
