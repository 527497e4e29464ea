"""Guesses from neighbours: states of a chain that a single row does not distinguish.

States with one mean that differ in width look alike in any single row near that mean; the rows around it show how far
values go. States with the same emissions differ in what comes before and after them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...._typing import AnyArray, Array
from ....language import MultivariateNormal, Normal, Variable
from ..clustering.partitions import alike, in_units, partition
from ..components.gates import Gate
from .basis import Basis, Guess
from .partitioned import by_value
from .points import Cloud, leaves_below

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
