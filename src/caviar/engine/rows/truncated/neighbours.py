"""Rows in an order in which neighbours are alike, by which they are put into cells."""

from __future__ import annotations

import numpy as np

from ...._typing import AnyArray, Array

_ROWS_OF_AN_AXIS = 1_000
"""Rows that the axis of a cut is found from."""

_SQUARINGS = 3
"""Of a covariance, whose eighth power has an axis along which rows are spread widely: it need not be the very widest."""

_ROWS = 65_536
"""Rows of runs that are cut side by side."""


def order_of_neighbours(values: Array, size: int) -> AnyArray:
    """Return an order of rows in which each run of ``size`` rows is close together.

    The rows are cut in two across the axis along which they are spread most, and so are its halves, down to runs.

    Parameters
    ----------
    values
        Of each row, shape (B, D).
    size
        Rows of a run.

    Returns
    -------
    ndarray
        Numbers of the rows, shape (B,).

    Notes
    -----
    O(B D (D + log(B / size))), all runs of one length side by side. A principal-axis tree: McNames, "A fast
    nearest-neighbor algorithm based on a principal axis search tree" (2001).

    Examples
    --------
    >>> values = np.array([[0.0], [9.0], [1.0], [8.0]])
    >>> sorted(map(sorted, order_of_neighbours(values, 2).reshape(2, 2).tolist()))
    [[0, 2], [1, 3]]
    """
    order, values = np.arange(len(values)), _in_units(values)
    starts, lengths = np.zeros(1, dtype=np.int64), np.array([len(values)])
    while (is_open := lengths > size).any():
        starts, lengths = starts[is_open], lengths[is_open]
        middles = np.minimum(-(-(lengths // 2) // size) * size, lengths - 1)
        _cut_all(values, order, starts, lengths, middles)
        starts = np.concatenate([starts, starts + middles])
        lengths = np.concatenate([middles, lengths - middles])
    return order


def leaves_of_neighbours(values: Array, n_leaves: int) -> AnyArray:
    """Return for each row the number of its leaf in a tree of so many leaves, with about as many rows in each.

    Parameters
    ----------
    values
        Of each row, shape (B, D).
    n_leaves
        No more than there are rows.

    Examples
    --------
    >>> leaves = leaves_of_neighbours(np.array([[0.0], [9.0], [1.0], [8.0], [20.0], [21.0]]), 3)
    >>> [int(leaves[i] == leaves[j]) for i, j in [(0, 2), (1, 3), (4, 5)]]
    [1, 1, 1]
    """
    order, values = np.arange(len(values)), _in_units(values)
    starts, stops, several = (np.array([own]) for own in (0, len(values), n_leaves))
    done: list[AnyArray] = []
    while len(starts):
        is_open = several > 1
        done.append(starts[~is_open])
        starts, stops, several = starts[is_open], stops[is_open], several[is_open]
        first = several // 2
        middles = (stops - starts) * first // several
        _cut_all(values, order, starts, stops - starts, middles)
        starts, stops = np.concatenate([starts, starts + middles]), np.concatenate([starts + middles, stops])
        several = np.concatenate([first, several - first])
    begins = np.zeros(len(values), dtype=np.int64)
    begins[np.concatenate(done)] = 1
    leaves = np.empty(len(values), dtype=np.int64)
    leaves[order] = np.cumsum(begins) - 1
    return leaves


def _in_units(values: Array) -> Array:
    """Return values with the mean 0 and the standard deviation 1 of each column."""
    spread = values.std(axis=0)
    # what does not vary says nothing of who is near
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _cut_all(values: Array, order: AnyArray, starts: AnyArray, lengths: AnyArray, middles: AnyArray) -> None:
    """Put the rows of runs in order along their axes, as far as before and after the middle of each."""
    for length, middle in np.unique(np.stack([lengths, middles], axis=1), axis=0):
        own = (lengths == length) & (middles == middle)
        _cut(values, order, starts[own], int(length), int(middle))


def _cut(values: Array, order: AnyArray, starts: AnyArray, length: int, middle: int) -> None:
    """Put the rows of runs of one length in order along their axes, as far as before and after ``middle``."""
    together = max(1, _ROWS // length)
    for first in range(0, len(starts), together):
        places = starts[first : first + together, None] + np.arange(length)
        rows = order[places]
        own = values[rows]
        own -= own.mean(axis=1, keepdims=True)
        along = own @ _axes(own[:, :: max(1, length // _ROWS_OF_AN_AXIS)])[:, :, None]
        parts = np.argpartition(along[:, :, 0], middle, axis=1)
        order[places] = np.take_along_axis(rows, parts, axis=1)


def _axes(values: Array) -> Array:
    """Return an axis of each run along which its rows are spread widely, (C, D)."""
    power = values.transpose(0, 2, 1) @ values
    for _ in range(_SQUARINGS):
        total = np.trace(power, axis1=1, axis2=2)[:, None, None]
        power = power / np.where(total > 0, total, 1.0)
        power = power @ power
    widest = np.einsum("cdd->cd", power).argmax(axis=1)
    return power[np.arange(len(power)), widest]
