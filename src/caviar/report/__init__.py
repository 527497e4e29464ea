"""Reports of fitted models: pages of HTML, tables, and plots (with the extra ``plot``, loaded when first used)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..estimators.mixtures.components import Component, Estimate, column_names
from .html.page import gather, page_of, write, write_and_gather
from .html.provenance import versions
from .tables import component_table

if TYPE_CHECKING:
    from .pictures import draw, save_picture

__all__ = [
    "Component",
    "Estimate",
    "column_names",
    "component_table",
    "draw",
    "gather",
    "page_of",
    "save_picture",
    "versions",
    "write",
    "write_and_gather",
]


def __getattr__(name: str) -> object:
    """Load a function that needs Matplotlib when it is first asked for."""
    if name in {"draw", "save_picture"}:
        return getattr(import_module(".pictures", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
