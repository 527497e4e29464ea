"""Mixtures of few rows, integrated over the scale that their components share.

Where components overlap, their means, their weights and the noise depend on each other far beyond a standard deviation:
with more noise the components are nearer. Given the noise the rest is closer to Normal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from ...engine.ascent.problem import Problem
from ...engine.evaluation.given_by_passes import operations_of_a_pass
from .fits_at_values import fits_at_values
from .integrated import IntegratedPosterior
from .separating import meeting
from .shapes import LOGITS
from .shown import Integrated

OVERLAP = 0.5
"""Smallest eigenvalue of linear response up to which components overlap so much that it matters: in mixtures of 30 to
80 rows with more, 90% intervals to second order contain 87% to 90% of the exact posterior, in others 70% to 89%."""

_APART = 0.003
"""Smallest eigenvalue of a fit at a value: near the value at which two components become one, linear response and its
determinant grow without end. Values beyond are of another mode."""

_PASSES, _OPERATIONS = 1_000, 1e9
"""Passes of all fits, about, and their operations that are few for any fit: less than a second."""


def scale_shared_by_components(problem: Problem, factors: Any) -> str | None:
    """Return the name of the positive number that all components share; None unless there is exactly one."""
    if problem.chains or not any(own.labels for own in problem.factors):
        return None
    alone = {name for pair in meeting(problem) if len(pair) == 1 for name in pair}
    found = [
        own.name
        for own in problem.order
        if own.name in alone
        and not own.members
        and len(own.family.transforms) == 1
        and own.family.transforms[0].constrains
        and np.size(factors[own.name].mean) == 1
    ]
    return found[0] if len(found) == 1 else None


def is_cheap(problem: Problem, n_rows: int) -> bool:
    """Return whether fits at all values of a scale cost very little."""
    return _PASSES * operations_of_a_pass(problem, n_rows) <= _OPERATIONS


def integrated_over_scale(posterior: Any, pending: Any, name: str) -> Integrated:
    """Return the figures of a mixture integrated over the scale that its components share."""
    arguments = {"sample_weight": pending.sample_weight, "executor": None}
    found = fits_at_values(posterior, [name], pending.data, arguments, _APART)
    others = [own for own in posterior if own != name]
    sds, shifts, shapes = {}, {}, {}
    for own in others:
        parts = posterior[own].entry_marginals((0.05, 0.95))
        means = [np.ravel(found.mean(own + part.part)) for part in parts]
        shifts[own] = np.concatenate(means) - np.concatenate([np.ravel(part.mean) for part in parts])
        sds[own] = np.concatenate([np.ravel(found.sd(own + part.part)) for part in parts])
        if len(parts) == 1:
            shapes[own] = _shape(found, own)
    own = found.transformed(lambda value: value, name)
    shifts[name] = np.ravel(own.mean - posterior[name].mean)
    sds[name] = np.ravel(own.sd)
    return Integrated(sds, (), shifts, (), (), shapes, {name: own.values}, {name: own.weights})


def _shape(found: IntegratedPosterior, name: str) -> Any:
    """Return how far quantiles at ``LOGITS`` are from the means of a variable, (G, L)."""
    own = found.transformed(lambda value: value, name)
    quantiles = np.reshape(own.quantile(expit(LOGITS)), (len(LOGITS), -1))
    return (quantiles - np.ravel(found.mean(name))).T
