"""The rows of a fit, and what maps them: the arrays along the data plate, and the executor that a user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._errors import ParameterError
from ..data import ArrayRows, as_rows
from ..engine.binding.bound_model import BoundModel
from ..engine.binding.missing.entries import order_of_patterns
from ..engine.design.keys import ColumnKey
from ..engine.factorisation import APART
from ..engine.rows.executor import Executor
from ..engine.topics.lowering import BoundDocuments, bind_rows
from ..execution.connection import is_client
from ..execution.dask import DaskExecutor
from ..execution.threads import Threads
from ..language import Plate
from ..names import NamedData


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
        data = {name: as_rows(value, name) for name, value in data.items()}
    met.refuse_other_rows("sample_weight", sample_weight)
    weight = as_rows(sample_weight)
    return bind_rows(
        model.structure.nodes,
        model.structure.leaves,
        data,
        values=model.constants,
        data_plate=data_plate,
        sample_weight=weight,
        factors=None if factors == APART else factors,
        named=named,
        sizes=met.sizes,
        facts=model.structure.of_data,
    )
