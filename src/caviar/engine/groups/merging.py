"""Components that have settled, merged pair by pair where the objective of a group promises to be higher.

K-means finds as many clusters as it is asked for. Where data have fewer, a fit from these keeps a cluster cut in two.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._typing import AnyArray, Array
from .ascent import GroupedState
from .problem import GroupedProblem
from .starts import better, swept

_PAIRS = 3
"""Pairs of components of which a merge is tried at a time."""

_EMPTY = 1e-3
"""Share of all sums up to which a component has no rows."""

_TAKEN = 0.5
"""Share of the groups below which those that may be merged further are taken out of the arrays."""


@np.errstate(all="ignore")
def merged(problem: GroupedProblem, sums: Array) -> tuple[Array, AnyArray]:
    """Return the sums over the rows of each group, (G, K, F), with components merged, and whether any is, (G,).

    The rows of two components are those of one where the optimal globals, with the labels as they are, then have a
    higher objective. The entropy of labels is left out: what a merge takes from it is known after a pass over the rows.
    Of likelihoods no components are merged, because more of them are never worse.

    Parameters
    ----------
    sums
        R T' of each group, (G, K, F).
    """
    found, places = sums.copy(), np.arange(problem.size)
    if problem.one.point.issuperset(problem.one.order):
        return found, np.zeros(problem.size, dtype=bool)
    state, rises = swept(problem, sums), np.ones(problem.size, dtype=bool)
    is_merged = ~rises
    for _ in range(problem.n_categories - 1):
        best = _best_of(state, rises)
        rises = best.elbo > state.elbo
        if not rises.any():
            break
        assert best.sums is not None
        found[places[rises]], is_merged[places[rises]] = best.sums[rises], True
        if rises.sum() < _TAKEN * rises.size:
            places, problem = places[rises], problem.taken(rises.nonzero()[0])
            best, rises = swept(problem, best.sums[rises]), np.ones(problem.size, dtype=bool)
        state = best
    return found, is_merged


def _best_of(state: GroupedState, tried: AnyArray) -> GroupedState:
    """Return the state with the pair of components merged in some groups, (G,), that raises the objective most."""
    best = state
    for one, other in _near(state):
        assert state.sums is not None
        sums, groups = state.sums.copy(), (tried & (one != other)).nonzero()[0]
        sums[groups, one[groups]] += sums[groups, other[groups]]
        sums[groups, other[groups]] = 0.0
        best = better(best, swept(state.problem, sums))
    return best


def _near(state: GroupedState) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield pairs of components, (G,) each, the nearest first; both are the same where a group has no such pair.

    Components are near where their rows lose little if the other one takes them as it is.
    """
    problem, sums = state.problem, state.sums
    assert sums is not None
    one, other = np.triu_indices(problem.n_categories, 1)
    logits = sums @ problem.matrices(state.arrays).swapaxes(1, 2)
    lost = logits.diagonal(axis1=1, axis2=2)[..., None] - logits
    nearness = np.minimum(lost[:, one, other], lost[:, other, one])
    size = np.abs(sums).sum(axis=-1)
    is_empty = size <= _EMPTY * size.sum(axis=-1, keepdims=True)
    nearness[is_empty[:, one] | is_empty[:, other] | ~np.isfinite(nearness)] = np.inf
    for place in np.argsort(nearness, axis=1, kind="stable")[:, :_PAIRS].T:
        is_pair = np.isfinite(np.take_along_axis(nearness, place[:, None], axis=1)[:, 0])
        if is_pair.any():
            yield one[place], np.where(is_pair, other[place], one[place])
