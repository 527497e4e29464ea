"""Reports as one page of HTML that can be read, sorted and looked at without a network."""

from __future__ import annotations

from .page import gather, page_of, write
from .versions import versions

__all__ = ["gather", "page_of", "versions", "write"]
