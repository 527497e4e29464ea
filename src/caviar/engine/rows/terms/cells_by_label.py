"""Two hidden labels of a row that choose a cell of a table, of which a known label picks an entry.

The answers of a table ``p[z, v]``: with the rows of a block sorted by their answer, the message of each answer to one
label is a matrix product with the other's probabilities, and so is its sum. Nothing of the size of rows times cells is
made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ...._typing import AnyArray, Array
from ....numerics.spread import spread
from ...design.features import Feature
from ...design.keys import FactorKey, StatisticKey
from ...local.local_factor import LocalFactor, LocalTerm
from ...local.statistics import Coefficients, Sums
from .contracted import ContractedTerm
from .row_term import BlockWork

_MOST_CATEGORIES = 64
"""Categories up to which the rows of a block with each of them are enough for a matrix product."""


class _Sorted(NamedTuple):
    """Rows of a block by label, those without one left out: their order, and where each label starts and stops."""

    order: AnyArray
    ends: AnyArray

    def __iter__(self) -> Iterator[tuple[int, slice]]:  # type: ignore[override]
        for label, (start, stop) in enumerate(zip(self.ends[:-1], self.ends[1:], strict=True)):
            if stop > start:
                yield label, slice(start, stop)


class CellsByLabel(ContractedTerm):
    """A table times two statistics of a row, with the entry that one known label chooses."""

    _feature: Feature

    @classmethod
    def of_term(
        cls, local: LocalTerm, factor_of: Mapping[StatisticKey, LocalFactor]
    ) -> ContractedTerm | None:
        """Return the row term; None where it is not a product of a table (K, L, V), two statistics, and a label."""
        if not _is_cells(local) or any(factor_of[own].has_unseen for own in local.parts[0].key.local):
            return None
        made = cls(local, factor_of)
        (made._feature,) = local.look_ups
        return made

    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        part = self._local.parts[0]
        if part.key not in coefficients.parts:
            return
        by_label, table = self._sorted(work), spread(coefficients.parts[part.key], part.shape)
        for message in self._messages[target]:
            ((other, key),) = message.others
            if other.key not in work.state:
                continue
            is_first = message.key == part.key.local[0]
            given = other.view(work.state[other.key], key)[:, by_label.order]
            said = np.empty((len(table) if is_first else table.shape[1], len(by_label.order)))
            for label, rows in by_label:
                cells = table[:, :, label] if is_first else table[:, :, label].T
                np.matmul(cells, given[:, rows], out=said[:, rows])
            self._views[message.key].view(natural, message.key)[:, by_label.order] += said

    def backward(self, work: BlockWork, sums: Sums) -> None:
        part, by_label = self._local.parts[0], self._sorted(work)
        one, other = (
            factor.view(work.counted[factor.key], key)[:, by_label.order] for factor, key in self._operands
        )
        if work.rows.weights is not None:
            one = one * work.rows.weights[by_label.order]
        total = np.zeros(part.shape)
        for label, rows in by_label:
            total[:, :, label] = one[:, rows] @ other[:, rows].T
        sums.parts[part.key] = total

    def _sorted(self, work: BlockWork) -> _Sorted:
        """Return the rows of a block by label."""
        assert self._feature.source is not None
        source, columns = self._feature.source, work.rows.columns
        labels, n_labels = columns[source.key].reshape(-1).astype(np.uint16), self._feature.n_rows
        if source.has_missing:
            labels[~columns[source.mask_key].reshape(-1).astype(bool)] = n_labels
        # short integers are sorted by counting
        order = labels.argsort(kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels)[:n_labels])])
        return _Sorted(order[: ends[-1]], ends)


def _is_cells(local: LocalTerm) -> bool:
    """Whether a term is a table times two statistics of a row with an axis each, and a known label."""
    if len(local.look_ups) != 1 or len(local.parts) != 1 or local.features:
        return False
    (feature,), (part,) = local.look_ups, local.parts
    axes = {own.key: own.axes for own in local.contraction.factors}
    statistics = [axes[key][:-1] for key in part.key.local]
    return (
        feature.n_labels == feature.n_rows
        and not feature.is_sparse
        and feature.n_rows <= _MOST_CATEGORIES
        and len(statistics) == 2
        and len(set(part.key.local)) == 2
        and all(len(own) == 1 for own in statistics)
        and axes[part.key][:-1] == (*statistics[0], *statistics[1])
    )
