"""The factor of the missing entries of a vector that no Categorical of its row gates."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ..._typing import Array
from ...language import Axis, Variable
from ..binding.evidence import Evidence
from ..design.inferred import Inferred
from ..design.keys import StatisticKey
from .local_factor import LocalFactor

WHOLE = "whole"
"""Statistic of a vector that is 1 in every row."""


class VectorFactor(LocalFactor):
    """The factor of the missing entries of one observed vector: a choice among a single category.

    Its statistic is the number 1; the moments of the entries follow by pattern, see :class:`MissingPatterns`.
    """

    def __init__(self, variable: Variable, evidence: Evidence, size: Callable[[Axis], int]) -> None:
        axes: dict[StatisticKey, tuple[Axis, ...]] = {StatisticKey(variable.name, WHOLE): ()}
        super().__init__([variable], [evidence], axes, size)

    @property
    def one_hots(self) -> Collection[StatisticKey]:
        return self.rows.keys()

    def infer(self, natural: Array) -> Inferred:
        """Overwrite the log density of what was observed, (1, B), by 1."""
        log_partition = natural[0].copy()
        natural.fill(1.0)
        return Inferred(log_partition, None)

    def response(self, natural: Array, expected: Array) -> Callable[[Array], Array]:
        """Return zeros for any change: the number 1 changes with nothing."""
        return np.zeros_like

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return nothing: no variable of the row is hidden as a whole."""
        return {}
