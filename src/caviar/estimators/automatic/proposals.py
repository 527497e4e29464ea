"""Proposals of moves: which components to split, merge or delete, each judged alone on few rows.

A proposal knows responsibilities and fits of the same statement with one or two components; it knows nothing of
what a component is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._typing import AnyArray, Array
from ...posterior.posterior import Posterior
from .halves import halves
from .problem import Problem

_SMALLEST_SHARE = 1e-3
"""Share of a row below which it counts as outside of a component."""
_TOL = 1e-5
_FIRST, _LAST = 10, 50
"""Iterations of the fits of a part: of each start, and of the best of them."""
_CLEAR = 12.0
"""Gain (nats) of a cut from which on the ordinary starts, which cost more than all cuts together, are not made."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A move of one component, or of two.

    Attributes
    ----------
    kind
        ``"split"``, ``"merge"`` or ``"delete"``.
    components
        Which it takes.
    gain
        What it would add to the ELBO if the rows of these components had nothing to do with the others.
    share
        Of a split: the share of the first half in each row, shape (N,).
    """

    kind: str
    components: tuple[int, ...]
    gain: float
    share: Array | None = None


def split_of(
    k: int, responsibilities: Array, problem: Problem, generator: np.random.Generator
) -> Proposal | None:
    """Return the best cut in two of component k: a fit of two components to its rows, against one.

    None if all its rows are equal, as one row of their weight is: nothing tells them apart.
    """
    part = problem.part(responsibilities[:, k], _SMALLEST_SHARE, tol=_TOL)
    if not _differ(part.X):
        return None
    one = part.fit(1, max_iter=_FIRST)
    ends = [part.fit(2, start, max_iter=_FIRST, seed=generator) for start in _halves_of(part)]
    if max(map(_elbo, ends), default=-np.inf) < one.elbo + _CLEAR:
        ends = [part.fit(2, max_iter=_FIRST, seed=generator), *ends]
    two = max(ends, key=_elbo)
    if not two.converged:
        two = part.fit(2, {name: two[name] for name in two}, max_iter=_LAST)
    return Proposal("split", (k,), two.elbo - one.elbo, problem.responsibilities_under_part(two)[:, 0])


def _differ(X: AnyArray) -> bool:
    """Return whether any two rows differ; missing entries are equal."""
    return len(X) > 1 and not np.array_equal(X[1:], X[:-1], equal_nan=True)


def _halves_of(part: Problem) -> list[dict[str, Array]]:
    return [{"z": labels} for labels in halves(part.X, part.weights)]


def _elbo(posterior: Posterior) -> float:
    return posterior.elbo


def merges(responsibilities: Array, problem: Problem, most: int) -> list[Proposal]:
    """Return merges of the pairs that share rows most, the best first.

    Each is a fit of one component to the rows of both, against one of two that begins with the two as they are.
    """
    overlap = _overlaps(responsibilities, problem.weights)
    first, second = np.triu_indices(len(overlap), 1)
    order = np.argsort(-overlap[first, second], kind="stable")[:most]
    found = [
        _merge(int(k), int(other), responsibilities, problem)
        for k, other in zip(first[order], second[order], strict=True)
    ]
    return sorted(found, key=lambda proposal: -proposal.gain)


def _overlaps(responsibilities: Array, weights: Array) -> Array:
    """Return the cosines between the columns, (K, K): what each pair has in common."""
    gram = (responsibilities * weights[:, None]).T @ responsibilities
    size = np.sqrt(np.maximum(np.diagonal(gram), np.finfo(float).tiny))
    return gram / np.outer(size, size)


def _merge(k: int, other: int, responsibilities: Array, problem: Problem) -> Proposal:
    both = responsibilities[:, [k, other]]
    together = both.sum(axis=1)
    part = problem.part(together, _SMALLEST_SHARE, tol=_TOL)
    if len(part.X) == 0:
        return Proposal("merge", (k, other), 0.0)
    rows = together > _SMALLEST_SHARE
    one = part.fit(1, max_iter=_FIRST)
    two = part.fit(2, {"z": both[rows] / together[rows, None]}, max_iter=_FIRST)
    return Proposal("merge", (k, other), one.elbo - two.elbo)


def deletions(responsibilities: Array, weights: Array, most: int) -> list[Proposal]:
    """Return deletions of the components that weigh least, and of those whose rows belong to others too.

    The gain of one without rows is 0 at least, and that of the others is not known.
    """
    counts = weights @ responsibilities
    alone = weights @ responsibilities**2 / np.maximum(counts, np.finfo(float).tiny)
    chosen = [*np.argsort(counts, kind="stable")[:most], *np.argsort(alone, kind="stable")[:most]]
    return [Proposal("delete", (int(k),), 0.0 if counts[k] < 1 else -np.inf) for k in dict.fromkeys(chosen)]


def applied(proposals: Sequence[Proposal], responsibilities: Array, weights: Array) -> Array:
    """Return responsibilities after moves of different components, the heaviest component first."""
    columns = {k: responsibilities[:, k] for k in range(responsibilities.shape[1])}
    fresh: list[Array] = []
    deleted: list[int] = []
    for proposal in proposals:
        taken = [columns.pop(k) for k in proposal.components]
        if proposal.share is not None:
            fresh += [taken[0] * proposal.share, taken[0] * (1 - proposal.share)]
        elif proposal.kind == "merge":
            fresh.append(taken[0] + taken[1])
        else:
            deleted += proposal.components
    after = np.column_stack([*columns.values(), *fresh])
    if deleted:
        after = _redistributed(after, responsibilities[:, deleted], weights)
    return after[:, np.argsort(-(weights @ after), kind="stable")]


def _redistributed(kept: Array, deleted: Array, weights: Array) -> Array:
    """Return the kept columns with each row's rest given to them: by its own shares, else by where such rows go."""
    own = kept.sum(axis=1, keepdims=True)
    lost = deleted.sum(axis=1)
    typical = (weights * lost) @ kept + np.finfo(float).tiny
    return np.where(own > 1e-200, kept / np.maximum(own, 1e-200), typical / typical.sum())
