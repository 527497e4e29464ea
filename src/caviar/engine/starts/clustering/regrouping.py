"""Regrouping: clusters that have settled with two of them merged, or one split, or both.

A fit with two components in one cluster and one component in two clusters cannot leave this optimum by small steps,
and other guesses of all clusters at once end at similar ones. So pairs that lose little by a merge, and clusters that
gain much by a split, are found by what a Gaussian for each of them loses or gains. If all such moves lose much, the
clusters are clear and need no other guess.

Source: Ueda, Nakano, Ghahramani and Hinton, "SMEM algorithm for mixture models" (Neural Computation, 2000).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...._typing import AnyArray, Array
from .agglomeration import gains_by, gains_of, prior_of, sums_of

_MOST = 4
"""Partitions that are returned where no other number is asked for."""

_MOST_LOST = 0.1
"""Nats a point that a partition may lose where no other number is asked for."""

_FEWEST = 4
"""Members of a cluster that may be split."""

_PLAIN = 0.3
"""Nats for each point of its clusters that every move from plain clusters loses, at least."""

_MOST_COLUMNS = 50
"""Columns of points whose clusters may be plain: of more, a Gaussian has too many numbers to say anything."""


def regrouped(
    points: Array,
    weights: Array,
    labels: AnyArray,
    n_clusters: int,
    *,
    most: int = _MOST,
    most_lost: float = _MOST_LOST,
) -> list[AnyArray]:
    """Return labels (n,) in which two clusters are merged, or one is split, or both, the most promising first.

    Parameters
    ----------
    points
        Shape (n, d), whitened: mean 0 and covariance I.
    weights
        Shape (n,); only their proportions matter.
    labels
        Shape (n,), from 0 to ``n_clusters`` - 1; some of these may have no points, and clusters are split into them.
    most
        Partitions that are returned at the most.
    most_lost
        Nats a point that a partition may lose: the components may be no Gaussians with a covariance each.

    Examples
    --------
    >>> points = (
    ...     np.repeat([[-2.0], [-1.0], [1.0], [2.0]], 5, axis=0) + np.tile(np.linspace(0, 0.1, 5), 4)[:, None]
    ... )
    >>> labels = np.repeat([0, 1, 2, 2], 5)
    >>> found = regrouped(points, np.ones(20), labels, 4)[0]
    >>> found[:10], sorted({int(found[10]), int(found[15])})
    (array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]), [2, 3])
    """
    moves = _Moves.of(points, weights * (len(weights) / weights.sum()), labels)
    losses, gains, both = moves.changes(gains_of(moves.sums, prior_of(points.shape[1], n_clusters)))
    empty = np.setdiff1d(np.arange(n_clusters), labels)
    several = (-losses, gains if len(empty) else gains[:0], both.ravel())
    ends = np.cumsum([len(own) for own in several])
    changes = np.concatenate(several)
    found = []
    for place in np.argsort(-changes, kind="stable")[:most].tolist():
        if not changes[place] > -most_lost * len(labels):
            break
        if place < ends[0]:
            found.append(moves.merged(labels, place))
        elif place < ends[1]:
            found.append(np.where(moves.leaves[place - ends[0]], empty[0], labels))
        else:
            cut, pair = divmod(place - ends[1], ends[0])
            left = moves.names[moves.other[pair]]
            found.append(np.where(moves.leaves[cut], left, moves.merged(labels, pair)))
    return found


def are_plain(points: Array, weights: Array, labels: AnyArray, n_clusters: int) -> bool:
    """Whether clusters are so far from each other, and each so much of one piece, that no other guess is needed.

    Any other guess puts two of them together, and may cut a third one, or gives a piece of one to another. Whatever
    kind of Gaussian the components are like, with a covariance, with variances or with one variance each, that loses
    much: two clusters in one more than the numbers of a component are worth, ``p / 2 log n`` nats for ``p`` numbers.
    Clusters of fewer points than a covariance needs are not plain.

    Parameters
    ----------
    points
        Shape (n, d), columns in units of their spread.
    weights
        How often each point counts, shape (n,).
    labels
        Shape (n,), from 0 to ``n_clusters`` - 1.
    """
    size = points.shape[1]
    if size > _MOST_COLUMNS or np.bincount(labels, minlength=n_clusters).min() < 2 * (size + 1):
        return False
    # of two clusters none is cut beside a pair
    moves = _Moves.of(points, weights, labels, far=n_clusters > 2)
    counts = moves.sums[:, 0]
    pairs = counts[moves.one] + counts[moves.other]
    # a weight, a mean and variances; covariances of many columns are not counted, since the prior nearly fixes them
    numbers = 1 + 2 * size
    of_pairs = np.maximum(_PLAIN, 0.5 * numbers * np.log(pairs) / pairs)
    passed, from_one, to_other = moves.passed()
    sums, of_passed = np.concatenate([moves.sums, passed]), counts[from_one] + counts[to_other]
    for gains in gains_by(sums, prior_of(size, n_clusters)):
        own, left = gains[: len(moves.sums)], gains[len(moves.sums) :].reshape(2, -1).sum(axis=0)
        losses, _, both = moves.changes(own)
        worst = (of_pairs - losses / pairs).max()
        if len(both):
            worst = max(worst, _PLAIN + (both / (pairs + counts[moves.cut, None])).max())
        if len(left):
            worst = max(worst, _PLAIN + ((left - own[from_one] - own[to_other]) / of_passed).max())
        if worst > 0:
            return False
    return True


@dataclass(frozen=True, eq=False)
class _Moves:
    """Pairs of clusters that may be merged, and clusters that may be cut in two.

    Attributes
    ----------
    names
        The clusters that have points, (k,).
    one, other
        The clusters of each pair, (p,).
    cut, aside
        The cluster of each cut, and whether it is side by side, (s,).
    leaves
        The points that leave it, (s, n).
    sums
        The weighted sums of 1, x and xx' over the clusters, over what pairs of them would be, over what leaves in each
        cut, and over what stays, (k + p + 2 s, 1 + d + d^2).
    """

    names: AnyArray
    one: AnyArray
    other: AnyArray
    cut: AnyArray
    aside: AnyArray
    leaves: AnyArray
    sums: Array

    @classmethod
    def of(cls, points: Array, weights: Array, labels: AnyArray, *, far: bool = True) -> _Moves:
        """Return the moves from a partition; clusters are cut side by side, and into far and near points if asked."""
        names = np.flatnonzero(np.bincount(labels))
        members = labels == names[:, None]
        own = sums_of(points, weights, members)
        cut, aside, leaves = _halves(points, weights, members, own, far=far)
        parts = sums_of(points, weights, leaves)
        place = np.arange(len(names))
        one, other = np.nonzero(place[:, None] < place)
        sums = np.concatenate([own, own[one] + own[other], parts, own[cut] - parts])
        return cls(names, one, other, cut, aside, leaves, sums)

    def merged(self, labels: AnyArray, pair: int) -> AnyArray:
        """Return labels with the clusters of a pair in one."""
        return np.where(labels == self.names[self.other[pair]], self.names[self.one[pair]], labels)

    def passed(self) -> tuple[Array, AnyArray, AnyArray]:
        """Return the sums of clusters of which one passes a piece to another, and the places of both.

        Pieces are those of cuts side by side: of a far part, which lies around the near one, none is another's. First
        the sums of the clusters that have got a piece, then those of what is left of the others, (2 t, 1 + d + d^2).
        """
        rest = len(self.sums) - len(self.cut)
        parts, rests = self.sums[rest - len(self.cut) : rest][self.aside], self.sums[rest:][self.aside]
        cut = np.concatenate([self.cut[self.aside]] * 2)
        piece, to_other = (cut[:, None] != np.arange(len(self.names))).nonzero()
        pieces, left = np.concatenate([parts, rests]), np.concatenate([rests, parts])
        sums = np.concatenate([self.sums[to_other] + pieces[piece], left[piece]])
        return sums, cut[piece], to_other

    def changes(self, gains: Array) -> tuple[Array, Array, Array]:
        """Return what each pair loses, (p,), what each cut gains, (s,), and what both gain together, (s, p).

        Parameters
        ----------
        gains
            Of the sets whose sums there are.
        """
        pair, part = len(self.names), len(self.names) + len(self.one)
        rest = part + len(self.cut)
        own, pairs, parts, rests = gains[:pair], gains[pair:part], gains[part:rest], gains[rest:]
        losses = own[self.one] + own[self.other] - pairs
        gained = parts + rests - own[self.cut]
        if len(losses) < 2:
            # no third cluster is cut beside a pair
            return losses, gained, np.empty((0, len(losses)))
        is_merged = (self.cut[:, None] == self.one) | (self.cut[:, None] == self.other)
        return losses, gained, np.where(is_merged, -np.inf, gained[:, None] - losses)


def _median(values: Array) -> float:
    """Return the median of some numbers: that of NumPy, which takes longer over its axes."""
    middle = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, middle)[middle])
    below, above = np.partition(values, (middle - 1, middle))[middle - 1 : middle + 1]
    return float((below + above) / 2)


def _halves(
    points: Array, weights: Array, members: AnyArray, sums: Array, *, far: bool
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the clusters that are cut, (s,), whether side by side, (s,), and the points that leave each, (s, n).

    Side by side is the cut across the direction in which a cluster is longest that leaves least squares. If asked,
    each is also cut in far and near points.
    """
    cut: list[int] = []
    are_aside: list[bool] = []
    leaving: list[AnyArray] = []
    size = points.shape[1]
    means = sums[:, 1 : size + 1] / sums[:, :1]
    squares = sums[:, size + 1 :].reshape(-1, size, size) / sums[:, :1, None]
    directions = np.linalg.eigh(squares - means[:, :, None] * means[:, None, :])[1][:, :, -1]
    for place, own in enumerate(members):
        (inside,) = own.nonzero()
        if len(inside) < _FEWEST:
            continue
        centred = points[inside] - means[place]
        along = centred @ directions[place]
        order = along.argsort(kind="stable")
        own_weights = weights[inside]
        counts, total = own_weights[order].cumsum(), (own_weights * along)[order].cumsum()
        # about their mean, the squares that a cut explains
        explained = total[:-1] ** 2 * (1 / counts[:-1] + 1 / (counts[-1] - counts[:-1]))
        ascending = along[order]
        explained[~(ascending[1:] - ascending[:-1] > 0)] = -np.inf
        edge = ascending[explained.argmax()]
        found = [(True, along > edge)]
        if far:
            away = np.square(centred).sum(axis=1)
            found.append((False, away > _median(away)))
        for aside, half in found:
            if 0 < np.count_nonzero(half) < len(half):
                leaves = np.zeros(own.shape, dtype=bool)
                leaves[inside[half]] = True
                cut.append(place)
                are_aside.append(aside)
                leaving.append(leaves)
    return (
        np.array(cut, dtype=np.intp),
        np.array(are_aside, dtype=bool),
        np.array(leaving, dtype=bool).reshape(-1, len(points)),
    )
