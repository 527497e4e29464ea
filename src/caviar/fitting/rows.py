"""The rows of a fit, and what maps them: the arrays along the data plate, and the executor that a user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._errors import ParameterError
from ..data import ArrayRows, as_rows
from ..data.columns.missing_codes import tell_of_codes
from ..engine.binding.bound_model import BoundModel
from ..engine.binding.missing.entries import order_of_patterns
from ..engine.design.keys import ColumnKey
from ..engine.factorisation import APART
from ..engine.rows.executor import Executor
from ..engine.topics.lowering import BoundDocuments, bind_rows
from ..execution.connection import is_client
from ..execution.dask import DaskExecutor
from ..execution.threads import Threads
from ..language import Categorical, Plate, Variable
from ..names import NamedData, Names

_CALLER = 5
"""Frames from :func:`_tell_of_codes` to the call of ``fit``."""


def rows_of(bound: BoundModel) -> ArrayRows:
    """Return the rows of bound data: every known array along the data plate, with that plate first."""
    if bound.data_plate is None:
        return ArrayRows({}, 0, None)
    if isinstance(bound, BoundDocuments):
        return ArrayRows({ColumnKey(bound.pattern.word.name): bound.counts}, bound.n_rows, bound.row_weights)
    every = bound.columns()
    columns = {
        ColumnKey(node.name, kind): _rows_first(value, node.plates.index(bound.data_plate))
        for node, kind, value in every
    }
    rows = ArrayRows(columns, bound.n_rows, bound.row_weights)
    if any(variable.summed for variable in bound.latent_locals()):
        # successive rows stay so; those of a block are sorted where it is summed
        return rows
    entries = [value for _, kind, value in every if kind == "entries"]
    return rows.in_order(order_of_patterns(entries)) if entries else rows


def _rows_first(value: Any, axis: int) -> Any:
    """Return an array with this axis as its first; a sparse matrix has it there."""
    return value if axis == 0 or issparse(value) else np.moveaxis(value, axis, 0)


def as_executor(executor: Any) -> Executor:
    """Return an executor: threads of this process unless one is given.

    Raises
    ------
    ParameterError
        If it is not an executor, a number of threads, a client of Dask, or the address of a scheduler.
    """
    if is_client(executor) or (isinstance(executor, str) and ":" in executor):
        return DaskExecutor(executor)
    if executor is None:
        return Threads()
    if isinstance(executor, Integral) and int(executor) >= 1:
        return Threads(int(executor))
    if not isinstance(executor, Executor):
        raise ParameterError(
            f"executor is a number of threads >= 1, an executor, a distributed.Client, or the address of a Dask "
            f"scheduler; got {executor!r}"
        )
    return executor


def bound_of(
    model: Any,
    met: NamedData,
    sample_weight: Any,
    data_plate: Plate | str | None,
    factors: Sequence[Sequence[str]] | str | None,
    naming: Sequence[Any],
) -> BoundModel:
    """Return the binding of a model to data, tables on disk and what else is read in blocks among them.

    ``naming`` has the arguments that name variables.
    """
    named = [name for names in naming if isinstance(names, list | tuple) for name in names]
    data = met.values
    if isinstance(data, Mapping):
        data = {
            name: value if type(value) is np.ndarray else as_rows(value, name) for name, value in data.items()
        }
    if sample_weight is not None:
        met.refuse_other_rows("sample_weight", sample_weight)
        sample_weight = as_rows(sample_weight)
    bound = bind_rows(
        model.structure.nodes,
        model.structure.leaves,
        data,
        values=model.constants,
        data_plate=data_plate,
        sample_weight=sample_weight,
        factors=None if factors == APART else factors,
        named=named,
        sizes=met.sizes,
        facts=model.structure.of_data,
    )
    if not met.is_read and isinstance(data, Mapping):
        _tell_of_codes(bound, data, met.names)
    return bound


def _tell_of_codes(bound: BoundModel, data: Mapping[str, Any], names: Names) -> None:
    """Warn where numbers of the rows, in memory, seem to have one that means missing values."""
    plate = bound.data_plate
    for node, known in bound.evidence.items():
        if not isinstance(node, Variable) or isinstance(node, Categorical) or plate not in node.plates:
            continue
        values = data.get(node.name)
        if values is not None and not isinstance(values, np.ndarray):
            # lists and columns have become arrays
            values = known.in_part if known.values is None else known.values
        if not isinstance(values, np.ndarray):
            continue
        rows = np.moveaxis(values, node.plates.index(plate), 0)
        table, columns = rows.reshape(len(rows), -1), names.columns.get(node.name, ())
        if len(columns) != table.shape[1]:
            columns = [f"{j} of {node.name}" if rows.ndim > 1 else node.name for j in range(table.shape[1])]
        tell_of_codes(table, columns, _CALLER)
