"""The entries of all global variables, with their intervals and those of their priors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...._errors import CaviarError
from ....families import StickBreaking
from ....families._marginals import variable_and_part
from ....posterior.diagnostics.curves import Curves, prior_curves
from ..section import Section
from .figures import LEVEL, Figures
from .standard_deviations import standard_deviations

_MOST_ENTRIES = 300
"""Entries of each variable in the table of all; of more, the largest in size are kept."""
_MOST_PRIORS = 4000
"""Entries of a variable for which the prior is computed."""
_PROBABILITIES = np.array([0.001, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.49])
_ENDS = (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)


class Variables(Section):
    """The table of the entries of all global variables, with the controls that filter it."""

    name, link, template = "variables", "Variables", "variables.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        entries, left_out = [], {}
        for own in [*subject.figures, *standard_deviations(subject.posterior, subject.figures)]:
            places, left = own.places(_MOST_ENTRIES)
            if left:
                left_out[own.shown] = left
            prior = _prior_of(subject.posterior, own, subject.data or {})
            for place in places:
                figures = dict(zip(("mean", "sd", "low", "high"), own.at(place), strict=True))
                entries.append(
                    {
                        "variable": own.shown,
                        "at": own.label(place),
                        **figures,
                        **_beside(prior, place, figures["low"], figures["high"]),
                    }
                )
        return {"entries": entries, "left_out": left_out}


def _prior_of(posterior: Any, own: Figures, data: Mapping[str, Any]) -> Curves | None:
    """Return quantiles of the prior; None where it is improper, unknown, or of too many entries."""
    if own.name.endswith(" as sd") or own.mean.size > _MOST_PRIORS or own.lower is None:
        return None
    # parts of a joint factor go by its name, and the points of bounds by that of an observed variable
    whole, _ = variable_and_part(own.name, posterior)
    if isinstance(posterior[whole], StickBreaking):
        # its intervals come from draws, which take too long for each draw of its parents
        return None
    try:
        return prior_curves(posterior, own.name, own.mean.shape, data, 0, probabilities=_PROBABILITIES)
    except CaviarError:
        # it depends on known columns that were not given
        return None


def _beside(
    prior: Curves | None, place: tuple[int, ...], low: float | None, high: float | None
) -> dict[str, float | None]:
    """Return the ends of the interval of the prior, and how wide that of the posterior is beside it."""
    own = None if prior is None else prior.entry(place)
    if own is None or low is None or high is None:
        return {"prior_low": None, "prior_high": None, "narrower": None}
    first, last = (own.quantile(end) for end in _ENDS)
    return {
        "prior_low": first,
        "prior_high": last,
        "narrower": (high - low) / (last - first) if last > first else None,
    }
