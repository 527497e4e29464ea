r"""Steps: clusters of a chain's rows given to its states, by what the steps between them say.

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
from ....language import MarkovChain
from ...ascent.problem import Plan
from ...ascent.state import statistics_of
from ...local.chain import ChainFactor
from ...rows.subsample import Sample
from ..factors.prior import own_natural, prior_start
from .gates import Gate

__all__ = ["differs_in_steps", "in_steps"]


_FEW_STATES = 6
"""States of which all permutations are tried."""

_RANDOM = 12
"""Random permutations from which exchanges begin where there are more."""

_SMALLEST = 1e-3
"""Known probability below which a step counts as that unlikely: some labels of a partition are wrong."""

_ALIKE = 1e-9


def differs_in_steps(plan: Plan, gate: Gate) -> bool:
    """Whether the states of a chain differ in what is known of their first probabilities and transitions."""
    (initial, _), (transition, _) = _known_rows(plan, gate)
    off = transition[~np.eye(gate.size, dtype=bool)]
    return any(
        np.ptp(values) > _ALIKE * np.abs(values).max()
        for values in (initial, np.diag(transition), off)
        if values.size
    )


def in_steps(
    plan: Plan, sample: Sample, gate: Gate, labels: AnyArray, gain: Array, rng: np.random.Generator
) -> AnyArray:
    """Return the state of each cluster, (K,), that gains most.

    Parameters
    ----------
    labels
        Cluster of each row of the sample, whose rows are in their order.
    gain
        What each cluster (rows) brings each state (columns) besides the steps, shape (K, K).
    """
    assert isinstance(gate.factor, ChainFactor)
    size = gate.size
    starts = gate.factor.starts.among(sample.columns, sample.n_rows)
    starts[0] = True
    within = np.flatnonzero(~starts)
    first: Array = np.bincount(labels[starts], minlength=size).astype(np.float64)
    pairs = np.zeros((size, size))
    np.add.at(pairs, (labels[within - 1], labels[within]), 1.0)
    (initial, is_known), (transition, are_known) = _known_rows(plan, gate)

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


def _known_rows(plan: Plan, gate: Gate) -> tuple[tuple[Array, bool], tuple[Array, bool]]:
    """Return initial (K,) and transition (K, K) probabilities, or concentrations; and whether they are known."""
    assert isinstance(gate.variable, MarkovChain)
    q = prior_start(plan)
    arrays = statistics_of(plan, q)
    found = []
    for name, shape in (("initial", (gate.size,)), ("transition", (gate.size, gate.size))):
        node: Any = gate.variable.slots[name].node
        if node in plan.order and node not in plan.binding.known:
            values = np.broadcast_to(own_natural(plan, node, arrays)[0], shape)
            found.append((values, False) if node not in plan.point else (np.ones(shape), False))
        elif node in plan.order:
            found.append((np.exp(q[node].expected_statistics[0]), True))
        else:
            found.append((np.broadcast_to(plan.binding.values[node], shape), True))
    return found[0], found[1]


def _marginal(rows: Array, is_known: bool, counts: Array) -> float:
    """Return the log probability of counts given known probabilities, or Dirichlet rows integrated out."""
    if is_known:
        return float((counts * np.log(np.maximum(rows, _SMALLEST))).sum())
    return float(
        (gammaln(rows + counts) - gammaln(rows)).sum()
        - (gammaln((rows + counts).sum(axis=-1)) - gammaln(rows.sum(axis=-1))).sum()
    )
