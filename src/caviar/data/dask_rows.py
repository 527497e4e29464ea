"""Rows of Dask arrays and DataFrames: of a chunk, nothing but what it needs is computed."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._errors import DataError
from .._typing import AnyArray
from ..lazy.graph_rows import GraphRows, explained
from .pieces import PieceRows


def dask_rows(value: Any) -> DaskRows:
    """Return a Dask array, DataFrame or Series as rows.

    Chunks whose numbers of rows are unknown, as those of DataFrames, are computed once to find out.

    Raises
    ------
    DataError
        If it is no such collection, or does not hold numbers.
    """
    if _is_array(value):
        return _array_rows(value)
    if is_collection(value):
        return _frame_rows(value)
    raise DataError(
        f"expected a Dask array, DataFrame or Series; got {type(value).__name__}, so compute it first"
    )


def is_collection(value: Any) -> bool:
    """Whether it is a Dask array, DataFrame or Series."""
    return _is_array(value) or (hasattr(value, "partitions") and hasattr(value, "map_partitions"))


def _is_array(value: Any) -> bool:
    return hasattr(value, "chunks") and hasattr(value, "blocks")


def _array_rows(value: Any) -> DaskRows:
    if value.ndim == 0 or value.dtype.kind not in "biuf":
        raise DataError(
            f"a Dask array of data must hold numbers, rows first; got {value.ndim} axes of {value.dtype}"
        )
    if any(np.isnan(size) for sizes in value.chunks for size in sizes):
        with explained():
            value = value.compute_chunk_sizes()
    whole = _Collection(value, is_array=True)
    return DaskRows(_DaskPieces(whole, tuple(map(int, value.chunks[0])), value.shape[1:], value.dtype))


def _frame_rows(value: Any) -> DaskRows:
    is_table = value.ndim == 2
    kinds = dict(value.dtypes.items()) if is_table else {str(value.name): value.dtype}
    for name, kind in kinds.items():
        # pandas's own types of numbers, which know missing values, have the kind too
        if getattr(kind, "kind", "O") not in "biuf":
            raise DataError(
                f"the column {name!r} of the Dask DataFrame does not hold numbers: its type is {kind}. Choose columns "
                f"of numbers, ddf[[...]]"
            )
    whole = _Collection(value, is_array=False)
    with explained():
        found = value.map_partitions(len).compute(**whole.scheduler())
    lengths = tuple(int(length) for length in found)
    single = all(getattr(kind, "itemsize", 8) == 4 and kind.kind == "f" for kind in kinds.values())
    dtype = np.dtype(np.float32 if single else np.float64)
    return DaskRows(_DaskPieces(whole, lengths, (len(kinds),) if is_table else (), dtype))


def chunks_of_large_integers(value: Any, limit: int) -> Iterator[Any]:
    """Yield the chunks of a Dask collection if it has whole numbers of 64 bits beyond a limit, which takes a pass.

    Parameters
    ----------
    value
        The collection.
    limit
        The largest number, apart from its sign, for which no chunk is yielded.
    """
    whole = _Collection(value, is_array=_is_array(value))
    if whole.is_array or value.ndim == 1:
        wide = value if _has_64_bits(value.dtype) else None
    else:
        names = [name for name, kind in value.dtypes.items() if _has_64_bits(kind)]
        wide = value[names] if names else None
    if wide is None or (whole.is_array and not wide.size):
        return
    with explained():
        ends = sys.modules["dask.base"].compute(wide.min(), wide.max(), **whole.scheduler())
    own = [np.asarray(end, dtype=np.float64).reshape(-1) for end in ends]
    if not np.fmax.reduce(np.abs(np.concatenate(own))) > limit:
        return
    for number in range(len(value.chunks[0]) if whole.is_array else value.npartitions):
        yield whole.compute(number)


def _has_64_bits(kind: Any) -> bool:
    """Whether a type, NumPy's or one of pandas, is one of whole numbers of 64 bits."""
    return getattr(kind, "kind", "O") in "iu" and kind.itemsize == 8


class DaskRows(PieceRows, GraphRows):
    """Rows of a Dask collection: they are computed here, or on a cluster that keeps them."""

    def __init__(self, pieces: _DaskPieces, start: int = 0, stop: int | None = None) -> None:
        super().__init__(pieces, start, stop)
        self.graph, self._join = pieces.whole, pieces.joined(start, start + self.shape[0])

    def needed(self) -> tuple[range, _Join]:
        first, several = self._join.first, math.prod(self._join.grid)
        return range(first * several, (first + len(self._join.lengths)) * several), self._join


class _Collection:
    """A collection, shared by all rows of it.

    Parameters
    ----------
    value
        A Dask array, DataFrame or Series.
    is_array
        Whether it is an array.
    """

    def __init__(self, value: Any, *, is_array: bool) -> None:
        self.value, self.is_array = value, is_array

    def part(self, first: int, last: int) -> _Collection:
        """Return chunks by themselves, with no more of the graph than they need."""
        own = self.value
        return _Collection(
            own.blocks[first:last] if self.is_array else own.partitions[first:last], is_array=self.is_array
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(_Collection, is_array=self.is_array), (self.value,)

    @cached_property
    def owner(self) -> Any:
        """The client through which chunks were persisted; None if none is held by a cluster."""
        for task in dict(self.value.__dask_graph__()).values():
            if _is_future(_own(task)):
                return _own(task).client
        return None

    def client(self) -> Any:
        """Return the client of the cluster that holds it, or that Dask would ask; None if there is none."""
        return self.owner if self.owner is not None else getattr(_chosen(), "__self__", None)

    def scheduler(self) -> dict[str, Any]:
        """Return where a chunk is computed: in the thread that wants it, unless a cluster holds what it needs."""
        if self.owner is not None:
            return {"scheduler": self.owner}
        return {} if _chosen() is not None else {"scheduler": "synchronous"}

    def compute(self, number: int) -> Any:
        """Return a chunk."""
        with explained():
            return self.part(number, number + 1).value.compute(**self.scheduler())

    def futures(self, client: Any) -> list[Any]:
        """Have a cluster compute all chunks; return a future of each, those of the same rows after one another."""
        theirs, ours = (_address(own) for own in (self.owner or client, client))
        if theirs != ours:
            raise DataError(
                f"the Dask collection was persisted on the cluster at {theirs}, and the executor works on the one at "
                f"{ours}; fit with the client it was persisted through, executor=cv.DaskExecutor(client), or give the "
                f"collection that it was made from"
            )
        if self.owner is client and all(map(_is_future, held := self._held())):
            return held
        delayed = self.value.to_delayed()
        return client.compute(delayed.ravel().tolist() if self.is_array else list(delayed))

    @property
    def columns(self) -> tuple[Any, ...]:
        """Names of the columns of a DataFrame; none of others."""
        return () if self.is_array or self.value.ndim == 1 else tuple(self.value.columns)

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of chunks along each axis but the rows."""
        return tuple(map(len, self.value.chunks[1:])) if self.is_array else ()

    def _held(self) -> list[Any]:
        """Return the future of each chunk of the graph."""
        keys, graph = self.value.__dask_keys__(), dict(self.value.__dask_graph__())
        for _ in self.grid:
            keys = [key for several in keys for key in several]
        held = [graph[key] for key in keys]
        while any(hasattr(task, "target") for task in held):
            # other names of the same
            held = [graph[task.target] if hasattr(task, "target") else task for task in held]
        return list(map(_own, held))


def _own(task: Any) -> Any:
    """Return what a graph holds: newer versions wrap what is not a task."""
    return getattr(task, "value", task)


def _is_future(value: Any) -> bool:
    return type(value).__module__ == "distributed.client" and hasattr(value, "client")


def _chosen() -> Any:
    base = sys.modules.get("dask.base")
    return None if base is None else base.get_scheduler()


def _address(client: Any) -> str:
    return str(getattr(getattr(client, "scheduler", None), "address", "an unknown address"))


@dataclass(frozen=True, eq=False)
class _DaskPieces:
    """Successive chunks of a collection along its rows; the first is number ``first`` of all."""

    whole: _Collection
    lengths: tuple[int, ...]
    event_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    first: int = 0
    label: str = "the Dask collection"

    def decode(self, number: int) -> AnyArray:
        found = self.whole.compute(self.first + number)
        # a copy: the graph may hold the very array
        return np.array(self.joined(0, self.lengths[number], number)([found]))

    def part(self, first: int, last: int) -> _DaskPieces:
        return _DaskPieces(
            self.whole, self.lengths[first:last], self.event_shape, self.dtype, self.first + first
        )

    def joined(self, start: int, stop: int, only: int | None = None) -> _Join:
        """Return how rows are made from all chunks, or from one."""
        first, lengths, grid = self.first, self.lengths, self.whole.grid
        if only is not None:
            first, lengths, grid = first + only, lengths[only : only + 1], ()
        columns = self.whole.columns
        return _Join(
            lengths, self.event_shape, self.dtype, self.whole.is_array, grid, first, start, stop, columns
        )

    def __reduce__(self) -> tuple[Any, ...]:
        own = self.whole.part(self.first, self.first + len(self.lengths))
        return _DaskPieces, (own, self.lengths, self.event_shape, self.dtype)


@dataclass(frozen=True)
class _Join:
    """Rows from ``start`` to ``stop`` of successive chunks, as one array.

    Attributes
    ----------
    lengths
        Rows of each chunk.
    event_shape, dtype
        Of a row.
    is_array
        Whether chunks are arrays, not tables.
    grid
        Number of parts of a chunk along each axis but the rows.
    first
        Number of the first chunk, for messages.
    start, stop
        Which rows, from the first of these chunks on.
    columns
        Names of the columns of tables, by which those of each chunk are found.
    """

    lengths: tuple[int, ...]
    event_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_array: bool
    grid: tuple[int, ...]
    first: int
    start: int
    stop: int
    columns: tuple[Any, ...] = ()

    def __call__(self, values: Sequence[Any]) -> AnyArray:
        """Return the rows; they are a view of a chunk where that has them as they are wanted."""
        found, before, several = [], 0, math.prod(self.grid)
        for number, length in enumerate(self.lengths):
            start, stop = max(self.start - before, 0), min(self.stop - before, length)
            if start < stop:
                found.append(
                    self._rows(number, values[number * several : (number + 1) * several], start, stop)
                )
            before += length
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.empty((0, *self.event_shape), self.dtype)

    def _rows(self, number: int, parts: Sequence[Any], start: int, stop: int) -> AnyArray:
        """Return some rows of a chunk, cut before they are converted: nothing else of the chunk is held."""
        cut = [own[start:stop] if self.is_array else self._numbers(number, own, start, stop) for own in parts]
        for axis in range(len(self.grid), 0, -1):
            n = self.grid[axis - 1]
            if n > 1:
                cut = [np.concatenate(cut[at : at + n], axis=axis) for at in range(0, len(cut), n)]
        lengths, expected = {len(own) for own in parts}, (self.lengths[number], *self.event_shape)
        if lengths != {expected[0]} or cut[0].shape[1:] != self.event_shape:
            shape = (*lengths, *cut[0].shape[1:])
            raise DataError(
                f"chunk {self.first + number} of the Dask collection has shape {shape}, but its plan says "
                f"{expected}; the data must not change while they are read"
            )
        return np.ascontiguousarray(cut[0], dtype=self.dtype)

    def _numbers(self, number: int, frame: Any, start: int, stop: int) -> AnyArray:
        """Return some rows of a chunk that is a table, its columns in the order of the plan."""
        which = f"chunk {self.first + number} of the Dask collection"
        if self.columns and tuple(frame.columns) != self.columns:
            if sorted(map(str, frame.columns)) != sorted(map(str, self.columns)):
                raise DataError(
                    f"{which} has the columns {_in_words(frame.columns)}, but its plan says {_in_words(self.columns)}; "
                    f"give all chunks the same columns before they are one collection"
                )
            frame = frame[list(self.columns)]
        try:
            return frame.iloc[start:stop].to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{which} does not hold numbers, though its plan says so: {error}. Choose columns of numbers, "
                f"ddf[[...]]"
            ) from error


def _in_words(names: Any) -> str:
    return ", ".join(map(repr, names))
