"""Points of groups: what their records show of each, where a label of groups is chosen by the records of these."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Data, Indexed, Variable
from ...ascent.problem import Problem
from ...design.keys import ColumnKey
from ...rows.subsample import Sample

_MOST_COLUMNS = 20
"""Known columns whose slopes are points: of more, a group has too few records for them."""


def labels_of_groups(problem: Problem, sample: Sample, gate: Variable) -> Iterator[tuple[Variable, AnyArray]]:
    """Yield the observed variables that a label of groups chooses for, and the group of each record of the sample."""
    for leaf in problem.bound.observed:
        for slot in leaf.slots.values():
            if slot.index is gate and slot.through is not None:
                column = sample.columns.get(ColumnKey(slot.through.by.name))
                if column is not None and gate.plates == (slot.through.plate,):
                    yield leaf, np.asarray(column).astype(np.intp)
                break


def points_of_groups(
    problem: Problem, sample: Sample, leaf: Variable, values: Array, labels: AnyArray, n_groups: int
) -> Array:
    """Return the mean of each group's records, and how these go with known columns, (groups, numbers).

    That is a regression within each group. All records together count as one more record in each, so that a group with
    few of them, or none, has about the slopes of all.

    Parameters
    ----------
    values
        Of the records of the sample, (N, d); NaN where missing.
    labels
        The group of each record, (N,).
    """
    known = [np.ones((sample.n_rows, 1)), *_columns(problem, sample, leaf)]
    design = np.concatenate(known, axis=1)
    design[:, 1:] -= np.average(design[:, 1:], axis=0, weights=sample.row_weights)
    seen = ~np.isnan(values)
    points = []
    for own, there in zip(np.nan_to_num(values).T, seen.T, strict=True):
        weights = sample.row_weights * there
        squares = _sums(design[:, :, None] * design[:, None, :] * weights[:, None, None], labels, n_groups)
        products = _sums(design * (own * weights)[:, None], labels, n_groups)
        total = max(weights.sum(), np.finfo(float).tiny)
        squares += squares.sum(axis=0) / total + 1e-9 * np.eye(design.shape[1])
        products += products.sum(axis=0) / total
        points.append(np.linalg.solve(squares, products[..., None])[..., 0])
    return np.concatenate(points, axis=1)


def _columns(problem: Problem, sample: Sample, leaf: Variable) -> Iterator[Array]:
    """Yield the known columns among the arguments of a variable, in units of their spread, (N, 1) or (N, p)."""
    n_columns = 0
    for slot in leaf.slots.values():
        column = sample.columns.get(ColumnKey(slot.node.name)) if isinstance(slot.node, Data) else None
        if isinstance(slot.expression, Indexed) or not isinstance(column, np.ndarray):
            continue
        if slot.node.plates == (problem.bound.data_plate,):
            own = column.reshape(sample.n_rows, -1).astype(np.float64)
            n_columns += own.shape[1]
            if n_columns > _MOST_COLUMNS:
                return
            spread = own.std(axis=0)
            yield own / np.where(spread > 0, spread, 1.0)


def _sums(rows: Array, labels: AnyArray, n_groups: int) -> Array:
    total = np.zeros((n_groups, *rows.shape[1:]))
    np.add.at(total, labels, rows)
    return total
