"""Reports as one page of HTML that can be read, sorted and looked at without a network."""

from __future__ import annotations

from .page import gather, page_of, write, write_and_gather
from .provenance import versions

__all__ = ["gather", "page_of", "versions", "write", "write_and_gather"]
