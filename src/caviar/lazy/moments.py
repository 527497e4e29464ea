"""Mean, spread and median of many rows, at any scale and without a copy of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .._typing import AnyArray, Array
from ..numerics.blas import one_blas_thread
from .block_map import map_blocks, total_of

_BLOCK_ROWS = 8_192

_FEW = 2_048
"""Numbers whose products BLAS adds up in one thread, however many it may have."""

_NARROW = 32
"""Columns up to which a block is turned, so that what is done to each column runs along its numbers."""

_LARGEST_PRECISION = 1e150
"""By which values that have squares can be multiplied."""


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
    if weights is None and type(rows) is np.ndarray and 0 < len(rows) <= _BLOCK_ROWS:
        block = np.ascontiguousarray(rows, dtype=np.float64)
        return _at_once(block) if block.size <= _FEW else _in_one_thread(block)
    return _of_blocks(rows, weights)


@one_blas_thread()
def _of_blocks(rows: Any, weights: Any) -> Moments:
    """Return the moments in two passes over blocks of rows."""
    total = float(len(rows)) if weights is None else total_of(weights)
    mean = np.zeros(rows.shape[1:])
    largest = np.zeros(rows.shape[1:])
    for _, (own, size) in map_blocks(_First(total), rows, weights, size=_BLOCK_ROWS):
        mean += own
        np.maximum(largest, size, out=largest)
    unit = largest + (largest == 0)
    variance, rest = np.zeros(rows.shape[1:]), np.zeros(rows.shape[1:])
    for _, (own, square) in map_blocks(_Second(total, mean, unit), rows, weights, size=_BLOCK_ROWS):
        rest += own
        variance += square
    # what rounding left of the mean: a constant column is measured from its very value, and has no spread
    spread = np.sqrt(np.maximum(variance - rest**2, 0.0))
    return Moments(mean + rest * unit, spread * unit, largest)


def _at_once(block: Array) -> Moments:
    """Return the moments of rows that are one block and count alike: the same operations, each once."""
    share = _equal_shares(len(block))
    mean = _weighted_sum(share, block) + 0.0
    largest = np.maximum.reduce(np.abs(block), axis=0)
    unit = largest + (largest == 0)
    deviation = (block - mean) / unit
    rest = _weighted_sum(share, deviation) + 0.0
    variance = _weighted_sum(share, np.square(deviation))
    return Moments(mean + rest * unit, np.sqrt(np.maximum(variance - rest**2, 0.0)) * unit, largest)


@lru_cache(maxsize=8)
def _equal_shares(n_rows: int) -> Array:
    """Return the weights of so many rows that count alike and add up to 1, not to be written to."""
    return np.full(n_rows, 1.0 / n_rows)


@one_blas_thread()
def _in_one_thread(block: Array) -> Moments:
    """Return the same of more numbers than BLAS takes in one thread by itself."""
    return _at_once(block)


def _weighted_sum(weights: Array, rows: Array) -> Array:
    """Return the sum of rows times weights: ``np.tensordot(weights, rows, 1)``, which takes longer over its axes."""
    if rows.ndim == 1:
        return np.dot(weights, rows)
    # a block of which every row has weight zero is empty, and -1 would not tell its columns
    columns = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    return np.dot(weights[None], columns).reshape(rows.shape[1:])


@dataclass(frozen=True, eq=False)
class _First:
    """Of a block, its part of the mean and the largest sizes."""

    total: float

    def __call__(self, rows: Array, weights: Array | None) -> tuple[Array, Array]:
        block, weight = _counting(rows, weights)
        return _weighted_sum(weight / self.total, block), _largest(block)


@dataclass(frozen=True, eq=False)
class _Second:
    """A block's parts of the mean deviation and the mean squared deviation, each in its own units."""

    total: float
    mean: Array
    unit: Array

    def __call__(self, rows: Array, weights: Array | None) -> tuple[Array, Array]:
        block, weight = _counting(rows, weights)
        deviation = _in_units(block, self.mean, self.unit)
        share = weight / self.total
        return _weighted_sum(share, deviation), _weighted_sum(share, np.square(deviation))


def _largest(block: Array) -> Array:
    """Return the largest size of each column."""
    columns = block.reshape(len(block), math.prod(block.shape[1:]))
    if columns.shape[1] > _NARROW:
        return np.maximum.reduce(np.abs(block), axis=0, initial=0.0)
    # column by column: along rows of a few numbers a reduction takes ten times as long
    largest = np.maximum.reduce(np.abs(columns.T, order="C"), axis=1, initial=0.0)
    return largest.reshape(block.shape[1:])


def _in_units(block: Array, mean: Array, unit: Array) -> Array:
    """Return the deviations of rows from a mean, in units of each column."""
    columns = block.reshape(len(block), math.prod(block.shape[1:]))
    if columns.shape[1] > _NARROW:
        return (block - mean) / unit
    found = np.subtract(columns.T, mean.reshape(-1, 1), order="C")
    found /= unit.reshape(-1, 1)
    return np.ascontiguousarray(found.T).reshape(block.shape)


def _counting(rows: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return the rows of a block that count, and their weights."""
    # BLAS adds up strided numbers in another order: the same values give the same bits however they lie
    block = np.ascontiguousarray(rows, dtype=np.float64)
    if weights is None:
        return block, np.ones(len(block))
    return (block, weights) if weights.all() else (block[weights > 0], weights[weights > 0])


def medians(rows: Any, weights: Any, observed: Any, precisions: Any = None) -> Array:
    """Return the weighted median over the first axis of the medians of blocks, in float64.

    Of up to 8,192 rows that is the median; of more it is as robust, though not quite the same number.

    Parameters
    ----------
    rows
        Shape (N, ...), an array or rows that are read in blocks.
    weights
        Likewise, shape (N,), or None for one each.
    observed
        Likewise, which entries count, shape (N, ...) with as many of the axes as there are; None if all do.
    precisions
        Likewise, known precisions, with which entries count; None if they do not differ.

    Returns
    -------
    Array
        Of the shape of a row. Where nothing has weight, it is one of the values.
    """
    arrays = (rows, weights, observed, precisions)
    found = [own for _, own in map_blocks(_median_of_block, *arrays, size=_BLOCK_ROWS)]
    middles, totals = (np.stack(parts) for parts in zip(*found, strict=True))
    return _weighted_medians(middles, totals)[0]


def _median_of_block(rows: Any, weights: Any, observed: Any, precisions: Any) -> tuple[Array, Array]:
    """Return the weighted median of each column of a block, and the weight that it has."""
    block = np.asarray(rows, dtype=np.float64)
    return _weighted_medians(block, _weights_of(block, weights, observed, precisions))


def _weights_of(block: Array, weights: Any, observed: Any, precisions: Any) -> Array:
    """Return the weight of each entry of a block."""
    total = np.ones(len(block)) if weights is None else np.asarray(weights)
    total = _beside(total, block)
    if observed is not None:
        total = total * _beside(np.asarray(observed), block)
    if precisions is not None:
        total = total * np.minimum(_beside(np.asarray(precisions), block), _LARGEST_PRECISION)
    return np.broadcast_to(total, block.shape)


def _beside(values: Array, block: Array) -> Array:
    """Return values with axes of length 1 for those that the block has besides; of matrices the diagonals."""
    if values.ndim > block.ndim:
        values = np.diagonal(values, axis1=-2, axis2=-1)
    return values.reshape(values.shape + (1,) * (block.ndim - values.ndim))


def _weighted_medians(values: Array, weights: Array) -> tuple[Array, Array]:
    """Return the lower weighted median over the first axis, and the sum of the weights."""
    order = np.argsort(values, axis=0, kind="stable")
    reached = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    place = np.argmax(reached >= 0.5 * reached[-1], axis=0)[None]
    middle = np.take_along_axis(values, np.take_along_axis(order, place, axis=0), axis=0)[0]
    return middle, reached[-1]


def medians_by_label(
    start: Array,
    averaged: tuple[int, ...],
    rows: Any,
    labels: Any,
    weights: Any,
    observed: Any,
    precisions: Any = None,
) -> tuple[Array, Array]:
    """Return the weighted medians of the medians of blocks of the rows of each label, and their weights, in float64.

    Parameters
    ----------
    start
        Values of labels without rows, shape (K, shape of a row without the axes that are averaged).
    averaged
        Axes of a row's value whose entries are all of one median.
    rows, labels
        Shapes (N, ...) and (N,), arrays or rows that are read in blocks.
    weights, observed, precisions
        As for :func:`medians`.

    Returns
    -------
    tuple
        Both of the shape of ``start``.
    """
    arrays = (rows, labels, weights, observed, precisions)
    found = [own for _, own in map_blocks(_MediansOfLabels(averaged), *arrays, size=_BLOCK_ROWS)]
    own, middles, totals = _medians_of_labels(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    points, weight = np.array(start), np.zeros(start.shape)
    points[own] = np.where(totals > 0, middles, points[own])
    weight[own] = totals
    return points, weight


@dataclass(frozen=True, eq=False)
class _MediansOfLabels:
    """Of a block, the labels that occur, and the median and the weight of each column of their rows."""

    averaged: tuple[int, ...]

    def __call__(
        self, rows: Any, labels: Any, weights: Any, observed: Any, precisions: Any
    ) -> tuple[AnyArray, Array, Array]:
        block = np.asarray(rows, dtype=np.float64)
        weight = _weights_of(block, weights, observed, precisions)
        repeats = math.prod(block.shape[1 + axis] for axis in self.averaged)
        every = np.repeat(np.asarray(labels).astype(np.intp), repeats)
        return _medians_of_labels(every, self._in_rows(block), self._in_rows(weight))

    def _in_rows(self, block: Array) -> Array:
        """Return a block with the averaged axes after the rows, and as separate rows."""
        turned = np.moveaxis(block, [1 + axis for axis in self.averaged], range(1, 1 + len(self.averaged)))
        return turned.reshape(-1, *turned.shape[1 + len(self.averaged) :])


def _medians_of_labels(labels: AnyArray, values: Array, weights: Array) -> tuple[AnyArray, Array, Array]:
    """Return the labels that occur, and the lower weighted median and the weight of each column of their rows."""
    own, places = np.unique(labels, return_inverse=True)
    shape = (len(own), *values.shape[1:])
    middles, totals = np.empty((len(own), math.prod(shape[1:]))), np.empty((len(own), math.prod(shape[1:])))
    columns = zip(values.reshape(len(values), -1).T, weights.reshape(len(values), -1).T, strict=True)
    for number, (column, weight) in enumerate(columns):
        order = np.lexsort((column, places))
        first = np.flatnonzero(np.diff(places[order], prepend=-1))
        last = np.append(first[1:], len(order)) - 1
        totals[:, number] = np.add.reduceat(weight[order], first)
        # shares, since what one label's rows weigh may be lost beside another's
        total = totals[places[order], number]
        reached = np.cumsum(np.divide(weight[order], total, out=np.zeros(len(order)), where=total > 0))
        half = np.searchsorted(reached, np.append(0.0, reached[last[:-1]]) + 0.5)
        middles[:, number] = column[order[np.clip(half, first, last)]]
    return own, middles.reshape(shape), totals.reshape(shape)
