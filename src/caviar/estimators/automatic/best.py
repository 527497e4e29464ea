"""The best of several searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..._typing import Array
from ...engine.ascent.driver import Progress
from ...engine.ascent.status import Status
from ...posterior.posterior import Posterior
from ..mixtures.mixture import among
from .move import Move
from .pace import Pace, watched
from .problem import Problem
from .search import Found, search


def best_search(
    problem: Problem,
    start: Array | None,
    generator: np.random.Generator,
    n_searches: int,
    verbose: bool | int | Callable[[Progress], None] | None,
) -> tuple[Posterior, list[Move]]:
    """Return where the best of several searches ended, and the moves that it tried.

    Parameters
    ----------
    problem
        Rows, and their mixture for any number of components.
    start
        Responsibilities that each begins with, (N, K); None for one component.
    generator
        Of the draws.
    n_searches
        How many.
    verbose
        Whether to print a line for each move; or what is told of the progress; None for a line where somebody looks.
    """
    pace = Pace(n_searches)
    with watched(verbose, pace) as (tell, progress):
        problem = replace(problem, progress=progress)
        ends: list[Found] = []
        for own in generator.spawn(n_searches):
            if ends:
                pace.begin()
            ends.append(search(problem, start, own, tell, pace))
            if ends[-1].is_interrupted:
                break
    found = max(ends, key=lambda end: end.posterior.elbo)
    if ends[-1].is_interrupted:
        # also where the best so far had converged
        found.posterior.status = Status.INTERRUPTED
    return among(found.posterior, [end.posterior for end in ends]), list(found.moves)
