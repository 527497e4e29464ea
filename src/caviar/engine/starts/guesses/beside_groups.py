r"""Clusters beside many groups: labels of rows whose clusters show only within groups, because levels differ.

.. math:: y_n \approx b_{g_n} + a_{z_n} + \langle \beta, u_n \rangle

With few rows in each of many groups neither the levels b of groups nor the labels z can be had before the other: a
group caught at a wrong multiple of the step between two clusters stays there, for all its labels agree with its level.
So a group's level and its labels are found together. Where the clusters are known, the level that puts one of its rows
into one of the clusters is tried for all of them, and the best is taken: the labels follow. Clusters are drawn as the
differences of rows of one group, many times, and then improved in turn with the groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...._typing import AnyArray, Array

_DRAWS = 150
"""Times that clusters are drawn."""

_FEW_ROWS = 240
"""Rows, of whole groups, on which the draws are compared, about."""

_BEST = 4
"""Draws that are improved on all rows."""

_ROUNDS = 12
_TRIED = 6
"""Rows of a group that are put into each cluster, at most."""

_NOTHING = 1e-12
"""Weight of no rows, where it is divided by."""

_SMALLEST = 1e-6
"""Variance, as a share of that of the values, below which it counts as that."""


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Rows in the order of their groups.

    Attributes
    ----------
    values, weights, columns
        Of the rows: (n, d), (n,) and (n, p).
    firsts
        The first row of each group.
    groups
        The group of each row.
    """

    values: Array
    weights: Array
    columns: Array
    firsts: AnyArray
    groups: AnyArray

    @staticmethod
    def of(values: Array, weights: Array, columns: Array, groups: AnyArray) -> _Grouped:
        """Return rows, whose groups follow each other, with their groups numbered from 0."""
        starts = np.diff(groups, prepend=groups[0] - 1) != 0
        return _Grouped(values, weights, columns, np.flatnonzero(starts), np.cumsum(starts) - 1)

    def among(self, some: AnyArray) -> _Grouped:
        """Return the rows of some groups."""
        kept = np.isin(self.groups, some)
        return self.of(self.values[kept], self.weights[kept], self.columns[kept], self.groups[kept])

    def summed(self, of_rows: Array) -> Array:
        """Return sums over the rows of each group."""
        return np.add.reduceat(of_rows, self.firsts, axis=0)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Clusters, and the groups' levels and labels that fit them best.

    Attributes
    ----------
    centres, shares
        Of clusters: (K, d) and (K,).
    noise, spread
        Variance of rows about their cluster, and of the groups' levels about 0; where infinite, they count nothing.
    slopes
        Coefficients of the columns, (p, d).
    levels, labels
        Of groups (G, d) and of rows (n,).
    cost
        Twice the negative log density of labels, levels and values, up to a constant; of draws squares.
    """

    centres: Array
    shares: Array
    noise: float
    spread: float
    slopes: Array
    levels: Array
    labels: AnyArray
    cost: float


def labels_beside_groups(
    values: Array,
    weights: Array,
    columns: Array,
    groups: AnyArray,
    n_clusters: int,
    rng: np.random.Generator,
) -> list[AnyArray]:
    """Return labels (n,) of clusters of rows whose groups have different levels, the best first.

    Parameters
    ----------
    values
        Shape (n, d), complete.
    weights
        Shape (n,), positive.
    columns
        What else the values depend on, shape (n, p).
    groups
        The group of each row, shape (n,).

    Examples
    --------
    >>> levels, steps = np.array([0.0, 40.0, -7.0, 11.0])[:, None], np.array([0.0, 0.0, 3.0, 5.0])
    >>> values, groups = (levels + steps).reshape(-1, 1), np.repeat(np.arange(4), 4)
    >>> rng = np.random.default_rng(0)
    >>> found = labels_beside_groups(values, np.ones(16), np.zeros((16, 0)), groups, 3, rng)[0]
    >>> np.unique(found.reshape(4, 4), axis=0).shape
    (1, 4)
    """
    order = np.argsort(groups, kind="stable")
    rows = _Grouped.of(values[order], weights[order], columns[order], groups[order])
    slopes = _within(rows)
    rest = replace(rows, values=rows.values - rows.columns @ slopes)
    sizes = np.diff(rows.firsts, append=len(values))
    if sizes.max() < 2:
        return []
    few = rest.among(rng.permutation(len(sizes))[: max(2, int(_FEW_ROWS / sizes.mean()))])
    drawn = [centres - centres.mean(axis=0) for centres in _drawn(few, n_clusters, rng)]
    even = np.full(n_clusters, 1.0 / n_clusters)
    pairs = _Pairs.of(few, rng)
    tried = [pairs.fitted(few, centres, even, np.inf, np.inf, slopes) for centres in drawn]
    tried.sort(key=lambda fit: fit.cost)
    pairs = _Pairs.of(rest, rng)
    ends = [_improved(rows, pairs, fit) for fit in tried[:_BEST]]
    ends.sort(key=lambda fit: fit.cost)
    back = np.argsort(order, kind="stable")
    return [fit.labels[back] for fit in ends[:2]]


def _within(rows: _Grouped) -> Array:
    """Return the coefficients of the columns, (p, d), from differences to the means of groups."""
    if not rows.columns.shape[1]:
        return np.zeros((0, rows.values.shape[1]))
    counts = np.maximum(rows.summed(rows.weights), _NOTHING)[rows.groups, None]
    root = np.sqrt(rows.weights)[:, None]

    def centred(of_rows: Array) -> Array:
        return root * (of_rows - rows.summed(rows.weights[:, None] * of_rows)[rows.groups] / counts)

    slopes = np.linalg.lstsq(centred(rows.columns), centred(rows.values), rcond=1e-8)[0]
    return np.asarray(slopes, dtype=np.float64)


def _drawn(rows: _Grouped, n_clusters: int, rng: np.random.Generator) -> list[Array]:
    """Return places of clusters, (K, d): rows of one group, or of several, each from a row of its own group."""
    sizes = np.diff(rows.firsts, append=len(rows.values))
    whole = np.flatnonzero(sizes >= n_clusters)
    found = []
    for _ in range(_DRAWS):
        if len(whole):
            group = rng.choice(whole)
            found.append(rows.values[rows.firsts[group] + rng.permutation(sizes[group])[:n_clusters]])
            continue
        centres = np.zeros((n_clusters, rows.values.shape[1]))
        for number, group in enumerate(rng.choice(np.flatnonzero(sizes > 1), n_clusters - 1)):
            one, other = rows.firsts[group] + rng.permutation(sizes[group])[:2]
            centres[1 + number] = rows.values[one] - rows.values[other]
        found.append(centres)
    return found


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Each row beside some of its group: those that are put into clusters.

    Attributes
    ----------
    fixed
        The rows that are put into clusters, group by group.
    of_groups
        The first of these of each group.
    firsts
        The first pair of each of them.
    one, other
        The row of each pair that is put into a cluster, and the one that follows.
    """

    fixed: AnyArray
    of_groups: AnyArray
    firsts: AnyArray
    one: AnyArray
    other: AnyArray

    @staticmethod
    def of(rows: _Grouped, rng: np.random.Generator) -> _Pairs:
        """Return the pairs of rows."""
        sizes = np.diff(rows.firsts, append=len(rows.values))
        chosen = [
            first + np.sort(rng.permutation(size)[:_TRIED])
            for first, size in zip(rows.firsts, sizes, strict=True)
        ]
        fixed = np.concatenate(chosen)
        lengths = sizes[rows.groups[fixed]]
        firsts = np.cumsum(lengths) - lengths
        one = np.repeat(fixed, lengths)
        other = np.arange(len(one)) - np.repeat(firsts, lengths) + rows.firsts[rows.groups[one]]
        n_chosen = np.array([len(own) for own in chosen])
        return _Pairs(fixed, np.cumsum(n_chosen) - n_chosen, firsts, one, other)

    def fitted(
        self, rows: _Grouped, centres: Array, shares: Array, noise: float, spread: float, slopes: Array
    ) -> _Fit:
        """Return the level of each group that fits best, its labels, and what that costs."""
        apart = rows.values[self.other] - rows.values[self.one]
        steps = centres[:, None] - centres
        squares = np.square(apart[:, None, None] + steps).sum(axis=3)
        scale = noise if np.isfinite(noise) else 1.0
        rare = -2 * np.log(np.maximum(shares, 1e-3)) if np.isfinite(noise) else np.zeros(len(shares))
        costs = rows.weights[self.other, None] * (squares / scale + rare).min(axis=2)
        of_fixed = np.add.reduceat(costs, self.firsts, axis=0)
        levels = rows.values[self.fixed][:, None] - centres
        if np.isfinite(spread):
            of_fixed = of_fixed + np.square(levels).sum(axis=2) / spread
        nearest = of_fixed.argmin(axis=1)
        least = of_fixed[np.arange(len(nearest)), nearest]
        # the first of each group in the order of the costs
        best = np.lexsort((least, rows.groups[self.fixed]))[self.of_groups]
        chosen = levels[best, nearest[best]]
        away = np.square(rows.values[:, None] - chosen[rows.groups][:, None] - centres).sum(axis=2)
        labels = (away / scale + rare).argmin(axis=1)
        return _Fit(centres, shares, noise, spread, slopes, chosen, labels, float(least[best].sum()))


def _improved(rows: _Grouped, pairs: _Pairs, fit: _Fit) -> _Fit:
    """Return clusters and groups after they have been improved in turn."""
    smallest = _SMALLEST * float(np.var(rows.values))
    best: _Fit | None = None
    for number in range(_ROUNDS):
        rest = replace(rows, values=rows.values - rows.columns @ fit.slopes)
        found = pairs.fitted(rest, fit.centres, fit.shares, fit.noise, fit.spread, fit.slopes)
        if number > 1 and best is not None and np.array_equal(found.labels, best.labels):
            break
        best = found
        fit = _given_labels(rows, rest, found, smallest)
    assert best is not None
    return best


def _given_labels(rows: _Grouped, rest: _Grouped, fit: _Fit, smallest: float) -> _Fit:
    """Return clusters, levels of groups, slopes and variances given labels, by a few sweeps."""
    n_clusters, weights = len(fit.centres), rows.weights[:, None]
    counts = np.maximum(np.bincount(fit.labels, rows.weights, n_clusters), _NOTHING)
    of_groups = np.maximum(rows.summed(rows.weights), _NOTHING)[:, None]
    centres, levels, slopes = fit.centres, fit.levels, fit.slopes
    root = np.sqrt(weights)
    for _ in range(4):
        levels = rows.summed(weights * (rest.values - centres[fit.labels])) / of_groups
        left = weights * (rest.values - levels[rows.groups])
        sums = np.stack([np.bincount(fit.labels, column, n_clusters) for column in left.T], axis=1)
        centres = np.where(counts[:, None] > _NOTHING, sums / counts[:, None], centres)
    centres = centres - centres.mean(axis=0)
    levels = rows.summed(weights * (rest.values - centres[fit.labels])) / of_groups
    if slopes.size:
        left = rows.values - levels[rows.groups] - centres[fit.labels]
        slopes = np.linalg.lstsq(root * rows.columns, root * left, rcond=1e-8)[0]
    total, size = rows.weights.sum(), rows.values.shape[1]
    left = rows.values - rows.columns @ slopes - levels[rows.groups] - centres[fit.labels]
    noise = max(float((weights * left**2).sum() / (total * size)), smallest)
    middle = np.average(levels, axis=0, weights=of_groups[:, 0])
    spread = max(float(np.mean((levels - middle) ** 2)), smallest)
    # the level of all groups is one of the clusters' as well: it is taken from the groups
    return replace(
        fit, centres=centres + middle, shares=counts / total, noise=noise, spread=spread, slopes=slopes
    )
