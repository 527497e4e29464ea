"""Backends: the operations on the rows of a block, which are all that depends on where the block lies.

A pass asks its workspace for buffers and for these operations, so that one :meth:`IndependentRows.summarize` serves
NumPy arrays (here) and arrays of any library of the array API (:mod:`~caviar.engine.rows.device.array_kernels`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import numpy as np

from ..._typing import AnyArray, Array
from ..design.keys import ColumnKey
from . import dense as products
from .features import FeatureTable
from .inferred import Inferred, Infers
from .scratch import HostMemory, Memory, Scratch


class Backend(Memory, Protocol):
    """What a pass does with arrays of rows; E local statistics, F features, B rows."""

    def copy(self, array: Any) -> Any:
        """Return a copy."""
        ...

    def fill(self, table: FeatureTable, block: Mapping[Any, Any], out: Any, scratch: Scratch) -> None:
        """Write the dense features T of a block, (F, B)."""
        ...

    def project(self, matrix: Any, table: Any, out: Any) -> None:
        """Write ``matrix @ table``, (E, F) by (F, B)."""
        ...

    def infer(self, factor: Infers, natural: Any) -> Inferred:
        """Overwrite natural parameters (E, B) of a factor by its expected statistics."""
        ...

    def accumulate(self, expected: Any, table: Any, scratch: Scratch, key: Hashable) -> Any:
        """Return ``expected @ table.T``, (E, F), summed in float64."""
        ...

    def weighted(self, values: Any, weights: Any, seen: AnyArray | None = None) -> Any:
        """Return the weighted sum of (..., B) numbers in float64, of those ``seen`` where that is given."""
        ...


class HostBackend(HostMemory):
    """NumPy arrays in float64."""

    def copy(self, array: Array) -> Array:
        return array.copy()

    def fill(
        self, table: FeatureTable, block: Mapping[ColumnKey, AnyArray], out: Array, scratch: Scratch
    ) -> None:
        table.fill(block, out, scratch)

    def project(self, matrix: Array, table: Array, out: Array) -> None:
        products.project(matrix, table, out)

    def infer(self, factor: Infers, natural: Array) -> Inferred:
        return factor.infer(natural)

    def accumulate(self, expected: Array, table: Array, scratch: Scratch, key: Hashable) -> Array:
        return products.accumulate(expected, table, scratch, key)

    def weighted(self, values: Array, weights: Array | None, seen: AnyArray | None = None) -> float:
        if seen is not None:
            values = np.where(seen, values, 0.0)
        return float(values.sum() if weights is None else (values @ weights).sum())


_HOST = HostBackend()


class Workspace(Scratch):
    """Buffers of each thread, and the operations on them.

    Parameters
    ----------
    kernels
        Who makes the buffers, and what a pass does with them: float64 arrays of NumPy unless given.
    """

    def __init__(self, backend: Backend = _HOST) -> None:
        super().__init__(backend)
        self.backend = backend
