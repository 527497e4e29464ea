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

from ...engine.factorisation import APART
from ...language import Normal, Plate, Variable
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
    _, row_map = posterior._bound(pending)
    found, n_rows = _effect(posterior, pending), row_map.source.n_rows
    if found is None or pending.sample_weight is not None or n_rows > _MOST_ROWS:
        return None
    if posterior._evaluator.prior is not None:
        return None
    values = posterior._evaluator.named(pending.data).values
    if not isinstance(values, Mapping):
        # rows that are read anew each time
        return None
    outcome, effect, plate = found
    outcome, number = with_effects_apart(outcome, effect, plate, n_rows)
    data = {**values, number.name: np.arange(n_rows)}
    arguments = {**arguments_of(posterior), "uncertainty": "auto"}
    if arguments["factors"] is APART:
        # the effects add up to one factor with the coefficients
        del arguments["factors"]
    fit = type(posterior.model)(outcome).fit(data, **{**TO_A_FIXED_POINT, **arguments})
    told = fit._shown_as("auto")
    return _about(told, fit._factors, posterior._factors) if isinstance(told, Integrated) else None


def doubt_of_effects_of_rows(posterior: Any, pending: Pending) -> str:
    """Return a sentence on figures that are not integrated over the precision of effects of rows; empty without one."""
    found = _effect(posterior, pending)
    if found is None:
        return ""
    _, effect, plate = found
    n_rows = posterior._bound(pending)[1].source.n_rows
    own = f"{effect.name}[Data('row', plates={plate.name})] with Plate('rows', {n_rows})"
    return (
        f"They are in doubt: '{effect.name}' of a row and the hidden number of its link have a factor each, and the "
        f"spread between rows is found too small: in trials 90% intervals contained 0% to 85% of the posterior. State "
        f"the effects on a plate of their own, {own}, and fit with uncertainty='integrated'."
    )


def _effect(posterior: Any, pending: Pending) -> tuple[Variable, Normal, Plate] | None:
    """Return the only outcome of a model, its effect of each row behind a link, and the plate of these; or None."""
    # a bound model may have the nodes of an equal one that came before, under the same names
    bound, plate = posterior._bound(pending)[0].bound, posterior.data_plate
    if plate is None or len(posterior.model.leaves) != 1:
        return None
    (outcome,) = posterior.model.leaves
    # of a covariate that is known in some rows, these tell the spread
    hidden = [variable.name for variable in bound.latent if bound.of(variable).in_part is None]
    effect = effect_of_rows(outcome, plate, hidden)
    return None if effect is None else (outcome, effect, plate)


def _about(found: Integrated, others: Mapping[str, Any], factors: Mapping[str, Any]) -> Integrated:
    """Return figures of the globals of another fit about the means of this one."""
    found = found.only(set(factors))
    shifts = {
        name: shift + means_of(others[name]) - means_of(factors[name]) for name, shift in found.shifts.items()
    }
    return replace(found, shifts=shifts)
