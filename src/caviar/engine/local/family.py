"""The factor of one variable of a row, of any family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import Array
from ...families import ExponentialFamily
from ...language import Axis, Variable
from ..binding.evidence import Evidence
from ..design.features import feature_major, row_major
from ..design.inferred import Inferred
from ..design.keys import StatisticKey
from .local_factor import LocalFactor, own_axes, symmetric

_ROWS_AT_ONCE = 16512
"""Of a longer block: what a family makes for so many rows stays in the cache."""


class FamilyFactor(LocalFactor):
    """The factor of one local variable of any family."""

    def __init__(
        self,
        variable: Variable,
        evidence: Evidence,
        data_axis: Axis,
        size: Callable[[Axis], int],
        certain: Mapping[Variable, ExponentialFamily] | None = None,
    ) -> None:
        axes = {
            StatisticKey(variable.name, s): own_axes(variable, s, data_axis)
            for s in (*variable.family.statistics, *variable.by_step)
        }
        super().__init__([variable], [evidence], axes, size, certain)

    @property
    def values(self) -> Array | None:
        """The values 0 and 1 of a number that is 0 or 1; None for other variables."""
        (variable,) = self.variables
        return np.array([[0.0, 1.0]]) if variable.is_zero_or_one and self.n_rows == 1 else None

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters by expected statistics."""
        starts = range(0, max(natural.shape[-1], 1), _ROWS_AT_ONCE)
        found = [self._inferred(natural[:, start : start + _ROWS_AT_ONCE]) for start in starts]
        log_partition, entropy = zip(*found, strict=True)
        return Inferred(_joined(log_partition), _joined(entropy))

    def _inferred(self, natural: Array) -> tuple[Array, Array]:
        """Overwrite natural parameters, and return log-partitions and entropies: (plates..., B) each."""
        (variable,) = self.variables
        arrays = (self._once(natural, variable, s) for s in variable.family.statistics)
        distribution = variable.family.from_natural(tuple(map(row_major, arrays)))
        # before the natural parameters, which the distribution reads where they lie, are overwritten
        log_partition, entropy = distribution.log_partition, self.entropy(variable, distribution)
        expected = distribution.expected_statistics
        for statistic, value in zip(variable.family.statistics, expected, strict=True):
            self.view(natural, StatisticKey(variable.name, statistic))[...] = feature_major(value)
        return feature_major(log_partition), feature_major(entropy)

    def _once(self, natural: Array, variable: Variable, statistic: str) -> Array:
        """Return one natural parameter, (shape..., B), or (shape..., 1) of a matrix that is the same for every row."""
        view = self.view(natural, StatisticKey(variable.name, statistic))
        if len(variable.letters[statistic]) < 2:
            return view
        # factors of a linear model share one precision, which is then factorised once
        is_shared = np.array_equal(view, np.broadcast_to(view[..., :1], view.shape))
        return symmetric(view[..., :1] if is_shared else view)

    def response(self, natural: Array, expected: Array) -> Callable[[Array], Array]:
        """Return how expected statistics change with natural parameters."""
        (variable,) = self.variables
        distribution = self.distributions(natural)[variable]

        def respond(change: Array) -> Array:
            arrays = (self.own(change, variable, s) for s in variable.family.statistics)
            moved, found = distribution.response(tuple(map(row_major, arrays))), np.empty_like(change)
            for statistic, value in zip(variable.family.statistics, moved, strict=True):
                self.view(found, StatisticKey(variable.name, statistic))[...] = feature_major(value)
            return found

        return respond

    def infer_shared(self, leading: Array, rest: Array, weights: Array | None) -> tuple[Array, Array]:
        """Overwrite leading natural parameters, (E', B), by expected statistics; the rest are the same for all rows.

        Parameters
        ----------
        rest
            The other natural parameters, shape (E - E',).
        weights
            Of the rows, or None.

        Returns
        -------
        tuple
            Entropy of each row, shape (B,), and the sums over the rows of the other statistics, shape (E - E',).
        """
        (variable,) = self.variables
        start = len(leading)
        natural, own, shared = [], [], []
        for statistic in variable.family.statistics:
            key = StatisticKey(variable.name, statistic)
            rows, is_own = self.rows[key], self.rows[key].stop <= start
            values = leading[rows] if is_own else rest[rows.start - start : rows.stop - start]
            (own if is_own else shared).append(statistic)
            values = values.reshape(*self.shapes[key], -1)
            is_matrix = len(variable.letters[statistic]) == 2
            natural.append(row_major(symmetric(values) if is_matrix else values))
        distribution = variable.family.from_natural(tuple(natural))
        entropy = distribution.entropy_about_base().reshape(leading.shape[1], -1).sum(axis=1)
        sums = [distribution.summed_statistic(statistic, weights).ravel() for statistic in shared]
        for statistic in own:
            expected = distribution.expected_statistic(statistic)
            self.view(leading, StatisticKey(variable.name, statistic))[...] = feature_major(expected)
        return entropy, np.concatenate(sums)

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the family member of each row, batch (B, plates...)."""
        (variable,) = self.variables
        arrays = (self.own(natural, variable, s) for s in variable.family.statistics)
        return {variable: variable.family.from_natural(tuple(map(row_major, arrays)))}


def _joined(strips: Sequence[Array]) -> Array:
    return strips[0] if len(strips) == 1 else np.concatenate(strips, axis=-1)
