"""The page of a mixture of Gaussians."""

from __future__ import annotations

from typing import Any

from .. import sections as shared
from ..layout import Layout
from . import sections
from .gather import gather

__all__ = ["LAYOUT"]


def _figures(page: dict[str, Any]) -> dict[str, Any]:
    """Return what the scripts draw."""
    return {"plot": page["plot"], "trace": page["fit"]["trace"], "name": page["fit"]["objective"]}


LAYOUT = Layout(
    gather=gather,
    sections=(
        ("trust", "Trust", shared.trust),
        ("components", "Components", sections.components),
        ("plots", "Plots", sections.plots),
        ("rows", "Outliers", sections.rows),
        ("quality", "Data quality", shared.quality),
        ("progress", "Convergence", shared.progress),
        ("reproduce", "Reproduce", shared.reproduce),
    ),
    scripts=(
        "elements.js",
        "tables.js",
        "filters.js",
        "axes.js",
        "components.js",
        "pairs.js",
        "density.js",
        "trace.js",
    ),
    figures=_figures,
)
