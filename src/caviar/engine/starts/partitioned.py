"""Guesses by clustering: each gate's points in as many clusters as it has categories, and in fewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..._typing import AnyArray
from ...language import Variable
from ..clusters import partition, partitions
from .basis import Basis, Guess
from .gates import Gate
from .points import Cloud

__all__ = ["in_clusters", "in_fewer_clusters"]

_FEW_POINTS = 20
"""Points for each category below which many numbers of clusters are tried; above, halves of halves."""

_STEP = 0.7
"""From one number of clusters to the next, where many are tried."""


def in_clusters(basis: Basis) -> Iterator[Guess]:
    """Yield labels by clustering for all gates that have points."""
    yield from _together(basis, _several)


def in_fewer_clusters(basis: Basis) -> Iterator[Guess]:
    """Yield labels by clustering that leave categories empty."""
    yield from _together(basis, _fewer)


def _together(
    basis: Basis, cluster: Callable[[Basis, Gate, Sequence[Cloud]], list[AnyArray]]
) -> Iterator[Guess]:
    """Yield labels of all gates that have some: as many guesses as the gate with most, the others repeat theirs."""
    found: dict[Variable, list[AnyArray]] = {}
    for gate in basis.gates:
        labels = cluster(basis, gate, basis.clouds(gate)) if gate.size > 1 else []
        if labels:
            shape = gate.shape(basis.plan, basis.sample.n_rows)
            found[gate.variable] = [own.reshape(shape) for own in labels]
    for number in range(max(map(len, found.values()), default=0)):
        yield {variable: several[number % len(several)] for variable, several in found.items()}


def _several(basis: Basis, gate: Gate, several: Sequence[Cloud]) -> list[AnyArray]:
    found: list[AnyArray] = []
    for number, cloud in enumerate(several):
        many = basis.sample.is_part and not number and gate.factor is not None and not gate.variable.summed
        found += _by_value(
            gate,
            cloud,
            lambda points, weights, many=many: partitions(points, weights, gate.size, basis.rng, many=many),
        )
    return found


def _fewer(basis: Basis, gate: Gate, several: Sequence[Cloud]) -> list[AnyArray]:
    return [
        labels
        for cloud in several[:1]
        for n_clusters in _numbers(gate.size, len(cloud.points))
        for labels in _by_value(
            gate, cloud, lambda points, weights, n=n_clusters: [partition(points, weights, n, basis.rng)]
        )
    ]


def _numbers(size: int, n_points: int) -> list[int]:
    """Return the numbers of clusters, fewer than there are categories, largest first."""
    step = _STEP if n_points < _FEW_POINTS * size else 0.5
    largest = min(size - 1, max(1, n_points // 2))
    numbers = [largest if step == _STEP else size // 2]
    while numbers[-1] > 1:
        numbers.append(max(1, int(step * numbers[-1])))
    return numbers


def _by_value(
    gate: Gate, cloud: Cloud, cluster: Callable[[AnyArray, AnyArray], list[AnyArray]]
) -> list[AnyArray]:
    """Return labels of points; those of a chain are clustered in an order that their own does not change."""
    if not gate.variable.summed:
        return cluster(cloud.points, cloud.weights)
    order = np.lexsort(cloud.points.T)
    found = []
    for labels in cluster(cloud.points[order], cloud.weights[order]):
        back = np.empty_like(labels)
        back[order] = labels
        found.append(back)
    return found
