"""Rows of a chain's sample: in their order, so that a start sees which follows which."""

from __future__ import annotations

import numpy as np

from ..sample import Sample, gather
from ..work import RowSource

__all__ = ["in_order"]

_MOST_ROWS = 10_000
_RUNS = 10
"""Runs of successive rows, spread over all, where there are more."""


def in_order(source: RowSource) -> Sample:
    """Return all rows as they come, or as many as a sample may have in a few runs of them."""
    n_rows, is_part = source.n_rows, source.n_rows > _MOST_ROWS
    length = _MOST_ROWS // _RUNS if is_part else n_rows
    starts = np.linspace(0, n_rows - length, _RUNS if is_part else 1).astype(np.int64)
    columns = gather(source, (starts[:, None] + np.arange(length)).ravel())
    return Sample(columns, np.ones(length * len(starts)), is_part)
