r"""How the sums of dense products change with their matrices, all entries at once, in one pass.

.. math:: \frac{\partial S_{ef}}{\partial W_{gh}} = \sum_n V_{n, eg} \, T_{nf} T_{nh}

is a product of the covariances of pairs of statistics (e, g) with the products of two features (f, h), each different
one once. Products of powers of the data are often equal: of 1, x and xx' in four columns there are 120 pairs, but 70
monomials. Of a label only pairs of different categories are summed: its covariances add up to 0 over the categories.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from ...._typing import AnyArray, Array
from ...design.backend import Workspace
from ...design.features import Feature, FeatureTable
from ...design.keys import FactorKey
from ...local.local_factor import LocalFactor
from ...local.statistics import Sums
from .row_term import BlockWork, FactorOfRows

_NUMBERS_OF_A_STRIP, _FEWEST_ROWS = 300_000, 64
"""Products of features that are held at a time: 2.4 MB stay in a cache near the core. Fewer take more calls."""

_FEW_WEIGHTS = 4
"""Pairs of statistics for which a product of matrices each takes less than the products of all pairs of features."""


class Products:
    """The different products of two features of a table.

    Parameters
    ----------
    table
        All of whose features are dense.

    Attributes
    ----------
    places
        Number of the product of each pair of features, (F, F).
    pairs
        A pair of features (f, h) for each product, (2, M).
    """

    def __init__(self, table: FeatureTable) -> None:
        numbers: dict[Hashable, int] = {}
        powers = np.zeros((table.n_rows, 2), dtype=np.int64)
        own = (power for feature in table.features for power in _powers(feature))
        for row, power in zip(powers, own, strict=True):
            row[: len(power)] = sorted(numbers.setdefault(number, len(numbers) + 1) for number in power)
        # in the order of their numbers, the new products of a feature are with features one after the other
        self._order: AnyArray = np.lexsort((powers[:, 1], powers[:, 0], (powers > 0).sum(axis=1)))
        first, second = np.triu_indices(table.n_rows)
        sorted_powers = powers[self._order]
        product = np.sort(np.concatenate([sorted_powers[first], sorted_powers[second]], axis=1), axis=1)
        weights = (len(numbers) + 1) ** np.arange(4)
        codes, occurs, which = np.unique(product @ weights, return_index=True, return_inverse=True)
        # whether those with the first feature are all features, one after the other: it is the number 1
        self._has_one = not powers[self._order[0]].any() and bool(
            (np.sort(occurs)[: table.n_rows] < table.n_rows).all()
        )
        order = np.argsort(occurs)
        if self._has_one:
            # after the features by degree: then the products of a number are with products one after the other
            own = product[occurs]
            order = np.lexsort((*own.T[::-1], (own > 0).sum(axis=1), np.minimum(occurs, table.n_rows)))
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        self._factors: AnyArray = np.stack([first, second])[:, occurs[order]]
        self.pairs: AnyArray = self._order[self._factors]
        if self._has_one:
            self._take_numbers_out(product[occurs[order]], weights, codes, rank)
        self._runs = list(self._found_runs())
        self.places: AnyArray = np.empty((table.n_rows, table.n_rows), dtype=np.intp)
        first, second = self._order[first], self._order[second]
        self.places[first, second] = self.places[second, first] = rank[which]

    def _take_numbers_out(self, powers: AnyArray, weights: AnyArray, codes: AnyArray, rank: AnyArray) -> None:
        """Note that a product is one of its numbers times a product that is written before it, where there is such."""
        every, place = np.arange(len(powers)), (powers > 0).argmax(axis=1)
        number = powers[every, place]
        alone, rest = number * weights[-1], powers @ weights - number * weights[place]
        found = [np.minimum(np.searchsorted(codes, own), len(codes) - 1) for own in (alone, rest)]
        are_written = (codes[found[0]] == alone) & (codes[found[1]] == rest) & (rank[found[1]] < every)
        are_written[: len(self._order)] = False
        self._factors[:, are_written] = rank[np.stack(found)[:, are_written]]

    @property
    def number(self) -> int:
        """How many there are, M."""
        return self.pairs.shape[1]

    def write(self, features: Array, out: Array) -> None:
        """Write the products of features (F, B), (M, B)."""
        if self._has_one:
            # those with the number 1 come first: the features, of which all others are products
            for product, place in zip(out, self._order.tolist(), strict=False):
                product[...] = features[place]
            features = out
        else:
            features = features.take(self._order, axis=0)
        for number, own, others, run in self._runs:
            if run is not None:
                np.multiply(features[run], features[number], out=out[own])
            else:
                product = out[own]
                np.take(features, others, axis=0, out=product, mode="clip")
                product *= features[number]

    def _found_runs(self) -> Iterator[tuple[int, slice, AnyArray, slice | None]]:
        """Yield a factor, the places of products with it, the other factors, and these if all are in a row."""
        first, second = self._factors
        begin = len(self._order) if self._has_one else 0
        starts = [begin, *(np.flatnonzero(np.diff(first[begin:])) + begin + 1).tolist(), len(first)]
        for start, stop in pairwise(starts):
            while start < stop:
                # at once only what is written before any of it
                waits = (
                    np.flatnonzero(second[start:stop] >= start) if self._has_one else np.zeros(0, dtype=int)
                )
                end = start + int(waits[0]) if len(waits) else stop
                others = second[start:end]
                run = slice(int(others[0]), int(others[-1]) + 1)
                is_run = bool((np.diff(others) == 1).all())
                yield int(first[start]), slice(start, end), others, run if is_run else None
                start = end


def products_of(
    tables: Mapping[LocalFactor, FeatureTable], facts: MutableMapping[Hashable, Any]
) -> dict[FactorKey, tuple[FeatureTable, Products]]:
    """Return the features of each local factor and their products, which are found once for a statement."""
    found = {}
    for factor, table in tables.items():
        asked = "products of features", factor.key
        if asked not in facts:
            facts[asked] = Products(table)
        found[factor.key] = table, facts[asked]
    return found


def _powers(feature: Feature) -> list[tuple[Hashable, ...]]:
    """Return the numbers of the data, at most two, whose product each row of a feature is; others are their own."""
    if feature.source is None:
        return [()]
    own = feature.source.key, feature.role and feature.role.name
    if feature.source.reference is not None and not feature.summed:
        if feature.statistic == "x":
            return [((own, entry),) for entry in range(feature.n_rows)]
        if feature.is_packed:
            return [((own, int(i)), (own, int(j))) for i, j in zip(*feature.pairs, strict=True)]
    return [((feature.key, entry),) for entry in range(feature.n_rows)]


def is_one_label(factor: LocalFactor) -> bool:
    """Whether the statistics of a factor are the one-hot of a single label."""
    return factor.rows.keys() == set(factor.one_hots) and [len(own) for own in factor.shapes.values()] == [1]


def n_pairs(factor: LocalFactor) -> int:
    """Return how many pairs of statistics are summed."""
    return factor.n_rows * (factor.n_rows + (-1 if is_one_label(factor) else 1)) // 2


def curvature(
    work: BlockWork,
    inferences: Sequence[FactorOfRows],
    products: Mapping[FactorKey, tuple[FeatureTable, Products]],
) -> Sums:
    """Return the sums over a block for each pair of statistics and product of features, (pairs, M) a factor.

    The local factors are inferred, as for the sums of a pass, which may follow; what these need of log-partitions and
    entropies is in the sums.

    Parameters
    ----------
    products
        Features of each local factor, and their products.
    """
    found = Sums.zero()
    for own in inferences:
        table, of_table = products[own.factor.key]
        covariances = None if is_one_label(own.factor) else _covariances(work, own)
        own.infer(work, found, keep=False)
        weights = _of_label(work, own.factor) if covariances is None else _chosen(work, covariances)
        found.fused[pairs_of(own.factor.key)] = _sums_of_pairs(
            weights, n_pairs(own.factor), work.features(table), of_table, work.scratch
        )
    return found


Weights: TypeAlias = "Callable[[slice], Array]"
"""Returns the weighted covariances of pairs of statistics of some rows of a block, (pairs, B)."""


def pairs_of(key: FactorKey) -> FactorKey:
    """Return the key of the sums of pairs of a factor, beside those of its statistics."""
    return f"{key} pairs"


def _of_label(work: BlockWork, factor: LocalFactor) -> Weights:
    """Return what makes minus the covariances of pairs of categories, in the order of an upper triangle."""
    shares, number = factor.counted(work.state[factor.key], work.rows.columns), n_pairs(factor)

    def of_rows(rows: slice) -> Array:
        own, start = shares[:, rows], 0
        found = work.scratch.array((factor, "pairs"), (number, own.shape[1]))
        weighted = own if work.rows.weights is None else own * work.rows.weights[rows]
        for category in range(len(own) - 1):
            stop = start + len(own) - category - 1
            np.multiply(own[category + 1 :], weighted[category], out=found[start:stop])
            start = stop
        return found

    return of_rows


def _chosen(work: BlockWork, covariances: Array) -> Weights:
    """Return what chooses the rows of weighted covariances."""
    if work.rows.weights is not None:
        covariances *= work.rows.weights
    return lambda rows: covariances[:, rows]


def _covariances(work: BlockWork, inference: FactorOfRows) -> Array:
    """Return the covariances of pairs of statistics of each row, (pairs, B), in the order of an upper triangle."""
    factor, start = inference.factor, 0
    natural = inference.natural(work).copy()
    expected = natural.copy()
    factor.infer(expected)
    found = work.scratch.array((factor, "pairs"), (n_pairs(factor), natural.shape[1]))
    respond = factor.response(natural, expected)
    for statistic in range(factor.n_rows):
        unit = np.zeros_like(natural)
        unit[statistic] = 1.0
        stop = start + factor.n_rows - statistic
        found[start:stop] = factor.counted(respond(unit), work.rows.columns)[statistic:]
        start = stop
    return found


def _sums_of_pairs(
    weights: Weights, n_weights: int, features: Array, products: Products, scratch: Workspace
) -> Array:
    """Return the sums over the rows of weights times the products of two of the features (F, B), (pairs, M)."""
    n_rows = features.shape[1]
    if n_weights <= _FEW_WEIGHTS:
        first, second = products.pairs
        found = [((features * own) @ features.T)[first, second] for own in weights(slice(0, n_rows))]
        return np.array(found).reshape(n_weights, products.number)
    total = np.zeros((n_weights, products.number))
    strip = max(_FEWEST_ROWS, _NUMBERS_OF_A_STRIP // products.number)
    buffer = scratch.array(("products of features", products.number), (products.number, min(strip, n_rows)))
    for begin in range(0, n_rows, strip):
        rows = slice(begin, min(begin + strip, n_rows))
        written = buffer[:, : rows.stop - begin]
        products.write(features[:, rows], written)
        total += weights(rows) @ written.T
    return total


def whole_curvature(summed: Array, factor: LocalFactor, products: Products) -> Array:
    """Return the change of each sum with each entry of the matrix, (E F, E F), from those of pairs and products."""
    size = factor.n_rows
    by_pair = np.zeros((size, size, products.number))
    one_label = is_one_label(factor)
    rows, columns = np.triu_indices(size, k=1 if one_label else 0)
    # of a label minus the covariances are summed
    by_pair[rows, columns] = by_pair[columns, rows] = -summed if one_label else summed
    if one_label:
        by_pair[np.arange(size), np.arange(size)] = -by_pair.sum(axis=1)
    whole = by_pair[:, :, products.places].swapaxes(1, 2)
    return whole.reshape(size * len(products.places), size * len(products.places))
