"""Rows in an order in which neighbours are alike, by which they are put into cells."""

from __future__ import annotations

import numpy as np

from ...._typing import AnyArray, Array

_ROWS_OF_AN_AXIS = 1_000
"""Rows that the axis of a cut is found from."""

_STEPS = 4
"""Of the power method, for an axis along which rows are spread widely: it need not be the very widest."""


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
    O(B D log(B / size)). A principal-axis tree: McNames, "A fast nearest-neighbor algorithm based on a principal axis
    search tree" (2001).

    Examples
    --------
    >>> values = np.array([[0.0], [9.0], [1.0], [8.0]])
    >>> sorted(map(sorted, order_of_neighbours(values, 2).reshape(2, 2).tolist()))
    [[0, 2], [1, 3]]
    """
    order = np.arange(len(values))
    spread = values.std(axis=0)
    # what does not vary says nothing of who is near
    values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    open_runs = [(0, len(values))]
    while open_runs:
        start, stop = open_runs.pop()
        length = stop - start
        if length <= size:
            continue
        own = values[order[start:stop]]
        along = (own - own.mean(axis=0)) @ _axis(own)
        middle = min(-(-(length // 2) // size) * size, length - 1)
        order[start:stop] = order[start:stop][np.argpartition(along, middle)]
        open_runs += [(start, start + middle), (start + middle, stop)]
    return order


def _axis(values: Array) -> Array:
    """Return an axis along which rows are spread widely, (D,)."""
    few = values[:: max(1, len(values) // _ROWS_OF_AN_AXIS)]
    few = few - few.mean(axis=0)
    axis = few[np.argmax(np.einsum("bd,bd->b", few, few))]
    for _ in range(_STEPS):
        axis = few.T @ (few @ axis)
        length = np.linalg.norm(axis)
        if not length > 0:
            return np.ones(values.shape[1])
        axis = axis / length
    return axis
