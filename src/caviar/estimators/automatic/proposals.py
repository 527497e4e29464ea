"""Proposals of moves: which components to split, merge or delete, each judged alone on few rows.

A proposal knows responsibilities and fits of the same statement with one or two components; it knows nothing of
what a component is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..._typing import AnyArray, Array
from ...engine.ascent.schedules.moves.swaps import Cut, Mixture
from ...posterior.posterior import Posterior
from .problem import Problem, factors_of

_SMALLEST_SHARE = 1e-3
"""Share of a row below which it counts as outside of a component."""
_TOL = 1e-5
QUICK, THOROUGH = (3, 6), (3, 16)
"""Cuts of each component, and updates of the halves of the best one."""
_LEAST_HALF = 1.0
"""Weight of the rows of a half below which it is none."""
_LARGEST = 50.0
"""Logarithm of the largest ratio of two halves of a row."""
_CUTS = 2
"""Principal axes along which rows are cut."""
_FIRST, _LAST = 10, 50
"""Iterations of the fits of a part: of each start, and of the best of them."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A move of one component, or of two.

    Attributes
    ----------
    kind
        ``"split"``, ``"merge"``, ``"delete"`` or ``"birth"``.
    components
        Which it takes; of a birth, the one that loses most rows.
    gain
        What it would add to the ELBO if the rows of these components had nothing to do with the others.
    share
        Of a split: the share of the first half in each row, shape (N,). Of a birth: that of the new component.
    seed
        What shows it, if that is the order of the rows.
    """

    kind: str
    components: tuple[int, ...]
    gain: float
    share: Array | None = None
    seed: str = ""

    @property
    def name(self) -> str:
        """Moves of the same components that differ have other names."""
        return f"{self.kind} {self.seed}"


def split_of(
    k: int, responsibilities: Array, problem: Problem, generator: np.random.Generator
) -> Proposal | None:
    """Return the best cut in two of component k: a fit of two components to its rows, against one.

    None if all its rows are equal, as one row of their weight is: nothing tells them apart; or if every fit leaves one
    of the two without rows.
    """
    part = problem.part(responsibilities[:, k], _SMALLEST_SHARE, tol=_TOL)
    if len(part.X) < 2 or np.array_equal(part.X[1:], part.X[:-1], equal_nan=True):
        return None
    one = part.fit(1, max_iter=_FIRST)
    ends = [
        part.fit(2, {"z": labels}, max_iter=_FIRST, seed=generator) for labels in halves(part.X, part.weights)
    ]
    if max(map(_elbo, ends), default=-np.inf) < one.elbo + problem.clear_gain:
        ends = [part.fit(2, max_iter=_FIRST, seed=generator), *ends]
    for two in sorted(ends, key=_elbo, reverse=True):
        if problem.least_half and _smaller_half(part, two) < problem.least_half:
            continue
        end = two if two.converged else part.fit(2, factors_of(two), max_iter=_LAST)
        return Proposal("split", (k,), end.elbo - one.elbo, problem.responsibilities_under_part(end)[:, 0])
    return None


def cuts_of(mixture: Mixture, effort: tuple[int, int], some: Sequence[int] | None = None) -> list[Proposal]:
    """Return the best cut in two of each component, or of some, the best first, from sums alone."""
    found: list[Proposal] = []
    best: dict[int, Cut] = {}
    for cut in mixture.cuts(effort[0], some):
        best.setdefault(cut.places[0], cut)
    several = mixture.further(list(best.values()), effort[1], together=some is not None) if best else []
    for cut in several:
        k = cut.places[0]
        share = 1 / (1 + np.exp(np.clip(cut.natural[1] - cut.natural[0], -_LARGEST, _LARGEST)))
        of_halves = mixture.weights * mixture.shares[k] @ np.column_stack([share, 1 - share])
        if of_halves.min() >= _LEAST_HALF:
            found.append(Proposal("split", (k,), cut.gain, share))
    return found


def merges_of(mixture: Mixture) -> list[Proposal]:
    """Return merges of components that are near each other, the best first, from sums alone."""
    return [Proposal("merge", (own.taken, own.into), own.gain) for own in mixture.merges()]


def deletions_of(mixture: Mixture) -> list[Proposal]:
    """Return deletions of components, the best first, from sums alone."""
    return [Proposal("delete", (k,), gain) for k, gain in mixture.deletions()]


def _smaller_half(part: Problem, two: Posterior) -> float:
    """Return what the rows of the smaller of two components weigh."""
    return float((part.weights @ part.responsibilities_under_part(two)).min())


def _elbo(posterior: Posterior) -> float:
    return posterior.elbo


def overlapping(responsibilities: Array, problem: Problem, most: int) -> list[tuple[int, int]]:
    """Return the pairs of components that share rows most, at least one pair."""
    overlap = _overlaps(responsibilities, problem.weights)
    first, second = np.triu_indices(len(overlap), 1)
    shared = overlap[first, second]
    order = np.argsort(-shared, kind="stable")[:most]
    chosen = order[: max(1, int((shared[order] >= problem.least_overlap).sum()))]
    return [(int(first[i]), int(second[i])) for i in chosen]


def _overlaps(responsibilities: Array, weights: Array) -> Array:
    """Return the cosines between the columns, (K, K): what each pair has in common."""
    gram = (responsibilities * weights[:, None]).T @ responsibilities
    size = np.sqrt(np.maximum(np.diagonal(gram), np.finfo(float).tiny))
    return gram / np.outer(size, size)


def merge_of(k: int, other: int, responsibilities: Array, problem: Problem) -> Proposal:
    """Return the merge of two: a fit of one component to their rows, against two that begin as they are."""
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
    born = [own.share for own in proposals if own.kind == "birth" and own.share is not None]
    for proposal in proposals:
        if proposal.kind == "birth":
            continue
        taken = [columns.pop(k) for k in proposal.components]
        if proposal.share is not None:
            fresh += [taken[0] * proposal.share, taken[0] * (1 - proposal.share)]
        elif proposal.kind == "merge":
            fresh.append(taken[0] + taken[1])
        else:
            deleted += proposal.components
    after = np.column_stack([*columns.values(), *fresh])
    for share in born:
        after = np.column_stack([after * (1 - share)[:, None], share])
    if deleted:
        after = _redistributed(after, responsibilities[:, deleted], weights)
    return after[:, np.argsort(-(weights @ after), kind="stable")]


def _redistributed(kept: Array, deleted: Array, weights: Array) -> Array:
    """Return the kept columns with each row's rest given to them: by its own shares, else by where such rows go."""
    own = kept.sum(axis=1, keepdims=True)
    lost = deleted.sum(axis=1)
    typical = (weights * lost) @ kept + np.finfo(float).tiny
    return np.where(own > 1e-200, kept / np.maximum(own, 1e-200), typical / typical.sum())


def disjoint(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """Yield proposals in their order, without those that take a component of one before."""
    taken: set[int] = set()
    for proposal in proposals:
        if taken.isdisjoint(proposal.components):
            taken.update(proposal.components)
            yield proposal


def halves(X: AnyArray, weights: Array) -> list[AnyArray]:
    """Return labels 0 and 1 of weighted rows, shape (N,), of several cuts in two.

    Inner rows against outer ones, which separates a narrow component from a wide one about the same place; and the
    two sides of the mean along the principal axes whose kurtosis is smallest, where two clusters show. Columns are
    taken in units of their spread, missing entries at their mean.

    Examples
    --------
    >>> for labels in halves(np.array([[-9.0], [-8.0], [-1.0], [1.0], [8.0], [9.0]]), np.ones(6)):
    ...     print(labels)
    [1 1 0 0 1 1]
    [0 0 0 1 1 1]
    """
    units = in_units(np.asarray(X, dtype=np.float64), weights)
    distance = np.square(units).sum(axis=1)
    cuts = [distance > np.average(distance, weights=weights)]
    axes = np.linalg.eigh((units * weights[:, None]).T @ units / weights.sum())[1]
    scores = units @ axes
    second, fourth = (np.average(scores**power, axis=0, weights=weights) for power in (2, 4))
    # an axis without spread has no two sides
    kurtosis = np.where(second > 1e-12, fourth / np.maximum(second, 1e-12) ** 2, np.inf)
    cuts += [scores[:, axis] > 0 for axis in np.argsort(kurtosis, kind="stable")[:_CUTS]]
    return [cut.astype(np.int64) for cut in cuts if cut.any() and not cut.all()]


def in_units(X: Array, weights: Array) -> Array:
    """Return columns in units of their standard deviation, from their mean; 0 where an entry is missing."""
    share = weights[:, None] * ~np.isnan(X)
    total = np.maximum(share.sum(axis=0), np.finfo(float).tiny)
    deviation = X - np.sum(share * np.nan_to_num(X), axis=0) / total
    np.nan_to_num(deviation, copy=False, nan=0.0)
    spread = np.sqrt(np.sum(share * deviation**2, axis=0) / total)
    return deviation / np.where(spread > 0, spread, 1.0)
