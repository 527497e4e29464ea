"""Rows of a chain's sample, in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...._typing import AnyArray
from ....lazy.block_map import map_runs
from ....lazy.rows import in_memory
from ...local.chains.chain import ChainFactor, begins_of
from ...rows.subsample import Sample, read_blocks
from ...rows.tasks import RowSource

_MOST_ROWS = 10_000
_RUNS = 10
"""Runs of successive rows, spread over all, where there are more."""

_UNIT = 8_192
"""Rows of which a cluster looks at a multiple."""


def in_order(source: RowSource, chains: Sequence[ChainFactor]) -> Sample:
    """Return all rows as they come, or as many as a sample may have in a few runs of them.

    A run begins with a sequence, if one begins in it: the rest of one may be impossible by itself, as where a chain
    leads from left to right. Its last sequence may be cut, which is a sequence like any other. Rows that count nothing,
    behind the last observation of their sequence, are left out.
    """
    counted = np.concatenate([own + first for first, own in map_runs(_counted, source, source.n_rows, _UNIT)])
    n_rows, is_part = len(counted), len(counted) > _MOST_ROWS
    length = _MOST_ROWS // _RUNS if is_part else n_rows
    starts = np.linspace(0, n_rows - length, _RUNS if is_part else 1).astype(int).tolist()
    runs = [counted[start : start + length] for start in starts]
    bounds = [(int(run[0]), int(run[-1]) + 1) for run in runs]
    columns, weights = read_blocks(source, bounds)
    found, first = [], 0
    for run, (begin, end) in zip(runs, bounds, strict=True):
        own = {name: rows[first : first + end - begin] for name, rows in columns.items()}
        among = begins_of(chains, own, end - begin)[run - begin]
        found.append(run[int(np.argmax(among)) if begin != bounds[0][0] else 0 :] - begin + first)
        first += end - begin
    places = np.concatenate(found)
    chosen = {name: rows[places] for name, rows in columns.items()}
    return Sample(chosen, weights[places], is_part, is_in_order=True)


def _counted(source: RowSource, n_rows: int) -> AnyArray:
    """Return the places of the rows of a run that count."""
    weights = in_memory(source.weights(0, n_rows))
    return np.arange(n_rows) if weights is None else np.flatnonzero(weights)
