"""Patterns for which something written by hand stands in the place of what the compiler derives: the one place for it.

A test holds each to the derived updates.
"""

from __future__ import annotations

from collections.abc import Sequence

from .binding import Binding
from .block_pass import BlockPass
from .compile import Compiled, compile_terms
from .documents.binding import DocumentBinding
from .documents.compile import compile_documents
from .documents.document_pass import DocumentPass
from .frame import Frame
from .locals import LocalFactor

__all__ = ["compiled_rows"]


def compiled_rows(
    binding: Binding, frame: Frame, factors: Sequence[LocalFactor]
) -> tuple[Compiled, BlockPass | None]:
    """Return the compiled model, and what summarises its rows where that is written by hand."""
    if isinstance(binding, DocumentBinding):
        compiled, part = compile_documents(binding, frame)
        return compiled, DocumentPass(binding, factors, part)
    return compile_terms(binding, frame, factors), None
