"""Rows of a chain's sample, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...._typing import AnyArray, Array
from ....lazy.block_map import map_runs
from ....lazy.rows import in_memory
from ...local.chains.chain import ChainFactor, begins_of
from ...rows.subsample import Sample, gather, hash_rows, mix
from ...rows.tasks import RowSource

_MOST_ROWS = 10_000
_RUNS = 10
"""Runs of successive rows, spread over all, where there are more."""

_UNIT = 8_192
"""Rows of which a cluster looks at a multiple."""


def in_order(source: RowSource, chains: Sequence[ChainFactor]) -> Sample:
    """Return all rows as they come, or as many as a sample may have in a few runs of them.

    Equal sequences are merged, so that a fit to one of weight 2 begins as a fit to two equal ones does. A run begins
    with a sequence, if one begins in it: the rest of one may be impossible by itself, as where a chain leads from left
    to right. Its last sequence may be cut, which is a sequence like any other. Rows that count nothing, behind the last
    observation of their sequence, are left out.
    """
    rows = _distinct_sequences(source, chains)
    n_rows, is_part = len(rows.places), len(rows.places) > _MOST_ROWS
    length = _MOST_ROWS // _RUNS if is_part else n_rows
    starts = np.linspace(0, n_rows - length, _RUNS if is_part else 1).astype(int).tolist()
    runs = [
        np.arange(
            start + (int(np.argmax(rows.begins[start : start + length])) if start else 0), start + length
        )
        for start in starts
    ]
    chosen = np.concatenate(runs)
    columns = gather(source, rows.places[chosen])
    return Sample(columns, rows.weights[chosen], is_part, is_in_order=True)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of sequences: where they are, whether a sequence begins at each, and their weights, (n,) each."""

    places: AnyArray
    begins: AnyArray
    weights: Array


def _distinct_sequences(source: RowSource, chains: Sequence[ChainFactor]) -> _Rows:
    """Return the rows that count of each sequence, where it comes first, with the weights of those equal to it."""
    found = [own for _, own in map_runs(_Told(tuple(chains)), source, source.n_rows, _UNIT)]
    begins, hashes, weights = (np.concatenate(several) for several in zip(*found, strict=True))
    begins[:1] = True
    (places,) = np.nonzero(weights)
    begins, hashes, weights = begins[places], hashes[places], weights[places]
    (first,) = np.nonzero(begins)
    lengths = np.diff(first, append=len(places))
    if len(np.unique(lengths)) == len(lengths):
        return _Rows(places, begins, weights)
    hashes += mix((np.arange(len(places)) - np.repeat(first, lengths)).astype(np.uint64))
    whole = np.add.reduceat(mix(hashes), first)
    _, number, group = np.unique(whole, return_index=True, return_inverse=True)
    together: Array = np.bincount(group, weights[first]).astype(np.float64)
    is_first = np.zeros(len(first), dtype=bool)
    is_first[number] = True
    kept = np.repeat(is_first, lengths)
    return _Rows(places[kept], begins[kept], np.repeat(together[group], lengths)[kept])


@dataclass(frozen=True, eq=False)
class _Told:
    """Of a run of rows: whether a sequence begins at each, hashes of their values, and their weights."""

    chains: tuple[ChainFactor, ...]

    def __call__(self, source: RowSource, n_rows: int) -> tuple[AnyArray, AnyArray, Array]:
        begins, hashes = np.zeros(n_rows, dtype=bool), np.zeros(n_rows, dtype=np.uint64)
        # where a sequence begins is its first row, of the first one whether or not the column tells it
        told = {chain.starts.column for chain in self.chains}
        left = told if len(told) == 1 else ()
        for start in range(0, n_rows, _UNIT):
            stop = min(start + _UNIT, n_rows)
            columns = source.read(start, stop)
            begins[start:stop] = begins_of(self.chains, columns, stop - start)
            hashes[start:stop] = hash_rows({key: own for key, own in columns.items() if key not in left})
        weights = in_memory(source.weights(0, n_rows))
        return begins, hashes, np.ones(n_rows) if weights is None else np.asarray(weights, dtype=float)
