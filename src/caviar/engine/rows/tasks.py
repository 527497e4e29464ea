"""Units of work: chunks of blocks of rows, and what is done with each of them wherever its rows are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from ..._typing import AnyArray, Array
from ..design.backend import Workspace
from ..design.keys import ColumnKey
from ..local.statistics import Coefficients, LocalState, Rows, Sums
from .row_model import RowModel
from .sequences import Over, one_by_one, summarize_sequences, tiles_of
from .terms.row_term import BlockWork

_MOST_CHUNKS = 128
"""Units of work that are handed to an executor: runs of blocks, so that handing over costs little."""

_KEPT_NUMBERS = 1 << 22
"""Features of all rows up to which those of each block are kept from pass to pass: 32 MB, however many threads."""


class RowSource(Protocol):
    """Where blocks of rows come from.

    A source that can be sent has ``between(start, stop)`` as well: these rows as a source of their own, whose pickle
    holds them or tells where they are. One without it, as the sample that starts are made from, is summed where it is.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the rows."""
        ...

    @property
    def has_single(self) -> bool:
        """Whether numbers are in float32 or less; a copy of all in float64 is then avoided."""
        ...

    @property
    def rows_together(self) -> int:
        """Rows that are read at the cost of one, as those of a row group of a file; 1 in memory."""
        ...

    def read(self, start: int, stop: int) -> Mapping[ColumnKey, AnyArray]:
        """Return the named columns from row ``start`` to ``stop``."""
        ...

    def weights(self, start: int, stop: int) -> Array | None:
        """Return the weights of these rows, or None where every row counts once."""
        ...

    def places(self, start: int, stop: int) -> slice | AnyArray:
        """Return the places of these rows in what is given or found for each row."""
        ...


@dataclass(frozen=True)
class Chunk:
    """A run of blocks: its number, and where its blocks start and stop."""

    number: int
    bounds: tuple[tuple[int, int], ...]


class Work(ABC):
    """What is done with a chunk of rows: sums, and what the same work on the same rows starts from the next time."""

    rows: RowModel
    """What stays the same from pass to pass."""

    @abstractmethod
    def __call__(self, source: RowSource, chunk: Chunk, carried: Any) -> tuple[Sums, Any]:
        """Return the sums over a chunk of a source, and what is carried over."""

    def spread(self, over: Over) -> Work:
        """Return the same work, the parts of a block done with the help of others: for a chunk without another."""
        return self

    @abstractmethod
    def task(self) -> Callable[..., Work]:
        """Return what of it changes from pass to pass: with ``rows`` and ``scratch`` elsewhere it is the same work."""


class SumBlocks(Work):
    """Sums over blocks, block by block; what is carried over does not change."""

    def __call__(self, source: RowSource, chunk: Chunk, carried: Any) -> tuple[Sums, Any]:
        total = Sums.zero()
        for bounds, before in zip(chunk.bounds, carried or [{}] * len(chunk.bounds), strict=True):
            rows = rows_at(source, bounds)
            for own in self.sums(rows, before) if rows.n_rows else ():
                total.add(own)
        return total, carried

    @abstractmethod
    def sums(self, rows: Rows, before: LocalState) -> Iterable[Sums]:
        """Return the sums over the parts of a block, which are added up in this order."""


@dataclass(frozen=True)
class InferBlocks(Work):
    """Local factors at their optimum, and the sums over them; local factors are carried over where they are kept."""

    rows: RowModel
    coefficients: Coefficients
    scratch: Workspace = field(default_factory=Workspace)
    over: Over = one_by_one
    exact: bool = True
    """Whether an executor that works in float32 has to work in float64."""
    is_whole: bool = True
    """Whether a source is all there is, and not one of many pieces of it."""
    keeps: bool = True
    """Whether local factors are carried over where the rows keep them."""

    def __call__(
        self, source: RowSource, chunk: Chunk, carried: list[LocalState] | None
    ) -> tuple[Sums, list[LocalState] | None]:
        """Return the sums over a chunk, and the local factors of its blocks."""
        total, after = None, []
        for bounds, before in zip(chunk.bounds, carried or [{}] * len(chunk.bounds), strict=True):
            rows, state = self._rows(source, bounds), before
            if rows.n_rows:
                sums, state = self._summarize(rows, before)
                if total is None:
                    total = sums.copied()
                else:
                    total.add(sums)
            if self.keeps and self.rows.keeps_locals:
                after.append(state)
        return total or Sums.zero(), after or None

    def _rows(self, source: RowSource, bounds: tuple[int, int]) -> Rows:
        """Return a block of rows: of a piece of a source, which is another object in each pass, nothing is kept."""
        return (
            kept_rows(self.rows, source, bounds, self.scratch) if self.is_whole else rows_at(source, bounds)
        )

    def _summarize(self, rows: Rows, before: LocalState) -> tuple[Sums, LocalState]:
        if not self.rows.chains:
            return self.rows.summarize(BlockWork(rows, self.coefficients, self.scratch, before))
        return summarize_sequences(self.rows, rows, self.coefficients, self.scratch, self.over, before)

    def spread(self, over: Over) -> InferBlocks:
        """Return the same work, the tiles of a long sequence done with the help of others."""
        return self if not self.rows.chains else replace(self, over=over)

    def task(self) -> Callable[..., Work]:
        coefficients = self.coefficients.of_parts(self.rows.parts_of_messages)
        return partial(InferBlocks, coefficients=coefficients, is_whole=False)


@dataclass(frozen=True)
class SumStatic(SumBlocks):
    """The sums that no local factor enters."""

    rows: RowModel
    scratch: Workspace = field(default_factory=Workspace)

    def sums(self, rows: Rows, before: LocalState) -> Iterable[Sums]:
        tiles = [own for _, own in tiles_of(self.rows, rows)] if self.rows.chains else [rows]
        return (self.rows.sum_static(own, self.scratch) for own in tiles)

    def task(self) -> Callable[..., Work]:
        return SumStatic


def kept_rows(model: RowModel, source: RowSource, bounds: tuple[int, int], scratch: Workspace) -> Rows:
    """Return a block of rows, without those of weight zero: the same ones each time where all features are few.

    Of one block there is no other. Features of many are kept where they take little memory, and are no copies in more
    digits. Others go into one buffer, block after block: a new one for each takes longer than to fill it.
    """
    if model.chains:
        return rows_at(source, bounds)
    if bounds[1] - bounds[0] != source.n_rows:
        numbers = source.n_rows * model.n_kept
        if not 0 < numbers <= _KEPT_NUMBERS or source.has_single:
            return rows_at(source, bounds)

    def with_tables() -> Rows:
        # features are kept as long as their model is there
        return replace(rows_at(source, bounds), tables=WeakKeyDictionary())

    return scratch.kept(("rows with features", bounds), (source,), with_tables, shared=True)


def blocks_of(
    model: RowModel, source: RowSource, most_rows: int | None = None, block_rows: int | None = None
) -> list[tuple[int, int]]:
    """Return where blocks of rows by themselves start and stop; they depend on the model and the number of rows only.

    They have as many rows as the model likes best, or ``block_rows`` where an executor likes others, and no more than
    ``most_rows``.
    """
    size, total = min(block_rows or model.block_rows, most_rows or source.n_rows), source.n_rows
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def chunks_of(
    model: RowModel, source: RowSource, fewest: int = 1, block_rows: int | None = None
) -> list[Chunk]:
    """Return rows by themselves in chunks of blocks, in ``fewest`` of them or more as far as there are rows."""
    return chunked(blocks_of(model, source, max(1, source.n_rows // fewest), block_rows), fewest)


def chunked(bounds: list[tuple[int, int]], fewest: int = 1) -> list[Chunk]:
    """Return runs of blocks, ``fewest`` or more as far as there are blocks."""
    length = max(1, -(-len(bounds) // max(_MOST_CHUNKS, 2 * fewest)))
    starts = range(0, len(bounds), length)
    return [Chunk(number, tuple(bounds[start : start + length])) for number, start in enumerate(starts)]


def rows_at(source: RowSource, bounds: tuple[int, int], *, every: bool = False) -> Rows:
    """Return a block of rows, without those of weight zero unless ``every`` row is wanted."""
    columns, weights, where = source.read(*bounds), source.weights(*bounds), source.places(*bounds)
    if every or weights is None or weights.all():
        return Rows(columns, weights, bounds[1] - bounds[0], where)
    kept = np.flatnonzero(weights)
    columns = {name: rows[kept] for name, rows in columns.items()}
    places = bounds[0] + kept if isinstance(where, slice) else where[kept]
    return Rows(columns, weights[kept], len(kept), places)
