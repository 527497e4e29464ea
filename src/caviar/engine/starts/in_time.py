"""Guesses along time: rows of a sequence that follow each other are of one state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..chain import ChainFactor
from ..clusters import in_units, partition
from .basis import Basis, Guess
from .steps import differs_in_steps

__all__ = ["in_time"]

_WEIGHTS_OF_TIME = (0.5, 1.0, 2.0)
"""How far the ends of a sequence are from each other, in units of the spread of all columns together."""


def in_time(basis: Basis) -> Iterator[Guess]:
    """Yield labels of states that are passed in some order: equal parts of each sequence, and clusters in time."""
    for gate in basis.gates:
        if not (isinstance(gate.factor, ChainFactor) and differs_in_steps(basis.plan, gate)):
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
            time = in_units(place[:, None], weights) * np.sqrt(cloud.points.shape[1])
            for weight in _WEIGHTS_OF_TIME:
                points = np.column_stack([cloud.points, weight * time])
                yield {gate.variable: partition(points, weights, gate.size, basis.rng)}
