"""Guesses of the states of chains: along time, and from neighbours.

Rows of a sequence that follow each other are of one state. States with one mean that differ in width look alike in any
single row near that mean; the rows around it show how far values go. States with the same emissions differ in what
comes before and after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ...._typing import AnyArray, Array
from ....language import MultivariateNormal, Normal, Variable
from ..clustering.partitions import alike, in_units, partition
from ..components.differences import differs_in_steps
from ..components.gates import Gate
from .basis import Basis, Guess
from .partitioned import by_value
from .points import Cloud, leaves_below

_MOST_PLACES = 600
"""Places of a sequence at which it may be cut."""

_WEIGHT_OF_TIME = 1.0
"""How far the ends of a sequence are from each other, in units of the spread of all columns together."""

_REACH = 2
"""Rows on either side of one from which its width is taken."""

_SMALLEST = 1e-4
"""Variance of some rows, in units of that of all, below which it counts as that."""

_FEW_COLUMNS = 6
"""Columns of which all pairs are looked at."""

_MANY_STATES = 4
"""States of which three may be alike: two steps away from one of them a row may be of another."""


def by_neighbours(basis: Basis) -> Iterator[Guess]:
    """Yield labels of a chain's states by the rows before and after each, and by widths where states choose them."""
    for gate in basis.gates:
        if gate.chain is None or gate.size == 1:
            continue
        found: list[AnyArray] = []
        for cloud in basis.clouds(gate)[:1]:
            for labels in neighbouring(basis, gate, cloud):
                if not any(alike(labels, other, cloud.weights) for other in found):
                    found.append(labels)
                    yield {gate.variable: labels}


def neighbouring(basis: Basis, gate: Gate, cloud: Cloud) -> Iterator[AnyArray]:
    """Yield labels of a chain's states, in as many clusters as there are states, however alike they are."""
    points, weights = cloud.points, cloud.weights

    def clusters(points: Array, weights: Array) -> Iterator[AnyArray]:
        yield partition(points, weights, gate.size, basis.rng)

    if _chooses_widths(basis, gate):
        yield from by_value(gate, Cloud(_widths(basis, gate, cloud), weights), clusters)
    for reach in (1, 2) if gate.size >= _MANY_STATES else (1,):
        yield from by_value(gate, Cloud(_beside(basis, gate, points, reach), weights), clusters)


def views(basis: Basis, gate: Gate, cloud: Cloud) -> Iterator[Array]:
    """Yield what may distinguish states: points, with their neighbours, and with the spread of values around them."""
    yield cloud.points
    yield _beside(basis, gate, cloud.points, 1)
    if _chooses_widths(basis, gate):
        yield np.concatenate([cloud.points, _widths(basis, gate, cloud)], axis=1)


def _widths(basis: Basis, gate: Gate, cloud: Cloud) -> Array:
    """Return the logarithm of the variance around each point, in units of its spread."""
    near = _directions(cloud.points)[_places(basis, gate, _REACH)]
    widths = np.log(near.var(axis=0) + _SMALLEST * near.var(axis=(0, 1)) + np.finfo(float).tiny)
    return in_units(widths, cloud.weights)


def _beside(basis: Basis, gate: Gate, points: Array, reach: int) -> Array:
    """Return each point with its neighbours up to ``reach`` rows away, side by side, (n, (2 reach + 1) d)."""
    return np.concatenate(list(points[_places(basis, gate, reach)]), axis=1)


def _directions(points: Array) -> Array:
    """Return columns, and where they are few the sums and differences of any two, whose widths show correlations."""
    size = points.shape[1]
    if not 1 < size <= _FEW_COLUMNS:
        return points
    one, other = np.triu_indices(size, 1)
    first, second = points[:, one], points[:, other]
    return np.concatenate([points, first + second, first - second], axis=1)


def _chooses_widths(basis: Basis, gate: Gate) -> bool:
    """Whether the states choose widths: precisions of Normals, by themselves or with means."""
    return any(
        isinstance(leaf, Normal | MultivariateNormal) and _is_width_chosen(leaf, gate)
        for leaf in leaves_below(basis.problem, gate.variable)
    )


def _is_width_chosen(leaf: Variable, gate: Gate) -> bool:
    return any(
        slot.chosen_by(gate.variable) is not None
        and "precision" in (slot.name.split(".")[0], *slot.role.statistics)
        for slot in leaf.slots.values()
    )


def _places(basis: Basis, gate: Gate, reach: int) -> AnyArray:
    """Return the places of the neighbours of each row, up to ``reach`` rows away, (2 reach + 1, n).

    At the ends of a sequence its first and last row are in the place of those that there are not.
    """
    assert gate.chain is not None
    n_rows = basis.sample.n_rows
    starts = gate.chain.starts.among(basis.sample.columns, n_rows)
    starts[0] = True
    first = np.flatnonzero(starts)
    number = np.cumsum(starts) - 1
    last = np.append(first[1:], n_rows) - 1
    steps = np.arange(-reach, reach + 1)[:, None]
    return np.clip(np.arange(n_rows) + steps, first[number], last[number])


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
