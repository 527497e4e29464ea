"""Rows of a chain's sample: in their order, so that a start sees which follows which."""

from __future__ import annotations

import numpy as np

from ..._lazy import in_memory
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
    leads from left to right. Its last sequence may be cut, which is a sequence like any other. Rows that count nothing,
    behind the last observation of their sequence, are left out.
    """
    weights = in_memory(source.weights(0, source.n_rows))
    weights = np.ones(source.n_rows) if weights is None else np.asarray(weights)
    counted = np.flatnonzero(weights)
    n_rows, is_part = len(counted), len(counted) > _MOST_ROWS
    length = _MOST_ROWS // _RUNS if is_part else n_rows
    found = []
    for start in np.linspace(0, n_rows - length, _RUNS if is_part else 1).astype(int).tolist():
        run = counted[start : start + length]
        begin, end = int(run[0]), int(run[-1]) + 1
        among = starts_of.among(source.read(begin, end), end - begin)[run - begin]
        found.append(run[int(np.argmax(among)) if start else 0 :])
    places = np.concatenate(found)
    return Sample(gather(source, places), weights[places], is_part, is_in_order=True)
