"""Rows of a chain's sample: in their order, so that a start sees which follows which."""

from __future__ import annotations

import numpy as np

from ..chain import Starts
from ..sample import Sample, gather
from ..work import RowSource

__all__ = ["in_order"]

_MOST_ROWS = 10_000
_RUNS = 10
"""Runs of successive rows, spread over all, where there are more."""


def in_order(source: RowSource, starts_of: Starts) -> Sample:
    """Return all rows as they come, or as many as a sample may have in a few runs of them.

    A run begins with a sequence, if one begins in it: the rest of one may be impossible by itself, as where a chain
    leads from left to right. Its last sequence may be cut, which is a sequence like any other.
    """
    n_rows, is_part = source.n_rows, source.n_rows > _MOST_ROWS
    length = _MOST_ROWS // _RUNS if is_part else n_rows
    found, weights = [], []
    for start in np.linspace(0, n_rows - length, _RUNS if is_part else 1).astype(int).tolist():
        among = starts_of.among(source.read(start, start + length), length)
        first = start + int(np.argmax(among)) if start else 0
        own = source.weights(first, start + length)
        found.append(np.arange(first, start + length))
        weights.append(np.ones(start + length - first) if own is None else own)
    return Sample(gather(source, np.concatenate(found)), np.concatenate(weights), is_part)
