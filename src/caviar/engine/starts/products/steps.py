"""Steps: scores of the rows as the states of a chain of vectors, whose steps tell how wide they are."""

from __future__ import annotations

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Constant, LinearGaussianChain
from ...ascent.problem import Problem
from .low_rank import LowRank

_LEAST_NOISE = 1e-4
"""Share of the variance of scores that the step before leaves open, at least: states may be followed nearly exactly."""


def along_steps(found: LowRank, rows: AnyArray, n_rows: int) -> LowRank:
    """Return the scores of all steps: where nothing was seen, those between the steps beside it."""
    if not len(rows) or len(rows) == n_rows:
        return found
    scores = [np.interp(np.arange(n_rows), rows, own) for own in found.scores.T]
    return LowRank(np.stack(scores, axis=1), found.loadings)


def width_of_steps(problem: Problem, chain: LinearGaussianChain, scores: Array) -> float | None:
    """Return the unit of scores in which their steps vary as the noise of the chain does; None where that is learnt."""
    noise = chain.slots["noise_precision"]
    if not isinstance(noise.node, Constant) or noise.index is not None or len(scores) < 2:
        return None
    precision = problem.bound.values_of(noise.node)
    is_matrix = noise.role.rank == 2
    variance = np.linalg.inv(precision).diagonal(axis1=-2, axis2=-1) if is_matrix else 1 / precision
    before, after = scores[:-1], scores[1:]
    left = after - before @ np.linalg.lstsq(before, after, rcond=None)[0]
    open_ = max(float(np.square(left).mean()), _LEAST_NOISE * float(np.square(scores).mean()))
    return float((variance.mean() / open_) ** 0.5) if open_ > 0 else None
