"""A pass over the rows of many groups: one stack of small matrix products instead of a product for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..._typing import AnyArray, Array
from ...numerics.blas import small_product
from ...numerics.cached import cached_property
from ...numerics.records import replaced
from ..design.features import FeatureTable, row_major
from ..design.keys import ColumnKey
from ..design.scratch import Scratch
from ..local.categorical import softmax_beside_first, softmax_inplace

_BLOCK = 2**16
"""Numbers of features that are written together, or of shares of common rows: they stay in the cache."""

_LOOKED = 2**18
"""Numbers of features of the groups that are looked at together: threads wait for each other between calls, of which
smaller blocks need more."""

_FEW_ROWS = 3
"""Rows of small matrices up to which each is multiplied by itself, where BLAS has no kernel for small products."""


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """The rows of groups, as features.

    Attributes
    ----------
    features
        T of each group that there was at first, (F, G', N): those of rows that a group does not have are 0. Groups that
        share their rows have them once, (F, 1, N).
    numbers
        Which of these the groups are, (G,).
    counts
        Rows of each group, (G,).
    largest
        The size of the largest entry of each feature, (F, G').
    weights
        Of rows that groups share, (N,); None where every row counts once.
    """

    features: Array
    numbers: AnyArray
    counts: AnyArray
    largest: Array
    weights: Array | None = None

    @classmethod
    def of(
        cls, features: Array, counts: AnyArray, weights: Array | None = None, largest: Array | None = None
    ) -> GroupedRows:
        """Return the rows of all groups; the largest entries are found here where they are not known."""
        return cls(
            features,
            np.arange(len(counts)),
            counts,
            _largest(features) if largest is None else largest,
            weights,
        )

    def taken(self, groups: AnyArray) -> GroupedRows:
        """Return the rows of some groups; their features stay where they are."""
        return replaced(self, numbers=self.numbers[groups], counts=self.counts[groups])

    @classmethod
    def joined(cls, several: Sequence[GroupedRows]) -> GroupedRows:
        """Return the rows of the groups of several, none of which shares them; their features are copied."""
        most = max([own._n_rows for own in several])
        features = [padded(own.features[:, own.numbers, : own._n_rows], most, 2) for own in several]
        counts = np.concatenate([own.counts for own in several])
        largest = [own.largest[:, own.numbers] for own in several]
        return cls(
            np.concatenate(features, axis=1), np.arange(len(counts)), counts, np.concatenate(largest, axis=1)
        )

    @cached_property
    def _n_rows(self) -> int:
        return int(self.counts.max())

    @cached_property
    def _is_padded(self) -> bool:
        return bool(self.counts.min() < self._n_rows)

    @property
    def _is_shared(self) -> bool:
        return self.features.shape[1] == 1

    def _features_of(self, groups: AnyArray) -> Array:
        """Return the features of some groups, (G, F, N), or (1, F, N) where they share them."""
        if self._is_shared:
            return self.features.swapaxes(0, 1)
        numbers = self.numbers[groups]
        first, last = int(numbers[0]), int(numbers[-1]) + 1
        if last - first == len(numbers) and (numbers[1:] > numbers[:-1]).all():
            return self.features[:, first:last, : self._n_rows].swapaxes(0, 1)
        return self.features[:, numbers, : self._n_rows].swapaxes(0, 1)

    def look(self, matrices: Array, groups: AnyArray | None = None) -> tuple[Array, Array]:
        """Return the sums R T', (G, K, F), and the entropies of the labels, (G,), with these at their optimum.

        Parameters
        ----------
        matrices
            W of each group, (G, K, F): logits are W T.
        groups
            Numbers of the groups that these are of; all of them by default.
        """
        if groups is None:
            groups = np.arange(len(self.numbers))
        n_groups, n_features, n_rows = len(matrices), len(self.features), self._n_rows
        sums, entropies = np.empty(matrices.shape), np.empty(n_groups)
        numbers = (_BLOCK, matrices.shape[1] * n_rows) if self._is_shared else (_LOOKED, n_features * n_rows)
        size = max(1, numbers[0] // numbers[1])
        for first in range(0, n_groups, size):
            own = slice(first, first + size)
            features = self._features_of(groups[own])
            entropies[own] = self._looked(matrices[own], features, self._weights_of(groups[own]), sums[own])
        return sums, entropies

    def _weights_of(self, groups: AnyArray) -> Array | None:
        """Return how often the rows of some groups count, (G, N) or (N,); None where each counts once."""
        if not self._is_padded:
            return self.weights
        is_row = np.arange(self._n_rows) < self.counts[groups, None]
        return is_row.astype(np.float64) if self.weights is None else is_row * self.weights

    def _looked(self, matrices: Array, features: Array, weights: Array | None, sums: Array) -> Array:
        """Write the sums of some groups, (G, K, F), and return the entropies of their labels, (G,)."""
        # the shares of one category lie side by side, so that NumPy's loops over them are long
        n_groups, n_categories = matrices.shape[:2]
        shares = np.empty((n_categories, n_groups, features.shape[-1])).swapaxes(0, 1)
        # the same is added to the logits of all categories, which changes neither shares nor entropies
        first = matrices[:, :1]
        if matrices.shape[1] > 1 and np.isfinite(first).all():
            matrices = matrices - first
            _product(matrices[:, 1:], features, out=shares[:, 1:])
            logs = softmax_beside_first(shares, weights)
        else:
            _product(matrices, features, out=shares)
            each = softmax_inplace(shares)
            logs = each.sum(axis=-1) if weights is None else np.vecdot(each, weights)
        if self.weights is not None:
            shares *= self.weights
        _product(shares, features.swapaxes(-1, -2), out=sums)
        shape = len(sums), -1
        return logs - np.vecdot(matrices.reshape(shape), sums.reshape(shape))

    def sums_of(self, responsibilities: Array, groups: slice) -> Array:
        """Return the sums R T', (G, K, F), of given responsibilities, (G, K, N), of some groups."""
        features = self._features_of(np.arange(len(self.numbers))[groups])
        return responsibilities @ features.swapaxes(-1, -2)

    def losses(self, matrices: Array, groups: AnyArray) -> Array:
        """Return the rounding error that a logit of some groups has at most (nats), (G,)."""
        largest = self.largest if self._is_shared else self.largest[:, self.numbers[groups]]
        return np.finfo(float).eps * (np.abs(matrices) @ largest.T[..., None]).max(axis=(-1, -2))


def padded(values: AnyArray, n_rows: int, axis: int) -> AnyArray:
    """Return values with zeros behind them along an axis, so that it has ``n_rows``."""
    widths = [(0, n_rows - size if place == axis else 0) for place, size in enumerate(values.shape)]
    return values if values.shape[axis] == n_rows else np.pad(values, widths)


def _product(left: Array, right: Array, out: Array) -> None:
    """Write the products of matrices (G, A, B) and (G, B, C), which is one product where the second ones are one."""
    if len(right) == 1 and len(left) > 1:
        shape = *left.shape[:2], right.shape[-1]
        out[...] = np.matmul(left.reshape(-1, left.shape[2]), right[0]).reshape(shape)
    elif left.shape[1] > _FEW_ROWS or small_product():
        np.matmul(left, right, out=out)
    else:
        for row in range(left.shape[1]):
            np.matmul(left[:, row : row + 1], right, out=out[:, row : row + 1])


def written(
    table: FeatureTable, columns: Mapping[ColumnKey, tuple[AnyArray, Array | None]], counts: Array
) -> tuple[Array, Array]:
    """Return the features of the rows of all groups, (F, G, N), zero where a group has no such row.

    Beside them, the size of the largest entry of each, (F, G): they are in the cache when they are written.

    Parameters
    ----------
    table
        The features.
    columns
        Key -> values of the rows, (G, N, ...), and the point that those of each group are measured from, (G, ...).
    """
    n_groups, n_rows = next(iter(columns.values()))[0].shape[:2]
    found, scratch = np.empty((table.n_dense, n_groups * n_rows)), Scratch()
    largest = np.empty((table.n_dense, n_groups))
    size = max(1, _BLOCK // (table.n_dense * n_rows))
    for first in range(0, n_groups, size):
        own = slice(first, min(first + size, n_groups))
        block = {key: _measured(values[own], point, own) for key, (values, point) in columns.items()}
        part = found[:, own.start * n_rows : own.stop * n_rows]
        table.fill(block, part, scratch)
        if counts.min() < n_rows:
            part *= (np.arange(n_rows) < counts[own, None]).ravel()
        largest[:, own] = _largest(part.reshape(len(part), -1, n_rows))
    return found.reshape(-1, n_groups, n_rows), largest


def _largest(features: Array) -> Array:
    """Return the size of the largest entry of each feature, (F, G), from features (F, G, N)."""
    return np.maximum(features.max(axis=-1), -features.min(axis=-1))


def _measured(values: AnyArray, point: Array | None, groups: slice) -> AnyArray:
    """Return the rows of some groups from their points, one behind another; numbers of a column lie side by side."""
    rows = values.reshape(-1, *values.shape[2:])
    if point is None:
        return rows
    columns = np.empty((*values.shape[2:], *values.shape[:2]))
    order = *range(2, values.ndim), 0, 1
    np.subtract(values.transpose(order), point[groups, None].transpose(order), out=columns)
    return row_major(columns.reshape(*values.shape[2:], -1))
