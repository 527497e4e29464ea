"""The effects of a mixed model: common effects, standard deviations and correlations of groups, and the noise."""

from __future__ import annotations

from typing import Any

from ..section import Section

_LEVEL = 0.95


class Effects(Section):
    """Tables of the effects."""

    name, link, template = "effects", "Effects", "effects.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        summary = subject.estimator.summary(level=_LEVEL)
        parts: dict[str, list[dict[str, Any]]] = {}
        for row in summary.rows:
            own = {"name": row.name, "mean": row.mean, "sd": row.sd, "low": row.lower, "high": row.upper}
            parts.setdefault(row.part, []).append(own)
        return {
            "effects": [{"title": part.capitalize(), "rows": rows} for part, rows in parts.items()],
            "effects_units": summary.units,
            "effects_remark": summary.remark,
        }
