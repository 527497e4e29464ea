"""The components of a mixture: a table of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tables import component_table
from ..section import Section


class Components(Section):
    """The table of components, with the controls that filter it."""

    name, link, template, scripts = "components", "Components", "components.html", ("components.js",)

    def gather(self, subject: Any) -> dict[str, Any]:
        estimator, judged, told = subject.estimator, subject.judged, subject.told
        counts = None if judged is None else np.bincount(judged.labels, minlength=len(estimator.weights_))
        entries = [
            {
                "k": row.label,
                "weight": [row.weight.value, row.weight.low, row.weight.high],
                "rows": None if counts is None else int(counts[row.label]),
                "mean": [[row.mean[j].value, row.mean[j].low, row.mean[j].high] for j in told],
                "sd": [row.standard_deviation[j] for j in told],
            }
            for row in component_table(estimator)
        ]
        return {"components": entries, "table_columns": [subject.names[j] for j in told]}
