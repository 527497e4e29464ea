"""Reports as one page of HTML that can be read, sorted and looked at without a network."""

from __future__ import annotations

from .fit import versions
from .gather import gather
from .page import page_of, write

__all__ = ["gather", "page_of", "versions", "write"]
