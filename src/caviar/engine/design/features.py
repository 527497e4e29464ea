"""Features: the known side of a row's terms, feature-major; a pass over a block is two matrix products.

For a Gaussian leaf a block of B rows becomes 1, x and every product x_i x_j once, each a row of one F x B
matrix T. What a local variable needs from the data is then W @ T, and what the globals need from the rows
is U @ T', whatever the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..._typing import AnyArray, Array
from ...language import Node, Variable
from ...language.nodes.roles import Role
from ...numerics.cached import cached_property
from ...numerics.records import copied, replaced
from ..binding.missing.values import OBSERVED
from .keys import ColumnKey, FeatureKey
from .scratch import Scratch

_FEWEST_CATEGORIES = 16
"""Categories from which on a look-up by label is faster than a matrix product with one-hot rows."""


class Origin(Protocol):
    """What the values of a leaf are measured from, where that differs from row to row."""

    def of(self, known: Callable[[Node], AnyArray]) -> AnyArray:
        """Return the point of each row, (B, ...), from the known arrays of the rows."""
        ...


class Beside(Protocol):
    """What is known beside the values of a variable, where their statistics depend on it."""

    def of(self, known: Callable[[Node], AnyArray]) -> dict[str, AnyArray]:
        """Return the arrays of a block of rows, (B, ...), by slot, from the known arrays of the rows."""
        ...

    def of_one(self) -> dict[str, AnyArray]:
        """Return arrays as they are of one row, of zeros."""
        ...


@dataclass(frozen=True)
class Source:
    """A known array along the data plate.

    Attributes
    ----------
    node
        Whose values they are.
    shape
        Shape of one row's value: plates but the data plate, then event.
    reference
        Reference point subtracted from it, shape ``shape``, or None.
    origin
        What is subtracted instead, where that differs from row to row; or None.
    has_missing
        Whether entries are missing; the block says which were observed, beside the values.
    is_sparse
        Whether a block holds its rows as a sparse matrix.
    has_gaps
        Whether vectors are missing in part; the block says which entries were observed.
    beside
        What is known beside the values, where their statistics depend on it; or None.
    """

    node: Node
    shape: tuple[int, ...]
    reference: Array | None
    has_missing: bool = False
    is_sparse: bool = False
    has_gaps: bool = False
    origin: Origin | None = None
    beside: Beside | None = None

    @cached_property
    def key(self) -> ColumnKey:
        """Of the block's column that holds the values."""
        return ColumnKey(self.node.name)

    @cached_property
    def mask_key(self) -> ColumnKey:
        """Key of the block's column that says which entries were observed."""
        return self.key.observed

    @property
    def is_alone(self) -> bool:
        """Whether a row's values and one reference point are all that there is of it."""
        return not (self.has_missing or self.has_gaps or self.origin is not None or self.beside is not None)

    @property
    def without_reference(self) -> Source:
        """The same without the numbers of its reference point."""
        return self if self.reference is None else replaced(self, reference=np.zeros(()))

    def measured_from(self, reference: Array | None) -> Source:
        """Return the same measured from another reference point; from none as it is."""
        return self if reference is None else replaced(self, reference=reference)

    def observed(self, block: Mapping[ColumnKey, AnyArray], ndim: int) -> AnyArray:
        """Return which of a block's entries were observed, to be multiplied with a statistic of ``ndim`` axes."""
        if self.has_gaps and ndim > 1:
            return block[self.key.entries].T
        mask = feature_major(block[self.mask_key])
        return mask.reshape(mask.shape[:-1] + (1,) * (ndim - mask.ndim) + mask.shape[-1:])

    def values(self, block: Mapping[ColumnKey, AnyArray]) -> AnyArray:
        """Return a block's values feature-major, shape (``shape``..., B), in float64 if they are locations."""
        turned = feature_major(block[self.key])
        if self.reference is None:
            return np.asarray(turned, dtype=np.float64)
        return np.subtract(turned, self.subtracted(block, self.reference), dtype=np.float64)

    def subtracted(self, block: Mapping[ColumnKey, AnyArray], reference: Array) -> AnyArray:
        """Return what values are measured from, feature-major: the ``reference``, or a point for each row."""
        if self.origin is None:
            return reference[..., None]
        return feature_major(self.origin.of(lambda node: block[ColumnKey(node.name)]))


@dataclass(frozen=True, eq=False)
class Feature:
    """One statistic of a source; the constant 1 if there is no source.

    Attributes
    ----------
    source
        Where it comes from.
    statistic
        Which of the statistics.
    role
        Of the slot that the source is in; None if it is a variable's own value.
    n_labels
        Number of categories, of the one-hot of labels.
    summed
        Axes of the statistic that are summed over: those along which nothing that it meets varies.
    """

    source: Source | None
    statistic: str = "x"
    role: Role | None = None
    n_labels: int | None = None
    summed: tuple[int, ...] = ()

    @cached_property
    def key(self) -> FeatureKey:
        """What distinguishes it from other features."""
        column = "" if self.source is None else self.source.key.name
        return FeatureKey(column, self.statistic, "" if self.role is None else self.role.name, self.summed)

    def of_source(self, source: Source) -> Feature:
        """Return the same statistic of a source that differs in its reference point alone."""
        other = object.__new__(Feature)
        vars(other).update(vars(self), source=source)
        return other

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row's statistic, without the axes that are summed over."""
        return tuple(size for axis, size in enumerate(self._full_shape) if axis not in self.summed)

    @cached_property
    def _full_shape(self) -> tuple[int, ...]:
        if self.source is None:
            return ()
        if self.statistic == OBSERVED:
            assert isinstance(self.source.node, Variable)
            return self.source.shape[: len(self.source.shape) - self.source.node.value_rank]
        if self._is_power:
            return self.source.shape + (self.source.shape[-1:] if self.is_outer else ())
        probe = np.zeros((1, *self.source.shape), dtype=np.int64)
        if _rank(self.role) == 2:
            # a matrix has a log-determinant if it is definite
            probe += np.eye(self.source.shape[-1], dtype=np.int64)
        own = self.source.beside
        return self.of_rows(probe, None if own is None else own.of_one()).shape[:-1]

    @property
    def _is_power(self) -> bool:
        """Whether it is a value that is measured from a reference point, or the square of it."""
        return self.source is not None and self.source.reference is not None and self.statistic in ("x", "xx")

    @property
    def is_outer(self) -> bool:
        """Whether it is a product of a vector with itself, where it is a power."""
        if self.statistic == "x" or self.source is None:
            return False
        node = self.source.node
        return bool(node.value_rank if isinstance(node, Variable) else _rank(self.role))

    @property
    def is_plain(self) -> bool:
        """Whether it is each number of a value, measured from a reference point."""
        return self._is_power and self.statistic == "x" and not self.summed

    @cached_property
    def is_computed(self) -> bool:
        """Whether it is made of a value by the difference from one point and products alone."""
        own_points = self.source is not None and self.source.origin is not None
        return not own_points and (self._is_power or self.is_packed)

    @cached_property
    def is_square(self) -> bool:
        """Whether it is the outer product of a vector with itself."""
        return (
            isinstance(self.source, Source)
            and self.statistic == "xx"
            and len(self._full_shape) > len(self.source.shape)
        )

    @cached_property
    def is_sum_of_squares(self) -> bool:
        """Whether it is the sum of the squares of all numbers of a row."""
        return self.statistic == "xx" and bool(self.summed) and not self.shape and not self.is_square

    @cached_property
    def is_plain_square(self) -> bool:
        """Whether it is the square of each number of a value, measured from a reference point, and none is missing."""
        is_square = self._is_power and self.statistic == "xx" and not self.summed and not self.is_outer
        return is_square and self.source is not None and not self.source.has_missing

    @cached_property
    def is_tallied(self) -> bool:
        """Whether its rows are never written out: looked up and tallied by label, or products of a sparse matrix."""
        if self.n_labels is None or self.is_sparse:
            return self.is_sparse
        # of data with several labels a row each has columns of its own
        is_alone = self.source is not None and (
            isinstance(self.source.node, Variable) or not self.source.shape
        )
        return is_alone and self.n_labels >= _FEWEST_CATEGORIES

    @property
    def is_sparse(self) -> bool:
        """Whether a row of it is a row of a sparse matrix."""
        return self.source is not None and self.source.is_sparse and self.statistic == "x"

    @cached_property
    def is_packed(self) -> bool:
        """Whether each of its symmetric entries is kept once."""
        return self.is_square and len(self.shape) == 2 and not self.summed

    @cached_property
    def n_rows(self) -> int:
        """Rows of T that it fills."""
        if self.is_packed:
            return self.shape[0] * (self.shape[0] + 1) // 2
        return math.prod(self.shape)

    def of_block(self, block: Mapping[ColumnKey, AnyArray], n_rows: int) -> AnyArray:
        """Return the statistic of a block of rows, zero where it was not observed, feature-major: (``shape``..., B)."""
        entries = self._entries(block, n_rows)
        return entries.sum(axis=self.summed) if self.summed else entries

    def _entries(self, block: Mapping[ColumnKey, AnyArray], n_rows: int) -> AnyArray:
        """Return the statistic of a block of rows, nothing summed over."""
        if self.source is None:
            return np.ones(n_rows)
        if self.statistic == OBSERVED:
            return self.source.observed(block, len(self.shape) + 1).astype(np.float64)
        if self._is_power:
            computed = self._powers(block)
        else:
            own = self.source.beside
            known = None if own is None else own.of(lambda node: block[ColumnKey(node.name)])
            computed = self.of_rows(block[self.source.key], known)
        if self.source.has_missing:
            return computed * self.source.observed(block, computed.ndim)
        return computed

    def _powers(self, block: Mapping[ColumnKey, AnyArray]) -> AnyArray:
        """Return values from their reference point, or their products, unpacked, unsummed and feature-major."""
        assert self.source is not None
        values = self.source.values(block)
        if self.statistic == "x":
            return values
        return values[..., :, None, :] * values[..., None, :, :] if self.is_outer else values * values

    def of_rows(self, rows: AnyArray, known: Mapping[str, AnyArray] | None = None) -> AnyArray:
        """Return the statistic of a block of rows (B, ...) that is not a power, unsummed and feature-major: (..., B).

        Where it depends on what is known beside the values, that is given by slot.
        """
        if self.source is None:
            return np.ones(len(rows))
        if self.role is None:
            assert isinstance(self.source.node, Variable)
            node = self.source.node
            computed = (
                node.statistic(self.statistic, rows)
                if known is None
                else node.statistic_beside(self.statistic, rows, known)
            )
        else:
            computed = self.role.of_known(self.statistic, np.asarray(rows, dtype=np.float64))
        return feature_major(computed)

    def written(self, block: Mapping[ColumnKey, AnyArray], n_rows: int) -> AnyArray:
        """Return the rows of T that it fills, of a block of rows of data: (``n_rows``, B)."""
        full = self.of_block(block, n_rows)
        return full[self.pairs] if self.is_packed else full.reshape(self.n_rows, n_rows)

    @property
    def pairs(self) -> tuple[AnyArray, AnyArray]:
        """Indices (i, j) of the packed entries, each pair once, the diagonal first; see :func:`packed_square`."""
        return _pairs(self.shape[0])

    def pack(self, coefficients: Array) -> Array:
        """Return coefficients (E, all entries) for the rows of T: off-diagonal pairs are summed into one."""
        if not self.is_packed:
            return coefficients
        above, below, _ = _places(self.shape[0])
        packed = coefficients.take(above, axis=1) + coefficients.take(below, axis=1)
        packed[:, : self.shape[0]] *= 0.5
        return packed

    def unpack(self, sums: Array) -> Array:
        """Return sums over the rows of T, (E, rows), in full: (E, ``shape``...)."""
        if not self.is_packed:
            return sums.reshape(len(sums), *self.shape)
        return sums.take(_places(self.shape[0])[2], axis=1)


@lru_cache(maxsize=64)
def _pairs(size: int) -> tuple[AnyArray, AnyArray]:
    """Return the indices (i, j) of the packed entries of a matrix, not to be written to."""
    i = np.tile(np.arange(size), (size + 1) // 2)
    offset = np.repeat(np.arange((size + 1) // 2), size)
    if size % 2 == 0:
        half = np.arange(size // 2, size)
        i, offset = np.append(i, half), np.append(offset, np.full(size // 2, size // 2))
    return i, (i - offset) % size


@lru_cache(maxsize=64)
def _places(size: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return where the packed entries (i, j) and (j, i) lie in a flat matrix, and where each of its is packed."""
    i, j = _pairs(size)
    packed = np.empty((size, size), dtype=np.intp)
    packed[i, j] = packed[j, i] = np.arange(len(i))
    return size * i + j, size * j + i, packed


def _rank(role: Role | None) -> int:
    return 0 if role is None else role.rank


def packed_square(values: Array, out: Array, scratch: Scratch) -> None:
    """Write every product v_i v_j of the rows of ``values`` once: (D, B) -> (D (D + 1) / 2, B).

    Rows are multiplied with the rows ``offset`` places before them, cyclically, for offset 0, 1, ...: with
    the last half of the rows repeated in front, all offsets are one overlapping view, and all products one
    call (two for even D). Both operands are read from that copy, which is in the cache.
    """
    size, n_rows = values.shape
    half, offsets = size // 2, (size + 1) // 2
    wrapped = scratch.array(("wrapped", size), (half + size, n_rows))
    wrapped[:half] = values[size - half :]
    wrapped[half:] = values
    values = wrapped[half:]
    row, item = wrapped.strides
    # as_strided of NumPy takes longer than the products of few rows
    before: Array = np.ndarray((offsets, size, n_rows), wrapped.dtype, wrapped, half * row, (-row, row, item))
    full = offsets * size
    np.multiply(values, before, out=out[:full].reshape(offsets, size, n_rows))
    if half == offsets:
        np.multiply(values[half:], values[:half], out=out[full:])


def known_values(source: Source | None, block: Mapping[ColumnKey, AnyArray]) -> AnyArray:
    """Return a block's values from their reference point, (shape..., B), zero where they are missing."""
    assert source is not None
    values = source.values(block)
    return values * source.observed(block, values.ndim) if source.has_missing else values


def feature_major(rows: AnyArray) -> AnyArray:
    """Return an array with its first axis, the rows, as the last."""
    return rows.transpose(*range(1, rows.ndim), 0)


def row_major(features: AnyArray) -> AnyArray:
    """Return an array with its last axis, the rows, as the first."""
    return features.transpose(-1, *range(features.ndim - 1))


CONSTANT = Feature(None)
"""The number 1 of each row."""


class FeatureTable:
    """The features that one local factor needs, as the rows of T.

    Attributes
    ----------
    features
        In the order of the rows.
    slices
        Rows of each.
    columns
        The same by the feature's key: columns of W.
    n_rows
        F.
    n_dense
        The leading rows that are written out; those after them are of ``tallied`` features.
    tallied
        Features whose rows are one-hot or sparse, with their slices.
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self.features = tuple(features)
        stops = list(accumulate(feature.n_rows for feature in self.features))
        self.slices = tuple(map(slice, [0, *stops], stops))
        self.n_rows = stops[-1] if stops else 0
        self.columns = {feature.key: rows for feature, rows in zip(self.features, self.slices, strict=True)}
        self.tallied = tuple(
            (feature, rows)
            for feature, rows in zip(self.features, self.slices, strict=True)
            if feature.is_tallied
        )
        self.n_dense = self.tallied[0][1].start if self.tallied else self.n_rows
        self._fills = tuple(_fills_of(self.features))

    def with_features(self, features: Sequence[Feature]) -> FeatureTable:
        """Return the same table with the same features, of other sources, in the same rows."""
        other = copied(self)
        other.features = tuple(features)
        tallied = zip(other.features, self.slices, strict=True) if self.tallied else ()
        other.tallied = tuple((own, rows) for own, rows in tallied if own.is_tallied)
        return other

    @property
    def without_references(self) -> FeatureTable:
        """The same table of values that are measured from their reference points already."""
        bare = [
            own if own.source is None else own.of_source(own.source.without_reference)
            for own in self.features
        ]
        return self.with_features(bare)

    def fill(self, block: Mapping[ColumnKey, AnyArray], table: Array, scratch: Scratch) -> None:
        """Write the dense rows of T for a block of rows: shape (``n_dense``, B)."""
        done: dict[Node, Array] = {}
        for feature, rows, fill in zip(self.features, self.slices, self._fills, strict=False):
            fill(feature, feature.source, block, table[rows], done, scratch)


Fill: TypeAlias = Callable[
    [Feature, Any, Mapping[ColumnKey, AnyArray], Array, dict[Node, Array], Scratch], None
]
"""Writes the rows of a feature, of a source and a block, where they belong; what is done of some nodes is kept."""


def _fills_of(features: Sequence[Feature]) -> Iterator[Fill]:
    """Yield what fills the rows of each feature, up to the first that is tallied."""
    done: set[Node] = set()
    for feature in features:
        source = feature.source
        if feature.is_tallied:
            return
        if source is None:
            yield _fill_ones
        elif feature.is_plain:
            yield _fill_differences
            done.add(source.node)
        elif feature.is_packed:
            yield _fill_packed
        elif feature.is_sum_of_squares and source.node in done:
            yield _fill_sums_of_squares
        elif feature.is_plain_square and source.node in done:
            yield _fill_squares
        elif feature.n_labels and not source.shape and not source.has_missing:
            yield _fill_one_hot
        else:
            yield _fill_computed


def _fill_ones(feature: Feature, source: Any, block: Any, out: Array, *_: object) -> None:
    out.fill(1.0)


def _fill_differences(
    feature: Feature, source: Source, block: Any, out: Array, done: dict[Node, Array], scratch: Scratch
) -> None:
    assert source.reference is not None
    shaped = out.reshape(*source.shape, -1)
    point = source.subtracted(block, source.reference)
    np.subtract(feature_major(block[source.key]), point, out=shaped, dtype=np.float64)
    if source.has_missing:
        shaped *= source.observed(block, shaped.ndim)
    done[source.node] = shaped


def _fill_packed(
    feature: Feature, source: Source, block: Any, out: Array, done: dict[Node, Array], scratch: Scratch
) -> None:
    values = done.get(source.node)
    packed_square(known_values(source, block) if values is None else values, out, scratch)


def _fill_sums_of_squares(
    feature: Feature, source: Source, block: Any, out: Array, done: dict[Node, Array], scratch: Scratch
) -> None:
    values = done[source.node].reshape(-1, out.shape[-1])
    np.einsum("ib,ib->b", values, values, out=out[0])


def _fill_squares(
    feature: Feature, source: Source, block: Any, out: Array, done: dict[Node, Array], scratch: Scratch
) -> None:
    values = done[source.node]
    np.multiply(values, values, out=out.reshape(values.shape))


def _fill_one_hot(feature: Feature, source: Source, block: Any, out: Array, *_: object) -> None:
    np.copyto(out, block[source.key] == np.arange(feature.n_labels or 0)[:, None])


def _fill_computed(feature: Feature, source: Source, block: Any, out: Array, *_: object) -> None:
    out[...] = feature.of_block(block, out.shape[-1]).reshape(out.shape)
