"""The page of the posterior of a stated model, and of topics."""

from __future__ import annotations

from typing import Any

from .. import sections as shared
from ..layout import Layout
from . import sections
from .gather import gather

__all__ = ["LAYOUT"]


def _figures(page: dict[str, Any]) -> dict[str, Any]:
    """Return what the scripts draw."""
    rows = page["rows"] or {"chains": [], "clouds": [], "predictions": []}
    return {
        **page["pictures"],
        "chain": rows["chains"][0] if rows["chains"] else None,
        "scatter": [*rows["predictions"], *rows["clouds"]],
        "trace": page["fit"]["trace"],
        "name": page["fit"]["objective"],
    }


LAYOUT = Layout(
    gather=gather,
    sections=(
        ("trust", "Trust", shared.trust),
        ("statement", "Model", sections.statement),
        ("pictures", "Pictures", sections.pictures),
        ("variables", "Variables", sections.variables),
        ("rows", "Data", sections.rows),
        ("quality", "Data quality", shared.quality),
        ("progress", "Convergence", shared.progress),
        ("reproduce", "Reproduce", shared.reproduce),
    ),
    scripts=(
        "elements.js",
        "tables.js",
        "filters.js",
        "axes.js",
        "intervals.js",
        "cells.js",
        "chain.js",
        "scatter.js",
        "trace.js",
    ),
    figures=_figures,
)
