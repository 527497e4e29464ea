"""Shares of rows in the sums that no local variable enters: what a pass adds up, row by row."""

from __future__ import annotations

import numpy as np

from ..._typing import Array
from ..compiled.compiler import LocalTerm
from ..design.backend import Workspace
from ..design.lookups import add_tallied
from ..local.statistics import Arrays, Rows
from .e_step import IndependentRows

__all__ = ["sums_by_row"]


def sums_by_row(row_pass: IndependentRows, static: Arrays, rows: Rows, scratch: Workspace) -> Array:
    """Return the terms of each row that no local variable enters, shape (B,), by the coefficient of each sum."""
    compiled, total = row_pass.compiled, np.zeros(rows.n_rows)
    table = compiled.tables.get(None)
    if table is not None:
        matrix = np.zeros((1, table.n_rows))
        for key, value in static.items():
            part = compiled.parts.get(key)
            if part is not None and part.factor is None and part.feature is not None:
                columns = table.columns[part.feature.key]
                matrix[:, columns] += part.feature.pack(value.reshape(1, *part.feature.shape))
        features = scratch.array((None, "table"), (table.n_dense, rows.n_rows))
        table.fill(rows.columns, features, scratch)
        out = matrix[:, : table.n_dense] @ features
        for feature, columns in table.tallied:
            add_tallied(feature, matrix[:, columns], rows.columns, out, scratch)
        total += out[0]
    data = row_pass.row_arrays(rows) if compiled.local_terms else {}
    for local in compiled.local_terms:
        if local.is_static and local.part.key in static:
            total += _unfused(local, static[local.part.key], data, rows, scratch)
    return total


def _unfused(local: LocalTerm, coefficient: Array, data: Arrays, rows: Rows, scratch: Workspace) -> Array:
    """Return each row's share of a sum that is contracted on its own, times its coefficient, shape (B,)."""
    contraction = local.contraction
    if local.sparse is not None:
        chosen = np.zeros((coefficient.size // coefficient.shape[-1], rows.n_rows))
        add_tallied(local.sparse, coefficient.reshape(len(chosen), -1), rows.columns, chosen, scratch)
        shape = (*coefficient.shape[:-1], rows.n_rows)
        each = np.broadcast_to(contraction.derivative(0)(data), shape).reshape(chosen.shape) * chosen
        return each.sum(axis=0)
    key = contraction.keys[1]
    each = contraction.derivative(1)({**data, local.part.key: coefficient}) * data[key]
    return each.reshape(-1, rows.n_rows).sum(axis=0)
