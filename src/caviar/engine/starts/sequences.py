"""Rows of a chain's sample: in their order, so that a start sees which follows which."""

from __future__ import annotations

import numpy as np

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
    leads from left to right. Its last sequence may be cut, which is a sequence like any other.
    """
    n_rows, is_part = source.n_rows, source.n_rows > _MOST_ROWS
    length = _MOST_ROWS // _RUNS if is_part else n_rows
    starts = np.linspace(0, n_rows - length, _RUNS if is_part else 1).astype(int).tolist()
    blocks = [source.read(start, start + length) for start in starts]
    weights = [source.weights(start, start + length) for start in starts]
    first = [
        int(np.argmax(starts_of.among(block, length))) if at else 0
        for at, block in zip(starts, blocks, strict=True)
    ]
    columns = {
        name: np.concatenate([np.asarray(block[name])[at:] for at, block in zip(first, blocks, strict=True)])
        for name in blocks[0]
    }
    each = [np.ones(length) if own is None else own for own in weights]
    row_weights = np.concatenate([own[at:] for at, own in zip(first, each, strict=True)])
    return Sample(columns, row_weights, is_part)
