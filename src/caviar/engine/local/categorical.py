"""The factor of one Categorical of a row."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ... import families
from ..._typing import Array
from ...language import Axis, Variable
from ..binding.evidence import Evidence
from ..design.features import row_major
from ..design.inferred import Inferred
from ..design.keys import StatisticKey
from .local_factor import LocalFactor, own_axes

_FLOOR, _CEILING = -600.0, 500.0
"""Between these logits exp is a normal number; NumPy's exp is many times slower where it is not."""


def softmax_inplace(logits: Array) -> Array:
    """Overwrite logits (..., K, B) by probabilities over K; return the log of their sums, (..., B).

    The largest logit of each column is subtracted only where the block's range needs it. Probabilities
    below exp(-300) come out as some number below that, and those of logits of minus infinity as 0.
    """
    if not logits.size:
        return np.zeros((*logits.shape[:-2], logits.shape[-1]))
    lowest, highest = np.minimum.reduce(logits, axis=None), np.maximum.reduce(logits, axis=None)
    top = excluded = None
    # a NaN fails both comparisons and takes the careful path
    if not (lowest > _FLOOR and highest < _CEILING):
        excluded = np.isneginf(logits) if lowest == -np.inf else None
        largest = logits.max(axis=-2)
        if not (largest.min() > _FLOOR / 2 and highest < _CEILING):
            top = largest
            np.subtract(logits, top[..., None, :], out=logits)
        np.maximum(logits, _FLOOR, out=logits)
    np.exp(logits, out=logits)
    if excluded is not None:
        np.copyto(logits, 0.0, where=excluded)
    total = np.ones(logits.shape[-2]) @ logits
    np.multiply(logits, (1.0 / total)[..., None, :], out=logits)
    np.log(total, out=total)
    if top is not None:
        total += top
    return total


def responding(probabilities: Array, change: Array) -> Array:
    """Return by how much probabilities change with their logits, (..., K, B) both."""
    weighted = probabilities * change
    weighted -= probabilities * weighted.sum(axis=-2, keepdims=True)
    return weighted


class CategoricalFactor(LocalFactor):
    """The factor of one local Categorical."""

    def __init__(
        self, variable: Variable, evidence: Evidence, data_axis: Axis, size: Callable[[Axis], int]
    ) -> None:
        axes = {
            StatisticKey(variable.name, s): own_axes(variable, s, data_axis) for s in ("x", *variable.by_step)
        }
        super().__init__([variable], [evidence], axes, size)
        self.labels = (variable,)

    @property
    def one_hots(self) -> Collection[StatisticKey]:
        return self.rows.keys()

    @property
    def values(self) -> Array | None:
        """One statistic for each category; None if a row has several labels."""
        (variable,) = self.variables
        return np.eye(self.n_rows) if self.n_rows == variable.dimension else None

    def infer(self, natural: Array) -> Inferred:
        """Overwrite logits by responsibilities."""
        (shape,) = self.shapes.values()
        return Inferred(softmax_inplace(natural.reshape(*shape, -1)), None)

    def response(self, natural: Array, expected: Array) -> Callable[[Array], Array]:
        """Return how responsibilities change with logits: r times what each changes by beyond the mean change."""
        (shape,) = self.shapes.values()
        probabilities = expected.reshape(*shape, -1)

        def respond(change: Array) -> Array:
            return responding(probabilities, change.reshape(*shape, -1)).reshape(change.shape)

        return respond

    def distributions(self, natural: Array) -> dict[Variable, Any]:
        """Return the Categorical of each row."""
        expected = natural.copy()
        self.infer(expected)
        (variable,), (key,) = self.variables, self.rows
        return {variable: families.Categorical(row_major(self.view(expected, key)))}
