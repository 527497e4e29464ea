"""Backends: the operations on the rows of a block, which are all that depends on where the block lies.

A pass asks its workspace for buffers and for these operations, so that one :meth:`IndependentRows.summarize` serves
NumPy arrays (here) and arrays of any library of the array API (:mod:`~caviar.engine.rows.device.array_kernels`).

Matrix products are in the sizes that BLAS is fastest at: in strips where it has a faster kernel for small products
(:func:`~caviar.numerics.blas.small_product`), else whole. Rows go in odd multiples of 64, so that a row of the feature
table is never a multiple of 4096 bytes, which would map a column of it to one cache set.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import numpy as np

from ..._typing import AnyArray, Array
from ...numerics.blas import small_product
from .features import FeatureTable
from .inferred import Inferred, Infers
from .keys import ColumnKey
from .scratch import HostMemory, Memory, Scratch

_STRIP = 64
_BLOCK_BYTES = 4 << 20
_FEWEST_STRIPS, _MOST_STRIPS = 3, 129
_TALLIED_BYTES = 16 << 20


def block_rows(n_statistics: int, n_features: int, n_categories: int = 0) -> int:
    """Return the rows of a block for E local statistics and F features: a function of the model only.

    Sums by label are made anew for each block, so a block has about half as many rows as there are ``n_categories``, as
    far as that does not cost much memory.
    """
    if n_categories:
        most = _TALLIED_BYTES // (8 * _STRIP * (n_statistics + n_features))
        strips = max(min(max(n_categories // 2 // _STRIP, _MOST_STRIPS), most), _FEWEST_STRIPS)
        return _STRIP * (strips if strips % 2 else strips - 1)
    # products are made in strips where those are small; a block that fills the cache costs fewer calls
    rows = _BLOCK_BYTES // (8 * (n_statistics + n_features))
    strips = min(max(rows // _STRIP, _FEWEST_STRIPS), _MOST_STRIPS)
    return _STRIP * (strips if strips % 2 else strips - 1)


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
        """Write ``matrix @ table``, (E, F) by (F, B), in strips where those are small products and the whole is not."""
        n_statistics, n_features = matrix.shape
        n_rows = table.shape[1]
        strip, small = n_statistics * n_features * _STRIP, small_product()
        if n_rows % _STRIP == 0 and n_rows // _STRIP * strip > small > strip > small // 10:
            table = table.reshape(n_features, -1, _STRIP).transpose(1, 0, 2)
            out = out.reshape(n_statistics, -1, _STRIP).transpose(1, 0, 2)
        np.matmul(matrix, table, out=out)

    def infer(self, factor: Infers, natural: Array) -> Inferred:
        return factor.infer(natural)

    def accumulate(self, expected: Array, table: Array, scratch: Scratch, key: Hashable) -> Array:
        """Return ``expected @ table.T``, (E, F), in strips where those are small products and the whole is not.

        The small kernel takes no operand whose transpose is meant, so the smaller of the two is transposed first. Where
        only 64 rows are a small product, the sum over strips costs more than that kernel gains. The result lies in the
        scratch, under ``key``.
        """
        n_statistics, n_rows = expected.shape
        n_features = table.shape[0]
        # BLAS writes this transpose a little faster
        total = scratch.array((key, "sums"), (n_features, n_statistics))
        length = small_product() // (n_statistics * n_features) // _STRIP * _STRIP
        if length <= _STRIP or n_rows <= length:
            np.matmul(expected, table.T, out=total.T)
            return total.T
        n_strips, rest = divmod(n_rows, length)
        turned = scratch.array((key, "turned"), (n_rows, n_statistics))
        turned[...] = expected.T
        strips = scratch.array((key, "strips"), (n_strips, n_features, n_statistics))
        whole = n_strips * length
        np.matmul(
            table[:, :whole].reshape(n_features, n_strips, length).transpose(1, 0, 2),
            turned[:whole].reshape(n_strips, length, n_statistics),
            out=strips,
        )
        strips.sum(axis=0, out=total)
        if rest:
            total += table[:, whole:] @ turned[whole:]
        return total.T

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
