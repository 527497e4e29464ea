"""Guesses along time: rows of a sequence that follow each other are of one state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ...._typing import AnyArray, Array
from ..clustering.partitions import in_units, partition
from ..components.differences import differs_in_steps
from .basis import Basis, Guess

_MOST_PLACES = 600
"""Places of a sequence at which it may be cut."""

_WEIGHT_OF_TIME = 1.0
"""How far the ends of a sequence are from each other, in units of the spread of all columns together."""


def in_time(basis: Basis) -> Iterator[Guess]:
    """Yield labels of states that are passed in some order: parts of each sequence, and clusters in time."""
    for gate in basis.gates:
        if not (gate.chain is not None and differs_in_steps(basis.problem, gate)):
            continue
        starts = gate.chain.starts.among(basis.sample.columns, basis.sample.n_rows)
        starts[0] = True
        edges = np.append(np.flatnonzero(starts), basis.sample.n_rows)
        lengths = np.diff(edges)
        place = (np.arange(basis.sample.n_rows) - np.repeat(edges[:-1], lengths)) / np.repeat(
            lengths, lengths
        )
        yield {gate.variable: np.minimum((gate.size * place).astype(np.int64), gate.size - 1)}
        weights = basis.weights(gate)
        for cloud in basis.clouds(gate)[:1]:
            parts = [_segments(cloud.points[a:b], gate.size) for a, b in pairwise(edges)]
            yield {gate.variable: np.concatenate(parts)}
            time = in_units(place[:, None], weights) * np.sqrt(cloud.points.shape[1])
            points = np.column_stack([cloud.points, _WEIGHT_OF_TIME * time])
            yield {gate.variable: partition(points, weights, gate.size, basis.rng)}


def _segments(points: Array, n_segments: int) -> AnyArray:
    """Return the number of the segment of each point: of all ways to cut them, the one that leaves least squares.

    Notes
    -----
    O(m^2 K) for m places to cut at, which are evenly spread where there are many points. Source: Fisher, "On grouping
    for maximum homogeneity" (JASA, 1958): the best K segments of some points end with the best K - 1 of fewer.
    """
    edges = np.unique(np.linspace(0, len(points), min(len(points), _MOST_PLACES) + 1).astype(np.int64))
    sums = np.vstack([np.zeros(points.shape[1]), np.cumsum(points, axis=0)])[edges]
    lengths = edges[None, :] - edges[:, None]
    explained = np.zeros(lengths.shape)
    for column in sums.T:
        explained += np.square(column[None, :] - column[:, None])
    # of no points, or of those before their first one, nothing is explained
    explained = np.where(lengths > 0, explained / np.maximum(lengths, 1), -np.inf)
    best = explained[0]
    befores = []
    for _ in range(min(n_segments, len(edges) - 1) - 1):
        total = best[:, None] + explained
        befores.append(total.argmax(axis=0))
        best = total.max(axis=0)
    cuts = [len(edges) - 1]
    for before in reversed(befores):
        cuts.append(int(before[cuts[-1]]))
    return np.repeat(np.arange(len(cuts)), np.diff(edges[[0, *reversed(cuts)]]))
