"""The section with checks of a model against its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._errors import CaviarError
from ....language import Categorical, Data, Variable
from ....posterior.diagnostics.replicates import Bars
from ....posterior.prediction.residuals import means_of_neighbours
from ..numbers import as_numbers
from ..section import Section
from .chart import HEIGHT, WIDTH, bars_chart, means_chart
from .replicates import replicates_of

_MISSED = 0.05
"""Share of rows that may be in other bars than expected before the check says that the model misses something."""
_MOST_GROUPS, _FEWEST_IN_A_GROUP = 15, 10


class Checks(Section):
    """Data sets of the model beside the data, and residuals."""

    name, link, template = "checks", "Checks", "checks.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        return {"checks": subject.checks}


def checks_of(posterior: Any, data: Any, names: Sequence[str] | None = None) -> dict[str, Any] | None:
    """Return charts and sentences of the checks, of columns of these names; None without data."""
    if data is None:
        return None
    found = replicates_of(posterior, data, names)
    bars = [] if isinstance(found, str) else found
    return {
        "size": [WIDTH, HEIGHT],
        "replicates": [
            {
                **bars_chart(own),
                "sentence": _sentence(own.bars),
                "level": "note" if _is_missed(own.bars) else "good",
            }
            for own in bars
        ],
        "why_not": found if isinstance(found, str) else None,
        "residuals": _residuals(posterior, data),
    }


def _is_missed(bars: Bars) -> bool:
    """Whether more rows are in other bars than in any data set of the model, and more than a few."""
    return bars.share_outside > max(_MISSED, bars.by_chance)


def _sentence(bars: Bars) -> str:
    if _is_missed(bars):
        return (
            f"The model misses the shape of this column: {bars.share_outside:.0%} of the rows are in other bars than "
            f"it expects."
        )
    return "The model reproduces this column."


def _residuals(posterior: Any, data: Any) -> list[dict[str, Any]]:
    """Return charts of the residuals of numbers and counts that known columns predict."""
    model = posterior.model
    if not any(isinstance(node, Data) for node in model.nodes):
        return []
    charts = []
    for leaf in model.leaves:
        observed = as_numbers(data.get(leaf.name))
        if observed is None or observed.ndim != 1 or isinstance(leaf, Categorical):
            continue
        try:
            own = posterior.residuals(data, leaf.name)
            mean, scaled = own.prediction.mean, own.standardised
        except CaviarError:
            # its prediction has no closed form
            continue
        if np.shape(mean) == np.shape(scaled) == observed.shape:
            charts += _chart(leaf, np.asarray(mean), np.asarray(scaled))
    return charts


def _chart(leaf: Variable, mean: Any, scaled: Any) -> list[dict[str, Any]]:
    shown = np.isfinite(mean) & np.isfinite(scaled)
    mean, scaled = mean[shown], scaled[shown]
    groups = means_of_neighbours(mean, scaled, min(_MOST_GROUPS, len(scaled) // _FEWEST_IN_A_GROUP))
    if len(groups) < 2:
        return []
    off = sum(abs(value) > 1.96 / np.sqrt(count) for _, value, count in groups)
    far = int((np.abs(scaled) > 3).sum())
    told = (
        f"{off} of {len(groups)} groups are off by more than chance: the predictor misses something."
        if off > max(1, 0.2 * len(groups))
        else "Groups of rows are off by no more than chance."
    )
    rows = "row is" if far == 1 else "rows are"
    return [
        {
            **means_chart(leaf.name, groups),
            "sentence": f"{told} {far:,} {rows} more than 3 standard deviations off.",
        }
    ]
