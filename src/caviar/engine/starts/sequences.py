"""Rows of a chain's sample: in their order, so that a start sees which follows which."""

from __future__ import annotations

import numpy as np

from ..._lazy import in_memory
from ..._typing import AnyArray
from ..chain import Starts
from ..sample import Sample
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
    starts = np.linspace(0, n_rows - length, _RUNS if is_part else 1).astype(int).tolist()
    runs = [counted[start : start + length] for start in starts]
    blocks = [_rows_at(source, run) for run in runs]
    first = [
        int(np.argmax(starts_of.among(block, length))) if at else 0
        for at, block in zip(starts, blocks, strict=True)
    ]
    columns = {
        name: np.concatenate([np.asarray(block[name])[at:] for at, block in zip(first, blocks, strict=True)])
        for name in blocks[0]
    }
    row_weights = np.concatenate([weights[run[at:]] for at, run in zip(first, runs, strict=True)])
    return Sample(columns, row_weights, is_part)


def _rows_at(source: RowSource, places: AnyArray) -> dict[str, AnyArray]:
    """Return the rows of every column at ascending places."""
    start, stop = int(places[0]), int(places[-1]) + 1
    block = source.read(start, stop)
    if len(places) == stop - start:
        return dict(block)
    return {name: values[places - start] for name, values in block.items()}
