r"""Steps: clusters of a chain's rows assigned to its states by the steps between them.

The gain of a permutation of the clusters is :math:`\sum_k g_{k\sigma(k)} + \log p(\text{first states, steps} \mid
\sigma)`, with Dirichlet rows integrated out. The second part is quadratic in the permutation, so it is searched by
exchanges of two, from several permutations: the one that is best without the steps, those by the mean place of the
clusters in their sequences, and random ones.
"""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from ...._typing import AnyArray, Array
from ...ascent.problem import Problem
from ...rows.subsample import Sample
from .differences import known_steps
from .gates import Gate

_FEW_STATES = 6
"""States of which all permutations are tried."""

_RANDOM = 12
"""Random permutations from which exchanges begin where there are more."""

_SMALLEST = 1e-3
"""Known probability below which a step counts as that unlikely: some labels of a partition are wrong."""

_ALIKE = 1e-9


def in_steps(
    problem: Problem, sample: Sample, gate: Gate, labels: AnyArray, gain: Array, rng: np.random.Generator
) -> AnyArray:
    """Return the state of each cluster, (K,), that gains most.

    Parameters
    ----------
    labels
        Cluster of each row of the sample, whose rows are in their order.
    gain
        The gain of each state (columns) from each cluster (rows) without the steps, shape (K, K).
    """
    assert gate.chain is not None
    size = gate.size
    starts = gate.chain.starts.among(sample.columns, sample.n_rows)
    starts[0] = True
    within = np.flatnonzero(~starts)
    first: Array = np.bincount(labels[starts], minlength=size).astype(np.float64)
    pairs = np.zeros((size, size))
    np.add.at(pairs, (labels[within - 1], labels[within]), 1.0)
    (initial, is_known), (transition, are_known) = known_steps(problem, gate)

    def total(cluster: AnyArray) -> float:
        """Return the gain where state j has this cluster."""
        return (
            float(gain[cluster, np.arange(size)].sum())
            + _marginal(initial, is_known, first[cluster])
            + _marginal(transition, are_known, pairs[np.ix_(cluster, cluster)])
        )

    if size <= _FEW_STATES:
        best = max((np.array(order) for order in permutations(range(size))), key=total)
        return np.argsort(best)
    clusters, states = linear_sum_assignment(gain, maximize=True)
    alone = clusters[np.argsort(states)]
    begins = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))
    places = np.bincount(labels, np.arange(len(labels)) - begins, size)
    in_time = np.argsort(places / np.maximum(np.bincount(labels, minlength=size), 1))
    begun = [alone, in_time, in_time[::-1], *(rng.permutation(size) for _ in range(_RANDOM))]
    found = [_exchanged(order, total) for order in begun]
    return np.argsort(max(found, key=total))


def _exchanged(order: AnyArray, total: Any) -> AnyArray:
    """Return a permutation that no exchange of two improves."""
    order, best = order.copy(), total(order)
    improves = True
    while improves:
        improves = False
        for one, other in combinations(range(len(order)), 2):
            order[[one, other]] = order[[other, one]]
            value = total(order)
            if value > best + _ALIKE * abs(best):
                best, improves = value, True
            else:
                order[[one, other]] = order[[other, one]]
    return order


def _marginal(rows: Array, is_known: bool, counts: Array) -> float:
    """Return the log probability of counts given known probabilities, or Dirichlet rows integrated out."""
    if is_known:
        return float((counts * np.log(np.maximum(rows, _SMALLEST))).sum())
    return float(
        (gammaln(rows + counts) - gammaln(rows)).sum()
        - (gammaln((rows + counts).sum(axis=-1)) - gammaln(rows.sum(axis=-1))).sum()
    )
