"""A look at the rows of many groups: one stack of small matrix products in the place of a product for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..._typing import AnyArray, Array
from ...numerics.cached import cached_property
from ...numerics.records import replaced
from ..design.features import Feature, FeatureTable
from ..design.keys import ColumnKey
from ..design.scratch import Scratch
from ..local.categorical import softmax_inplace

_BLOCK = 2**18
"""Numbers of features of the groups that are looked at together: they stay in the cache."""

_WRITTEN = 2**16
"""Numbers of features of the groups that are written together."""


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """The rows of groups, as features.

    Attributes
    ----------
    features
        T of each group, (G, F, N): those of rows that a group does not have are 0.
    counts
        Rows of each group, (G,).
    """

    features: Array
    counts: Array

    def taken(self, groups: AnyArray) -> GroupedRows:
        """Return the rows of some groups."""
        counts = self.counts[groups]
        return replaced(self, features=self.features[groups, :, : int(counts.max())], counts=counts)

    @property
    def _is_padded(self) -> bool:
        return bool(self.counts.min() < self.features.shape[-1])

    def look(self, matrices: Array, groups: AnyArray | None = None) -> tuple[Array, Array]:
        """Return the sums R T', (G, K, F), and the log-partitions summed, (G,), with labels at their optimum.

        Parameters
        ----------
        matrices
            W of each group, (G, K, F): logits are W T.
        groups
            Numbers of the groups that these are of; all of them by default.
        """
        n_groups, (_, n_features, n_rows) = len(matrices), self.features.shape
        sums, log_partition = np.empty(matrices.shape), np.empty(n_groups)
        size = max(1, _BLOCK // (n_features * n_rows))
        for first in range(0, n_groups, size):
            own = slice(first, first + size)
            chosen = own if groups is None else groups[own]
            features = self.features[chosen]
            labels = matrices[own] @ features
            each = softmax_inplace(labels)
            if self._is_padded:
                each *= np.arange(n_rows) < self.counts[chosen, None]
            log_partition[own] = each.sum(axis=-1)
            np.matmul(labels, features.swapaxes(-1, -2), out=sums[own])
        return sums, log_partition

    def sums_of(self, responsibilities: Array, groups: slice) -> Array:
        """Return the sums R T', (G, K, F), of given responsibilities, (G, K, N), of some groups."""
        return responsibilities @ self.features[groups].swapaxes(-1, -2)

    def losses(self, matrices: Array, groups: AnyArray) -> Array:
        """Return the rounding error that a logit of some groups has at most (nats), (G,)."""
        largest = self._largest[groups, :, None]
        return np.finfo(float).eps * (np.abs(matrices) @ largest).max(axis=(-1, -2))

    @cached_property
    def _largest(self) -> Array:
        """Size of the largest entry of each feature, (G, F)."""
        return np.maximum(self.features.max(axis=-1), -self.features.min(axis=-1))


def written(
    table: FeatureTable, columns: Mapping[ColumnKey, tuple[AnyArray, Array | None]], counts: Array
) -> Array:
    """Return the features of the rows of all groups, (G, F, N), zero where a group has no such row.

    Parameters
    ----------
    table
        The features.
    columns
        Key -> values of the rows, (G, N, ...), and the point that those of each group are measured from, (G, ...).
    """
    bare = table.with_features([_without_reference(own) for own in table.features])
    n_groups, n_rows = next(iter(columns.values()))[0].shape[:2]
    found, scratch = np.empty((n_groups, table.n_dense, n_rows)), Scratch()
    size = max(1, _WRITTEN // (table.n_dense * n_rows))
    flat = np.empty((table.n_dense, size * n_rows))
    for first in range(0, n_groups, size):
        own = slice(first, min(first + size, n_groups))
        n_own = own.stop - first
        block = {key: _measured(values[own], point, own) for key, (values, point) in columns.items()}
        part = flat[:, : n_own * n_rows]
        bare.fill(block, part, scratch)
        found[own] = part.reshape(-1, n_own, n_rows).swapaxes(0, 1)
    if counts.min() < n_rows:
        found *= (np.arange(n_rows) < counts[:, None])[:, None]
    return found


def _measured(values: AnyArray, point: Array | None, groups: slice) -> AnyArray:
    """Return the rows of some groups from their points, one behind another."""
    if point is not None:
        values = values - point[groups, None]
    return values.reshape(-1, *values.shape[2:])


def _without_reference(feature: Feature) -> Feature:
    return feature if feature.source is None else feature.of_source(feature.source.without_reference)
