"""Guesses by clustering: each gate's points in as many clusters as it has categories, and in fewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...._typing import AnyArray, Array
from ....numerics.sums.by_label import sums_by_label
from ..clustering.kmeans import kmeans
from ..clustering.partitions import alike, further_kmeans, in_original_units, merged, partition, partitions
from ..clustering.regrouping import are_plain
from ..components.gates import Gate
from .basis import Basis, Guess
from .points import Cloud

_SEEDS = 4
"""Further seeds of k-means in models other than ordinary mixtures, and where there are few points."""

_DRAWS = 12
"""Draws of seeds alone, of few points: a small cluster that no k-means finds has one of them now and then."""

_FEW_POINTS = 500
"""Points that are few."""

_ROWS_OF_A_CLUSTER = 20
"""Points for each category below which many numbers of clusters are tried; above, halves of halves."""

_EACH = 7
"""Up to this number, each number of clusters is tried there."""

_STEP = 1.5
"""From one larger number of clusters to the next."""


def in_clusters(basis: Basis) -> Iterator[Guess]:
    """Yield labels by clustering for all gates that have points."""
    yield from _together(basis, _several)


def in_fewer_clusters(basis: Basis) -> Iterator[Guess]:
    """Yield labels by clustering that leave categories empty: of an ordinary mixture only under a posterior.

    With points in the place of all globals an empty component is a likelihood given away.
    """
    if basis.is_plain and basis.problem.point.issuperset(basis.problem.order):
        return
    yield from _together(basis, _fewer)


def are_clear(basis: Basis, guess: Guess) -> bool:
    """Whether the clusters of an ordinary mixture are so plain that all starts would end where theirs does.

    Answers and vectors that are missing in part have no distances that could tell, and known labels may cut a cluster.
    """
    if not basis.is_plain or basis.is_of_answers or basis.problem.bound.gathered("entries"):
        return False
    gates = [gate for gate in basis.gates if gate.size > 1]
    clouds = {gate: basis.clouds(gate)[0] for gate in gates}
    return bool(gates) and all(
        gate.variable in guess
        and not gate.has_known_labels
        and are_plain(clouds[gate].points, clouds[gate].weights, guess[gate.variable].ravel(), gate.size)
        for gate in gates
    )


def _together(
    basis: Basis, cluster: Callable[[Basis, Gate, Sequence[Cloud]], Iterator[AnyArray]]
) -> Iterator[Guess]:
    """Yield labels of all gates that have some: as many guesses as the gate with most, the others repeat theirs.

    No more is clustered for the first guess of an ordinary mixture than it needs: it may be enough.
    """
    shapes = {gate.variable: gate.shape(basis.problem, basis.sample.n_rows) for gate in basis.gates}
    several = {
        gate.variable: cluster(basis, gate, basis.clouds(gate)) for gate in basis.gates if gate.size > 1
    }
    if not basis.is_plain:
        several = {variable: iter(list(labels)) for variable, labels in several.items()}
    first = {variable: own for variable, labels in several.items() if (own := next(labels, None)) is not None}
    if first:
        yield {variable: own.reshape(shapes[variable]) for variable, own in first.items()}
    found = {variable: [own, *several[variable]] for variable, own in first.items()}
    for number in range(1, max(map(len, found.values()), default=0)):
        yield {variable: own[number % len(own)].reshape(shapes[variable]) for variable, own in found.items()}


def _several(basis: Basis, gate: Gate, several: Sequence[Cloud]) -> Iterator[AnyArray]:
    """Yield labels of each set of points; of more seeds where the model is not an ordinary mixture."""
    found: list[AnyArray] = []
    for number, cloud in enumerate(several):
        many = basis.sample.is_part and not number and gate.factor is not None and not gate.variable.summed

        def cluster(points: Array, weights: Array, many: bool = many) -> Iterator[AnyArray]:
            yield from partitions(points, weights, gate.size, basis.rng, many=many)
            if not basis.is_plain:
                yield from _again(points, weights, gate.size, basis.rng)

        for labels in by_value(gate, cloud, cluster):
            if basis.is_plain or not any(alike(labels, other, cloud.weights) for other in found):
                found.append(labels)
                yield labels
        if not number:
            further = _further(basis, gate, cloud, found)
            found += further
            yield from further


def _again(points: Array, weights: Array, n_clusters: int, rng: np.random.Generator) -> list[AnyArray]:
    """Return labels of k-means from other seeds, of these seeds themselves, and of small clusters of one column."""
    found = [partition(points, weights, n_clusters, rng) for _ in range(_SEEDS)]
    if len(points) > n_clusters:
        n_draws = _SEEDS if len(points) > _FEW_POINTS else _DRAWS
        found += [kmeans(points, weights, n_clusters, rng, max_iter=0) for _ in range(n_draws)]
    if points.shape[1] == 1:
        labels = merged(points, weights, n_clusters, rng, is_white=True)
        if labels is not None:
            found.append(labels)
    return found


def _further(basis: Basis, gate: Gate, cloud: Cloud, found: Sequence[AnyArray]) -> list[AnyArray]:
    """Return labels of more runs of k-means: a likelihood has more local optima than an ELBO, so more compete."""
    if gate.factor is None or gate.variable.summed or not basis.problem.point.issuperset(basis.problem.order):
        return []
    original = in_original_units(basis.problem, gate.factor, basis.sample, cloud.points)
    several = [cloud.points] if original is None else [original, cloud.points]
    return further_kmeans(found, several, cloud.weights, gate.size, basis.rng)


def _fewer(basis: Basis, gate: Gate, several: Sequence[Cloud]) -> Iterator[AnyArray]:
    """Yield labels of the first set of points in fewer clusters than there are categories."""
    for cloud in several[:1]:
        is_open = bool(gate.variable.summed) and not basis.differs(gate)
        for n_clusters in _numbers(gate.size, len(cloud.points), is_open=is_open):

            def cluster(points: Array, weights: Array, n_clusters: int = n_clusters) -> Iterator[AnyArray]:
                yield _tightest(points, weights, n_clusters, basis.rng)

            yield from by_value(gate, cloud, cluster)


def _tightest(points: Array, weights: Array, n_clusters: int, rng: np.random.Generator) -> AnyArray:
    """Return the labels of k-means, of few points the tightest from several seeds."""
    if n_clusters == 1 or len(points) > _FEW_POINTS:
        return partition(points, weights, n_clusters, rng)
    several = [partition(points, weights, n_clusters, rng) for _ in range(_SEEDS)]
    return min(several, key=lambda labels: _squares(points, weights, labels))


def _squares(points: Array, weights: Array, labels: AnyArray) -> float:
    """Return the sum of squares that is left inside clusters."""
    counts = np.maximum(np.bincount(labels, weights), np.finfo(float).tiny)
    sums = sums_by_label((points * weights[:, None]).T, labels, len(counts))
    return float(weights @ np.square(points).sum(axis=1) - (np.square(sums) / counts).sum())


def _numbers(size: int, n_points: int, *, is_open: bool) -> list[int]:
    """Return the numbers of clusters, fewer than there are categories, largest first.

    Many of a chain whose states are alike: no clusters of it are merged later, as those of an ordinary mixture are.
    """
    if n_points >= _ROWS_OF_A_CLUSTER * size and not is_open:
        numbers = [size >> halvings for halvings in range(1, size.bit_length())]
    else:
        numbers, number = list(range(1, _EACH)), float(_EACH)
        while number < size:
            numbers.append(int(number))
            number *= _STEP
    most = min(size - 1, max(1, n_points // 2))
    return sorted({number for number in numbers if number <= most}, reverse=True)


def by_value(
    gate: Gate, cloud: Cloud, cluster: Callable[[Array, Array], Iterator[AnyArray]]
) -> Iterator[AnyArray]:
    """Yield labels of points; those of a chain are clustered in an order that their own does not change."""
    if not gate.variable.summed:
        yield from cluster(cloud.points, cloud.weights)
        return
    order = np.lexsort(cloud.points.T)
    for labels in cluster(cloud.points[order], cloud.weights[order]):
        back = np.empty_like(labels)
        back[order] = labels
        yield back
