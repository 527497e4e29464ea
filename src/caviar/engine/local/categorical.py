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

_FACTORS, _LOG_OF_PRODUCT = 8, 700.0
"""Factors of a product of which the log is taken, once no more are multiplied, and what that log may be."""


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


def softmax_beside_first(logits: Array, weights: Array | None = None) -> Array:
    """Overwrite logits (..., K, B) less those of the first category by probabilities over K.

    What is in the place of the first category is not read: its logits are 0, so it takes no exp.

    Parameters
    ----------
    weights
        What the logs of the sums are counted by, (..., B) or (B,); 1 by default.

    Returns
    -------
    The logs of the sums over K of the exp of the logits, summed over B, (...,).
    """
    others = logits[..., 1:, :]
    lowest, highest = np.minimum.reduce(others, axis=None), np.maximum.reduce(others, axis=None)
    # a NaN fails both comparisons and takes the careful path
    if lowest > _FLOOR and highest < _CEILING:
        return _beside_first(logits, weights, highest)
    is_far = ~((others.min(axis=(-2, -1)) > _FLOOR) & (others.max(axis=(-2, -1)) < _CEILING))
    far = logits[is_far]
    far[..., 0, :] = 0.0
    logs = softmax_inplace(far)
    others[is_far] = 0.0
    found = np.asarray(_beside_first(logits, weights, _CEILING))
    logits[is_far] = far
    own = weights if weights is None or weights.ndim == 1 else weights[is_far]
    found[is_far] = logs.sum(axis=-1) if own is None else np.vecdot(logs, own)
    return found


def _beside_first(logits: Array, weights: Array | None, highest: float) -> Array:
    """Do what :func:`softmax_beside_first` says with logits between the floor and ``highest``."""
    others = logits[..., 1:, :]
    np.exp(others, out=others)
    total = np.add(others[..., 0, :], 1.0)
    for k in range(1, others.shape[-2]):
        total += others[..., k, :]
    share = np.divide(1.0, total, out=logits[..., 0, :])
    for k in range(others.shape[-2]):
        others[..., k, :] *= share
    if weights is not None:
        return np.vecdot(np.log(total, out=total), weights)
    return _sums_of_logs(total, highest + np.log(logits.shape[-2]))


def _sums_of_logs(values: Array, largest: float) -> Array:
    """Return the sums over the last axis of the logs of numbers from 1 on: logs of products take fewer logs.

    Parameters
    ----------
    largest
        A bound on the logs.
    """
    number = 1
    while number < _FACTORS and 3 * number * max(largest, 1.0) < _LOG_OF_PRODUCT and values.shape[-1] > 1:
        half, is_odd = divmod(values.shape[-1], 2)
        products = values[..., :half] * values[..., half : 2 * half]
        if is_odd:
            products[..., :1] *= values[..., -1:]
        values, number = products, (3 if is_odd else 2) * number
    return np.log(values).sum(axis=-1)


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
