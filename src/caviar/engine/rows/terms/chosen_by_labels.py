"""Terms in which labels of a row choose from a table: a gather and a tally in place of one-hots that are written out.

The words of a document, one label each: of a table (K, V) each word has the column of its label, and the sums are those
of the local statistics by label. So the cost is that of the labels and not of the labels times the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Axis
from ....numerics.spread import spread
from ....numerics.sums.by_label import sums_by_label
from ...design.features import Feature, feature_major
from ...design.keys import FactorKey, StatisticKey
from ...local.local_factor import LocalFactor, LocalTerm
from ...local.statistics import Coefficients, Sums
from .contracted import ContractedTerm
from .row_term import BlockWork

_FEWEST_CATEGORIES = 4
"""Categories from which on labels are looked up: the product with few is as fast."""


class _Layout(NamedTuple):
    """How the axes of a table, of labels, and of a local statistic go together."""

    places: tuple[int, ...]
    """Axes of the table, the categories last."""
    order: tuple[int, ...]
    """Axes of what is chosen, (table without categories..., labels...), in the order of the local statistic."""


class ChosenByLabels(ContractedTerm):
    """A table times one local statistic, of which each of the labels of a row chooses an entry."""

    _layout: _Layout
    _feature: Feature
    _key: StatisticKey

    @classmethod
    def of_term(
        cls, local: LocalTerm, factor_of: Mapping[StatisticKey, LocalFactor]
    ) -> ContractedTerm | None:
        """Return the row term; None where it is not a product of a table, one local statistic, and labels."""
        layout = _layout_of(local)
        if layout is None:
            return None
        made = cls(local, factor_of)
        made._layout = layout
        (made._feature,), (made._key,) = local.features, local.parts[0].key.local
        return made

    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        part = self._local.parts[0]
        if part.key not in coefficients.parts:
            return
        labels, observed = self._labels(work)
        table = spread(coefficients.parts[part.key], part.shape).transpose(self._layout.places)
        # labels were checked against the number of categories when the data were bound
        chosen = np.take(table, labels, axis=-1, mode="clip")
        if observed is not None:
            chosen *= observed
        view = self._views[self._key].view(natural, self._key)
        view += chosen.transpose(*self._layout.order, chosen.ndim - 1)

    def backward(self, work: BlockWork, sums: Sums) -> None:
        part, (labels, observed) = self._local.parts[0], self._labels(work)
        (factor, key) = self._operands[0]
        values = factor.view(work.counted[factor.key], key)
        if work.rows.weights is not None:
            values = values * work.rows.weights
        values = values.transpose(*np.argsort(self._layout.order), values.ndim - 1)
        if observed is not None:
            values = values * observed
        shape, places = part.shape, self._layout.places
        n_labels = shape[places[-1]]
        each = values.reshape(-1, labels.size)
        total = sums_by_label(each, labels.ravel(), n_labels).reshape([shape[place] for place in places])
        sums.parts[part.key] = np.ascontiguousarray(total.transpose(np.argsort(places)))

    def _labels(self, work: BlockWork) -> tuple[AnyArray, AnyArray | None]:
        """Return the labels of a block, (plates..., B), and which of them were observed, or None if all were."""
        source, columns = self._feature.source, work.rows.columns
        assert source is not None
        labels = feature_major(columns[source.key]).astype(np.intp, copy=False)
        observed = feature_major(columns[source.mask_key]) if source.has_missing else None
        return labels, observed


def _layout_of(local: LocalTerm) -> _Layout | None:
    """Return how the axes go together; None of a term of another kind."""
    if local.look_ups or len(local.parts) != 1 or len(local.features) != 1:
        return None
    (part,), (feature,) = local.parts, local.features
    if not _are_labels(feature) or len(part.key.local) != 1:
        return None
    axes = {own.key: own.axes for own in local.contraction.factors}
    table, statistic, labels = axes[part.key], axes[part.key.local[0]][:-1], axes[feature.key]
    *plates, category = labels[:-1]
    rest = tuple([axis for axis in table if axis != category])
    together = (*rest, *plates)
    if (
        category not in table
        or category in statistic
        or sorted(map(id, together)) != sorted(map(id, statistic))
    ):
        return None
    return _Layout(_places((*rest, category), table), _places(statistic, together))


def _are_labels(feature: Feature) -> bool:
    """Whether a feature is the one-hot of labels of a row, one or more."""
    n_labels = feature.n_labels or 0
    return n_labels >= _FEWEST_CATEGORIES and not feature.is_sparse and feature.statistic == "x"


def _places(wanted: tuple[Axis, ...], among: tuple[Axis, ...]) -> tuple[int, ...]:
    return tuple([among.index(axis) for axis in wanted])
