"""The section on rows: how clearly they belong to components, and which are unexpected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numbers import in_digits
from ..section import Section
from .judged import RATE, JudgedRows

_MOST_OUTLIERS = 20
_EDGES = (0.0, 0.5, 0.8, 0.95, 0.99)
"""Probabilities of the most probable component, between which rows are counted."""


class Outliers(Section):
    """How clearly rows belong, and which are not expected."""

    name, link, template = "rows", "Outliers", "outliers.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        judged, seen = subject.judged, subject.seen
        if judged is None:
            return {"rows": None, "outliers": []}
        tails = judged.tails[~np.isnan(judged.tails)]
        counts = [int((judged.certainty >= edge).sum()) for edge in _EDGES]
        steps = [first - second for first, second in zip(counts, [*counts[1:], 0], strict=True)]
        rows = {
            "source": subject.source,
            "seen": {"words": seen.words, "label": seen.label},
            "n": len(judged.labels),
            "mean_log_density": in_digits(float(-np.nanmean(judged.scores))),
            "rate": RATE,
            "n_judged": len(tails),
            "n_outliers": int((tails <= RATE).sum()),
            "certainty": [{"from": edge, "rows": rows} for edge, rows in zip(_EDGES, steps, strict=True)],
        }
        return {"rows": rows, "outliers": subject.outliers}


def outliers_of(judged: JudgedRows, subject: Any) -> list[dict[str, Any]]:
    """Return the rows that are least expected, the most extreme first."""
    known = np.flatnonzero(~np.isnan(judged.tails))
    order = known[np.lexsort((-judged.scores[known], judged.tails[known]))][:_MOST_OUTLIERS]
    if not len(order):
        return []
    values = subject.rows_at(order)[:, subject.told]
    return [
        {
            "row": int(row),
            "score": float(judged.scores[row]) if math.isfinite(judged.scores[row]) else None,
            "tail": float(judged.tails[row]),
            "k": int(judged.labels[row]),
            "certainty": float(judged.certainty[row]),
            "values": [in_digits(value) for value in own],
        }
        for row, own in zip(order, values.tolist(), strict=True)
    ]
