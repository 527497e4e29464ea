"""Rows in an order in which neighbours are alike, by which they are put into cells."""

from __future__ import annotations

import numpy as np

from ...._typing import AnyArray, Array

_ROWS_OF_AN_AXIS = 1_000
"""Rows that the axis of a cut is found from."""

_SQUARINGS = 3
"""Of a covariance, whose eighth power has an axis along which rows are spread widely, maybe not the very widest."""

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
    O(B D (D + log(B / size))), all runs of one length side by side, in single precision. A principal-axis tree:
    McNames, "A fast nearest-neighbor algorithm based on a principal axis search tree" (2001).

    Examples
    --------
    >>> values = np.array([[0.0], [9.0], [1.0], [8.0]])
    >>> sorted(map(sorted, order_of_neighbours(values, 2).reshape(2, 2).tolist()))
    [[0, 2], [1, 3]]
    """
    order = np.arange(len(values))
    spread = values.std(axis=0)
    # what does not vary says nothing of who is near
    values = ((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    starts, lengths = np.zeros(1, dtype=np.int64), np.array([len(values)])
    while (is_open := lengths > size).any():
        starts, lengths = starts[is_open], lengths[is_open]
        middles = np.minimum(-(-(lengths // 2) // size) * size, lengths - 1)
        for length in np.unique(lengths):
            own = lengths == length
            _cut(values, order, starts[own], int(length), int(middles[own][0]))
        starts = np.concatenate([starts, starts + middles])
        lengths = np.concatenate([middles, lengths - middles])
    return order


def _cut(values: Array, order: AnyArray, starts: AnyArray, length: int, middle: int) -> None:
    """Put the rows of runs of one length in order along their axes, as far as before and after ``middle``."""
    together = max(1, _ROWS // length)
    for first in range(0, len(starts), together):
        places = starts[first : first + together, None] + np.arange(length)
        rows = order[places]
        own = values.take(rows, axis=0)
        along = own @ _axes(own[:, :: max(1, length // _ROWS_OF_AN_AXIS)])[:, :, None]
        parts = np.argpartition(along[:, :, 0], middle, axis=1)
        order[places] = np.take_along_axis(rows, parts, axis=1)


def _axes(values: Array) -> Array:
    """Return an axis of each run along which its rows are spread widely, (C, D)."""
    n_rows = values.shape[1]
    values = values - np.full((1, n_rows), 1 / n_rows, dtype=values.dtype) @ values
    power = values.transpose(0, 2, 1) @ values
    for _ in range(_SQUARINGS):
        total = np.trace(power, axis1=1, axis2=2)[:, None, None]
        power = power / np.where(total > 0, total, 1.0)
        power = power @ power
    widest = np.einsum("cdd->cd", power).argmax(axis=1)
    return power[np.arange(len(power)), widest]
