"""Refusal of fits that ended without a usable result, with the reason."""

from __future__ import annotations

import numpy as np

from .._errors import DataError, ImproperError
from ..engine.ascent.driver import Result
from ..engine.ascent.problem import extreme_parameter
from ..language import Variable


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
