"""Guesses along time: rows of a sequence that follow each other are of one state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ...._typing import AnyArray, Array
from ...local.chain import ChainFactor
from ..clustering.partitions import in_units, partition
from ..components.differences import differs_in_steps
from .basis import Basis, Guess

_WEIGHT_OF_TIME = 1.0
"""How far the ends of a sequence are from each other, in units of the spread of all columns together."""


def in_time(basis: Basis) -> Iterator[Guess]:
    """Yield labels of states that are passed in some order: parts of each sequence, and clusters in time."""
    for gate in basis.gates:
        if not (isinstance(gate.factor, ChainFactor) and differs_in_steps(basis.problem, gate)):
            continue
        starts = gate.factor.starts.among(basis.sample.columns, basis.sample.n_rows)
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
    """Return the number of the segment of each point: cut one after another where that lowers the squares most.

    Source: Scott and Knott, "A cluster analysis method for grouping means in the analysis of variance" (Biometrics,
    1974): binary segmentation.
    """
    sums = np.vstack([np.zeros(points.shape[1]), np.cumsum(points, axis=0)])
    cuts = [0, len(points)]
    while len(cuts) <= min(n_segments, len(points)):
        best, gain = 0, -np.inf
        for first, last in pairwise(cuts):
            if last - first < 2:
                continue
            inside = np.arange(first + 1, last)
            left, right = sums[inside] - sums[first], sums[last] - sums[inside]
            n_left = (inside - first)[:, None]
            n_right = (last - inside)[:, None]
            whole = np.square(sums[last] - sums[first]).sum() / (last - first)
            gains = (np.square(left) / n_left + np.square(right) / n_right).sum(axis=1) - whole
            if gains.max() > gain:
                best, gain = int(inside[gains.argmax()]), float(gains.max())
        cuts = sorted([*cuts, best])
    return np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
