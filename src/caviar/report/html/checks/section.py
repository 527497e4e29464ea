"""The section with checks of a model against its data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....language import Variable
from ....posterior.diagnostics.replicates import Bars
from ....posterior.prediction.residuals import Residuals, means_of_neighbours
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


def checks_of(subject: Any) -> dict[str, Any] | None:
    """Return charts and sentences of the checks; None without data."""
    if subject.data is None:
        return None
    found = replicates_of(subject.posterior, subject.data, subject.observed_columns)
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
        "residuals": [
            chart for leaf, own in subject.residuals if own.observed.ndim == 1 for chart in _chart(leaf, own)
        ],
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


def _chart(leaf: Variable, residuals: Residuals) -> list[dict[str, Any]]:
    """Return a chart of the residuals of numbers, counts, or outcomes 0 and 1; none of few."""
    mean, scaled = residuals.prediction.mean, residuals.standardised
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
