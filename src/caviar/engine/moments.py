"""Mean and spread of many rows, at any scale and without a copy of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._lazy import total_of
from .._typing import Array

__all__ = ["Moments", "moments"]

_BLOCK_ROWS = 8_192


@dataclass(frozen=True)
class Moments:
    """Weighted mean, standard deviation and largest size of many rows.

    Attributes
    ----------
    mean, spread, largest
        Each of the shape of a row.
    """

    mean: Array
    spread: Array
    largest: Array


def moments(rows: Any, weights: Any) -> Moments:
    """Return the moments over the first axis, in float64; rows of weight zero count nothing.

    Squares are taken in units of the largest value of each column, lest they over- or underflow.

    Parameters
    ----------
    rows
        Shape (N, ...), an array or rows that are read in blocks.
    weights
        Likewise, shape (N,), not all zero, or None for one each.
    """
    total = float(len(rows)) if weights is None else total_of(weights)
    mean = np.zeros(rows.shape[1:])
    largest = np.zeros(rows.shape[1:])
    for block, weight in _blocks(rows, weights):
        mean += _weighted_sum(weight / total, block)
        np.maximum(largest, np.maximum.reduce(np.abs(block), axis=0, initial=0.0), out=largest)
    unit = largest + (largest == 0)
    variance, rest = np.zeros(rows.shape[1:]), np.zeros(rows.shape[1:])
    for block, weight in _blocks(rows, weights):
        deviation = (block - mean) / unit
        rest += _weighted_sum(weight / total, deviation)
        variance += _weighted_sum(weight / total, np.square(deviation))
    # what rounding left of the mean: a constant column is measured from its very value, and has no spread
    spread = np.sqrt(np.maximum(variance - rest**2, 0.0))
    return Moments(mean + rest * unit, spread * unit, largest)


def _weighted_sum(weights: Array, rows: Array) -> Array:
    """Return the sum of rows times weights: ``np.tensordot(weights, rows, 1)``, which takes longer over its axes."""
    # a block of which every row has weight zero is empty, and -1 would not tell its columns
    columns = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    return np.dot(weights[None], columns).reshape(rows.shape[1:])


def _blocks(rows: Any, weights: Any) -> Iterator[tuple[Array, Array]]:
    for start in range(0, len(rows), _BLOCK_ROWS):
        # BLAS adds up strided numbers in another order: the same values give the same bits however they lie
        block = np.ascontiguousarray(rows[start : start + _BLOCK_ROWS], dtype=np.float64)
        if weights is None:
            yield block, np.ones(len(block))
            continue
        weight = weights[start : start + _BLOCK_ROWS]
        yield (block, weight) if weight.all() else (block[weight > 0], weight[weight > 0])
