"""Residuals: the values of a leaf less the other addends beside a product, by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._typing import AnyArray, Array
from ....language import Constant, Data, Indexed, Node, Part, Plate, Variable
from ....language.nodes.algebra import Addend
from ....language.nodes.roles import one_hot
from .columns import Setting
from .statement import sum_of

_ROUNDS = 3
"""Times that each addend is found given the others."""

_MOST_COEFFICIENTS = 100
"""Coefficients of a column that are solved for; of more the groups have the same ones."""

_RIDGE = 1e-8


@dataclass(frozen=True, eq=False)
class _Addend:
    """What is added to a product: a coefficient for each column of each group of rows, or a number for each row.

    Attributes
    ----------
    columns
        What the coefficients multiply, (rows, p); None of a number for each row.
    groups
        Which group each row belongs to.
    plates
        The plates of the leaf, beside that of the rows, along which coefficients vary.
    """

    columns: Array | None
    groups: AnyArray
    plates: frozenset[Plate]


def residuals(
    setting: Setting, leaf: Variable, product: Addend, values: Array, plates: Sequence[Plate]
) -> Array:
    """Return the values of a leaf, (rows, plates...), less the other addends of its sum; NaN where missing.

    Parameters
    ----------
    setting, leaf, product
        Where it is, and what is not taken away.
    values, plates
        Values of the sample, and the plates of their axes after the rows.
    """
    stated = sum_of(leaf)
    assert stated is not None
    found = [
        own
        for addend in stated.addends
        if addend is not product and (own := _read(setting, addend, plates)) is not None
    ]
    fitted = [np.zeros(1) for _ in found]
    for _ in range(_ROUNDS if len(found) > 1 else 1):
        for place, own in enumerate(found):
            others = sum(fitted[:place] + fitted[place + 1 :], np.zeros(1))
            fitted[place] = _fitted(own, values - others, plates, setting.sample.row_weights)
    return values - sum(fitted, np.zeros(1))


def _read(setting: Setting, addend: Addend, plates: Sequence[Plate]) -> _Addend | None:
    """Return an addend with one variable at most; None of others, and where its columns are not of the rows."""
    n_rows = setting.sample.n_rows
    columns, groups = np.ones((n_rows, 1)), np.zeros(n_rows, dtype=np.int64)
    varying: frozenset[Plate] = frozenset()
    n_unknown, is_of_row = 0, False
    for operand in addend.operands:
        node: Any = operand.node if isinstance(operand, Indexed | Part) else operand
        index = operand.by if isinstance(operand, Indexed) and operand.through is None else None
        if isinstance(node, Data) and index is None:
            own = setting.columns_of(node)
            if own is None:
                return None
            columns = (columns[:, :, None] * own[:, None]).reshape(n_rows, -1)
        elif isinstance(node, Node) and (not isinstance(node, Constant) or index is not None):
            n_unknown += isinstance(node, Variable)
            varying = frozenset(plate for plate in node.plates if plate in plates)
            is_of_row = setting.problem.bound.is_local(node)
            labels = None if index is None else setting.labels_of(index)
            if labels is not None:
                groups = np.unique(labels, return_inverse=True)[1]
    if n_unknown > 1 or (is_of_row and varying):
        return None
    return _Addend(None if is_of_row else columns, groups, varying)


def _fitted(own: _Addend, values: Array, plates: Sequence[Plate], weights: Array) -> Array:
    """Return the share of an addend in each value by least squares, with axes of length 1 where it is constant."""
    axes = [1 + place for place, plate in enumerate(plates) if plate not in own.plates]
    seen = ~np.isnan(values)
    counts = weights.reshape(-1, *(1,) * (values.ndim - 1)) * seen
    sums = (counts * np.where(seen, values, 0.0)).sum(axis=tuple(axes), keepdims=True)
    counts = counts.sum(axis=tuple(axes), keepdims=True)
    shape = sums.shape
    sums, counts = sums.reshape(len(sums), -1), counts.reshape(len(sums), -1)
    if own.columns is None:
        found = _divided(sums, counts)
    elif own.columns.shape[1] == 1 and not np.ptp(own.columns):
        found = _means(sums, counts, own.groups)
    else:
        n_groups = int(own.groups.max()) + 1
        columns = own.columns
        if 1 < n_groups <= _MOST_COEFFICIENTS // columns.shape[1]:
            columns = (columns[:, :, None] * one_hot(n_groups, own.groups)[:, None]).reshape(len(sums), -1)
        found = _regression(columns, sums, counts)
    return found.reshape(shape)


def _divided(sums: Array, counts: Array) -> Array:
    return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)


def _means(sums: Array, counts: Array, groups: AnyArray) -> Array:
    """Return the mean of each row's group."""
    n_groups = int(groups.max()) + 1
    totals, weights = (
        np.stack([np.bincount(groups, own, n_groups) for own in columns.T], axis=1).astype(np.float64)
        for columns in (sums, counts)
    )
    return _divided(totals, weights)[groups]


def _regression(columns: Array, sums: Array, counts: Array) -> Array:
    """Return the regressions on columns of values whose weighted sums and weights are given, (rows, values)."""
    found = []
    is_complete = bool((counts == counts[:, :1]).all())
    gram = _gram(columns, counts[:, 0])
    for own, count in zip(sums.T, counts.T, strict=True):
        found.append(np.linalg.solve(gram if is_complete else _gram(columns, count), columns.T @ own))
    return columns @ np.stack(found, axis=1)


def _gram(columns: Array, weights: Array) -> Array:
    gram = (columns.T * weights) @ columns
    size = len(gram)
    gram[np.arange(size), np.arange(size)] += _RIDGE * np.trace(gram) / size + np.finfo(float).tiny
    return gram
