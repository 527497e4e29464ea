r"""A pass whose blocks lie on a device: coefficients in, :meth:`RowModel.summarize` there, sums in float64 back.

In float32 the coefficients W are rounded, after what all categories share was taken off them. With W' the rounded ones
the responsibilities r are those of W', and what the sum of log-normalisers says of W is

.. math:: \sum_n \log Z_n(W') + \langle W - W', R T' \rangle

so that the entropy of r, which is all that is asked of it, does not see the rounding of W.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...._errors import ParameterError
from ...._typing import Array
from ....numerics.cached import cached_property
from ...design.backend import Workspace
from ...design.keys import FactorKey
from ...local.local_factor import LocalFactor
from ...local.statistics import Coefficients, Rows, Sums
from ..row_model import RowModel
from ..terms.row_term import BlockWork
from .array_kernels import ArrayBackend, ArrayLibrary
from .layout import BlockOnDevice, Layout


class DevicePass:
    """One pass with given coefficients over blocks on a device.

    Parameters
    ----------
    rows
        The problem's pass.
    coefficients
        What it needs of the globals, on the host.
    layout
        How blocks were prepared.
    library
        The arrays of the device.
    scratch
        Buffers of an earlier pass of this kind, or None.
    """

    def __init__(
        self,
        rows: RowModel,
        coefficients: Coefficients,
        layout: Layout,
        library: ArrayLibrary,
        scratch: Workspace | None = None,
    ) -> None:
        self.rows = rows
        self.layout = layout
        self.library = library
        single = layout.single
        self.scratch = scratch or Workspace(ArrayBackend(library, single=single, whitened=single))
        self._whitened = {
            factor: layout.coefficients(factor, coefficients.matrices[factor.key]) for factor in rows.tables
        }
        self._used = (
            {factor: _rounded(_apart(factor, matrix)) for factor, matrix in self._whitened.items()}
            if single
            else self._whitened
        )
        self._coefficients = self._moved(self._used, single=single)

    def _moved(self, matrices: Mapping[LocalFactor, Array], *, single: bool) -> Coefficients:
        return Coefficients(
            {factor.key: self.library.move(matrix, single=single) for factor, matrix in matrices.items()}, {}
        )

    def summarize(self, block: BlockOnDevice) -> Sums:
        """Return the sums over a block: arrays of the device."""
        return self.rows.summarize(BlockWork(_rows(block), self._coefficients, self.scratch))[0]

    def error(self, block: BlockOnDevice) -> Any:
        """Return by how much responsibilities of the block summarized last are off: a number on the device.

        The largest distance from those of the same block in float64: measured, on every row.
        """
        xp = self.library.xp
        columns = {key: xp.astype(values, xp.float64) for key, values in block.columns.items()}
        exact = replace(block, columns=columns)
        largest = None
        for factor in self.rows.tables:
            work = BlockWork(_rows(exact), self._exact_coefficients, self._exact_scratch)
            natural = self.rows.apart.of[factor.key].natural(work)
            self._exact_scratch.backend.infer(factor, natural)
            found = self.scratch.array((factor, "natural"), (factor.n_rows, block.n_rows))
            if block.weights is not None:
                found = found / block.weights
            own = xp.max(xp.abs(xp.astype(found, xp.float64) - natural))
            largest = own if largest is None else xp.maximum(largest, own)
        return largest

    @cached_property
    def _exact_scratch(self) -> Workspace:
        return Workspace(ArrayBackend(self.library, single=False, whitened=self.layout.single))

    @cached_property
    def _exact_coefficients(self) -> Coefficients:
        return self._moved(self._whitened, single=False)

    def bring_back(self, sums: Sums) -> Sums:
        """Return sums over blocks as those over the rows, on the host."""
        fused: dict[FactorKey, Array] = {}
        log_partition: dict[FactorKey, float] = {}
        for factor in self.rows.tables:
            key = factor.key
            own = self.library.numpy(sums.fused[key])
            fused[key] = self.layout.sums(factor, own)
            log_partition[key] = float(self.library.numpy(sums.log_partition[key]))
            if self.layout.single:
                log_partition[key] += float(np.vdot(self._whitened[factor] - self._used[factor], own))
        return Sums(fused, {}, log_partition, {})


def _rows(block: BlockOnDevice) -> Rows:
    # columns go by feature, and where the rows are is not asked
    return Rows(block.columns, block.weights, block.n_rows, slice(0, 0))  # type: ignore[arg-type]


def _apart(factor: LocalFactor, matrix: Array) -> Array:
    """Return W (E, F) less what all categories share, which changes no responsibility."""
    (shape,) = factor.shapes.values()
    by_category = matrix.reshape(*shape, -1)
    return (by_category - by_category.mean(axis=-2, keepdims=True)).reshape(matrix.shape)


def _rounded(matrix: Array) -> Array:
    return matrix.astype(np.float32).astype(np.float64)


def refuse_what_no_device_takes(rows: RowModel) -> None:
    """Check that a pass can be made on a device.

    Raises
    ------
    ParameterError
        If not: the message says what in the model forbids it.
    """
    reason = rows.why_not_on_a_device()
    if reason:
        raise ParameterError(
            f"blocks on a device serve models whose local variables are Categoricals that do not depend on each other, "
            f"fully hidden, with dense data; {reason}. Leave executor= out: the fit then runs on the processor's cores"
        )
