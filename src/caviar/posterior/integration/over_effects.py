"""Figures of a model with an effect of each row behind a link, from a fit in which these effects are globals.

An effect of a row and the Polya-Gamma number or utility of its answer have a factor each, given which the spread of the
effects is far too certain. As globals the effects share one factor with the coefficients, and the spread is integrated
over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...language.effects_of_rows import effect_of_rows, with_effects_apart
from ..uncertainty.pending import Pending
from .at_once import means_of
from .fits_at_values import TO_A_FIXED_POINT, arguments_of
from .shown import Integrated

_MOST_ROWS = 300
"""Rows, and so effects in one factor, up to which another fit takes little."""


def integrated_over_effects_of_rows(posterior: Any, pending: Pending) -> Integrated | None:
    """Return figures integrated over the precision of effects of rows; None without one, or if it costs much.

    Weights of rows repeat them with one effect each, which no number of effects is.
    """
    problem, row_map = posterior._bound(pending)
    n_rows, plate = row_map.source.n_rows, problem.bound.data_plate
    if pending.sample_weight is not None or plate is None or n_rows > _MOST_ROWS:
        return None
    if posterior._evaluator.prior is not None or len(posterior.model.leaves) != 1:
        return None
    (outcome,) = posterior.model.leaves
    effect = effect_of_rows(outcome, plate)
    if effect is None or effect.name not in posterior._local:
        return None
    outcome, number = with_effects_apart(outcome, effect, plate, n_rows)
    data = {**posterior._evaluator.named(pending.data).values, number.name: np.arange(n_rows)}
    arguments = {**arguments_of(posterior), "uncertainty": "auto"}
    fit = type(posterior.model)(outcome).fit(data, **{**TO_A_FIXED_POINT, **arguments})
    found = fit._shown_as("auto")
    return _about(found, fit._factors, posterior._factors) if isinstance(found, Integrated) else None


def _about(found: Integrated, others: Mapping[str, Any], factors: Mapping[str, Any]) -> Integrated:
    """Return figures of the globals of another fit about the means of this one."""
    found = found.only(set(factors))
    shifts = {
        name: shift + means_of(others[name]) - means_of(factors[name]) for name, shift in found.shifts.items()
    }
    return replace(found, shifts=shifts)
