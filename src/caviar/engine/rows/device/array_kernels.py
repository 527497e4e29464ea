"""Backend for arrays of any library of the array API: torch, CuPy, array-api-strict.

Nothing here waits for the device: a block leaves arrays behind, and only the sums of all blocks are read. T is built
in place, in D/2 products of its rows with the rows before them. Products of a block are summed in strips of
``_STRIP`` rows: within one in the block's own precision, over strips and blocks in float64.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

from ...design.features import Feature, FeatureTable, Source
from ...design.inferred import Inferred, Infers
from ...design.keys import ColumnKey
from ...design.scratch import Scratch

_STRIP = 4096


class ArrayLibrary(Protocol):
    """A library of the array API on one device.

    Attributes
    ----------
    xp
        Its namespace.
    writes_out
        Whether its functions take ``out=``.
    """

    xp: Any
    writes_out: bool

    def empty(self, size: int, *, single: bool) -> Any:
        """Return ``size`` numbers in float32 (``single``) or float64, their values undefined."""
        ...

    def move(self, array: Any, *, single: bool) -> Any:
        """Return a NumPy array of numbers on the device, in float32 (``single``) or float64."""
        ...

    def numpy(self, array: Any) -> Any:
        """Return an array of the device as one of NumPy."""
        ...


class ArrayBackend:
    """Operations on blocks that a :class:`~caviar.engine.rows.device.layout.Layout` has prepared.

    Parameters
    ----------
    library
        Whose arrays they are, and where.
    single
        Whether what is made of blocks is in float32; else it is in float64.
    whitened
        Whether values in blocks are whitened; else they are as they were given.
    """

    def __init__(self, library: ArrayLibrary, *, single: bool, whitened: bool) -> None:
        self.library = library
        self.single = single
        self.whitened = whitened
        self.xp = library.xp

    def empty(self, size: int) -> Any:
        return self.library.empty(size, single=self.single)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self.xp.reshape(array, shape)

    def copy(self, array: Any) -> Any:
        return self.xp.asarray(array, copy=True)

    def fill(self, table: FeatureTable, block: Mapping[Any, Any], out: Any, scratch: Scratch) -> None:
        """Write the features of a prepared block, (F, B)."""
        values: dict[ColumnKey, Any] = {}
        for feature, rows in zip(table.features, table.slices, strict=True):
            own, source = out[rows, ...], feature.source
            if source is None:
                own[...] = 1.0
            elif not feature.is_computed:
                own[...] = block[feature.key]
            else:
                if source.key not in values:
                    values[source.key] = self._values(source, block, scratch)
                self._powers(feature, values[source.key], own, scratch)

    def _values(self, source: Source, block: Mapping[Any, Any], scratch: Scratch) -> Any:
        """Return a source's values from its reference point, (shape..., B), zero where they are missing."""
        raw = block[source.key]
        if self.whitened:
            return raw
        values = raw
        if source.reference is not None:
            moved = scratch.kept(
                ("reference", id(source.reference)),
                (source.reference,),
                lambda: self.library.move(source.reference, single=False),
            )
            values = scratch.array(("values", source.node), tuple(raw.shape))
            self._apply("subtract", raw, self.xp.expand_dims(moved, axis=-1), values)
        return values * block[source.mask_key] if source.has_missing else values

    def _powers(self, feature: Feature, values: Any, out: Any, scratch: Scratch) -> None:
        """Write values (shape..., B) or their products, to the rows of T, (rows, B)."""
        xp = self.xp
        if feature.is_packed:
            self._packed_square(values, out, scratch)
            return
        if feature.statistic == "x":
            computed = values
        elif feature.is_outer:
            before = xp.expand_dims(values, axis=values.ndim - 1)
            computed = xp.expand_dims(values, axis=values.ndim - 2) * before
        else:
            computed = values * values
        if feature.summed:
            computed = xp.sum(computed, axis=feature.summed)
        out[...] = self.reshape(computed, tuple(out.shape))

    def _packed_square(self, values: Any, out: Any, scratch: Scratch) -> None:
        """Write every product v_i v_j once, in the order of :func:`~caviar.engine.design.features.packed_square`."""
        size, n_rows = values.shape
        half = size // 2
        wrapped = scratch.array(("wrapped", size), (half + size, n_rows))
        wrapped[:half, ...] = values[size - half :, ...]
        wrapped[half:, ...] = values
        for offset in range((size + 1) // 2):
            before = wrapped[half - offset : half - offset + size, ...]
            self._apply("multiply", values, before, out[offset * size : (offset + 1) * size, ...])
        if size % 2 == 0:
            self._apply("multiply", values[half:, ...], values[:half, ...], out[half * size :, ...])

    def project(self, matrix: Any, table: Any, out: Any) -> None:
        self._apply("matmul", matrix, table, out)

    def infer(self, factor: Infers, natural: Any) -> Inferred:
        """Overwrite the logits (E, B) of a Categorical by probabilities."""
        (shape,) = factor.shapes.values()
        return Inferred(self._softmax(self.reshape(natural, (*shape, natural.shape[-1]))), None)

    def _softmax(self, logits: Any) -> Any:
        """Overwrite logits (..., K, B) by probabilities over K; return the log of their sums, (..., B)."""
        xp = self.xp
        top = xp.max(logits, axis=-2, keepdims=True)
        self._apply("subtract", logits, top, logits)
        if self.library.writes_out:
            xp.exp(logits, out=logits)
        else:
            logits[...] = xp.exp(logits)
        total = xp.sum(logits, axis=-2, keepdims=True)
        self._apply("multiply", logits, 1.0 / total, logits)
        return (xp.log(total) + top)[..., 0, :]

    def accumulate(self, expected: Any, table: Any, scratch: Scratch, key: Hashable) -> Any:
        """Return ``expected @ table.T``, (E, F), in float64: a new array, which no later block overwrites."""
        xp = self.xp
        n_strips, rest = divmod(expected.shape[1], _STRIP)
        total = None
        if n_strips:
            left = self._in_strips(expected, n_strips)
            right = xp.permute_dims(self._in_strips(table, n_strips), (0, 2, 1))
            if self.library.writes_out:
                strips = scratch.array((key, "strips"), (n_strips, expected.shape[0], table.shape[0]))
                xp.matmul(left, right, out=strips)
            else:
                strips = xp.matmul(left, right)
            total = xp.sum(strips, axis=0, dtype=xp.float64)
        if rest:
            whole = n_strips * _STRIP
            last = xp.matmul(expected[:, whole:], table[:, whole:].T)
            last = xp.astype(last, xp.float64)
            total = last if total is None else total + last
        return total

    def _in_strips(self, array: Any, n_strips: int) -> Any:
        """Return a view (strips, rows, _STRIP) of an array (rows, B), of the whole strips in it."""
        n_rows, n_columns = array.shape
        if n_columns % _STRIP:
            array = array[:, : n_strips * _STRIP]
        return self.xp.permute_dims(self.xp.reshape(array, (n_rows, n_strips, _STRIP)), (1, 0, 2))

    def weighted(self, values: Any, weights: Any, seen: Any = None) -> Any:
        """Return the weighted sum of (..., B) numbers in float64, an array without axes."""
        assert seen is None
        return self.xp.sum(values if weights is None else values * weights, dtype=self.xp.float64)

    def _apply(self, name: str, left: Any, right: Any, out: Any) -> None:
        function = getattr(self.xp, name)
        if self.library.writes_out:
            function(left, right, out=out)
        else:
            out[...] = function(left, right)
