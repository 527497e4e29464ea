"""Kernels: the operations on the rows of a block, which are all that depends on where the block lies.

A pass asks its scratch for buffers and for these operations, so that one :meth:`RowPass.summarize` serves NumPy arrays
(here) and arrays of any library of the array API (:mod:`~caviar.engine.array_kernels`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._typing import AnyArray, Array
from . import products

if TYPE_CHECKING:
    from .features import FeatureTable
    from .locals import Inferred, LocalFactor
    from .scratch import Scratch

__all__ = ["HOST", "HostKernels", "Kernels"]


class Kernels(Protocol):
    """What a pass does with arrays of rows; E local statistics, F features, B rows."""

    def empty(self, size: int) -> Any:
        """Return ``size`` numbers, their values undefined."""
        ...

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Return a view of a contiguous array."""
        ...

    def copy(self, array: Any) -> Any:
        """Return a copy."""
        ...

    def fill(self, table: FeatureTable, block: Mapping[Any, Any], out: Any, scratch: Scratch) -> None:
        """Write the dense features T of a block, (F, B)."""
        ...

    def project(self, matrix: Any, table: Any, out: Any) -> None:
        """Write ``matrix @ table``, (E, F) by (F, B)."""
        ...

    def infer(self, factor: LocalFactor, natural: Any) -> Inferred:
        """Overwrite natural parameters (E, B) of a factor by its expected statistics."""
        ...

    def accumulate(self, expected: Any, table: Any, scratch: Scratch, key: Hashable) -> Any:
        """Return ``expected @ table.T``, (E, F), summed in float64."""
        ...

    def weighted(self, values: Any, weights: Any, seen: AnyArray | None = None) -> Any:
        """Return the weighted sum of (..., B) numbers in float64, of those ``seen`` where that is given."""
        ...


class HostKernels:
    """NumPy arrays in float64."""

    def empty(self, size: int) -> Array:
        return np.empty(size)

    def reshape(self, array: Array, shape: tuple[int, ...]) -> Array:
        return array.reshape(shape)

    def copy(self, array: Array) -> Array:
        return array.copy()

    def fill(self, table: FeatureTable, block: Mapping[str, AnyArray], out: Array, scratch: Scratch) -> None:
        table.fill(block, out, scratch)

    def project(self, matrix: Array, table: Array, out: Array) -> None:
        products.project(matrix, table, out)

    def infer(self, factor: LocalFactor, natural: Array) -> Inferred:
        return factor.infer(natural)

    def accumulate(self, expected: Array, table: Array, scratch: Scratch, key: Hashable) -> Array:
        return products.accumulate(expected, table, scratch, key)

    def weighted(self, values: Array, weights: Array | None, seen: AnyArray | None = None) -> float:
        if seen is not None:
            values = np.where(seen, values, 0.0)
        return float(values.sum() if weights is None else (values @ weights).sum())


HOST = HostKernels()
