"""Functions of blocks of rows outside the engine's passes: mapped here, or where a cluster computes the rows.

Blocks are cut from row 0, and results are given in their order, so sums over them have the same bits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from .._version import versions
from ..numerics.blas import one_blas_thread
from .graph_rows import GraphRows, Packer, arrays_in, explained, is_graph, unpacked
from .rows import BLOCK_ROWS, LazyRows
from .silence import Watch

R = TypeVar("R")

_RUNS = 128
"""Runs that rows are cut into for a cluster, if these have between the fewest and the most blocks."""
_FEWEST_BLOCKS = 16
_MOST_BLOCKS = 64
_TOGETHER = 64
"""Runs whose findings are fetched at once."""

_alike: WeakSet[Any] = WeakSet()
"""Clients of clusters whose workers were found to have the versions of this process."""


def map_blocks(function: Callable[..., R], *arrays: Any, size: int = BLOCK_ROWS) -> Iterator[tuple[int, R]]:
    """Yield (first row, ``function(block, ...)``) of blocks of arrays or lazy rows, in order.

    Parameters
    ----------
    function
        Of a block of each array; a function of a module or a picklable object, because it may be sent.
    arrays
        With as many rows each; None in the place of one is given to the function as it is.
    size
        Rows of a block.
    """
    n_rows = len(arrays[0])
    is_here = not [own for own in arrays if own is not None and type(own) is not np.ndarray]
    if is_here and 0 < n_rows <= size:
        yield 0, function(*arrays)
        return
    together = _Together(arrays)
    if is_here or not is_cut(together):
        for start in range(0, n_rows, size):
            yield start, function(*together.blocks(start, start + size))
        return
    for first, found in map_runs(_EachBlock(function, size), together, n_rows, size):
        for number, own in enumerate(found):
            yield first + number * size, own


def map_runs(
    function: Callable[[Any, int], R], source: Any, n_rows: int, unit: int
) -> Iterator[tuple[int, R]]:
    """Yield (first row, ``function(rows, how many)``) of runs of a source, in order: one run if all is done here.

    Parameters
    ----------
    function
        It can be pickled, and what it returns is small.
    source
        Rows that can be cut by ``between(start, stop)``.
    unit
        Rows of which a run has a multiple.
    """
    client = _client_of(source)
    if client is None:
        yield 0, function(source, n_rows)
        return
    n_blocks = -(-n_rows // unit)
    length = unit * min(max(-(-n_blocks // _RUNS), _FEWEST_BLOCKS), _MOST_BLOCKS)
    starts = range(0, n_rows, length)
    futures: list[Any] = []
    watch = Watch(client)
    try:
        with explained():
            _submit(client, futures, function, source, [(at, min(at + length, n_rows)) for at in starts])
        for at in range(0, len(starts), _TOGETHER):
            with explained():
                watch.wait(futures[at : at + _TOGETHER])
                found = watch.call(client.gather, futures[at : at + _TOGETHER])
            yield from zip(starts[at : at + _TOGETHER], found, strict=True)
    finally:
        for future in futures:
            future.release()


def _submit(
    client: Any, futures: list[Any], function: Any, source: Any, bounds: Sequence[tuple[int, int]]
) -> None:
    """Add the future of the findings in each run to ``futures``; nothing of the rows is kept after that."""
    packer = Packer(client)
    for start, stop in bounds:
        packed, pieces = packer.pack((function, source.between(start, stop), stop - start))
        futures.append(client.submit(_run, packed, pieces, pure=False))


def is_cut(source: Any) -> bool:
    """Whether :func:`map_runs` cuts a source into runs."""
    return _client_of(source) is not None


def _run(packed: bytes, pieces: Sequence[Any]) -> Any:
    """Return what a function finds in a run, on the worker that computes its rows."""
    function, source, n_rows = unpacked(packed, pieces)
    with one_blas_thread():
        return function(source, n_rows)


def _client_of(source: Any) -> Any:
    """Return the client of the one cluster that computes rows of a source; None if they are to be read here."""
    if not is_graph(source):
        return None
    lazy = [array for array in arrays_in(source) if isinstance(array, LazyRows)]
    # files that are read here need not be there
    if not all(isinstance(rows, GraphRows) for rows in lazy):
        return None
    graphs = {id(rows.graph): rows.graph for rows in lazy if isinstance(rows, GraphRows)}
    clients = [graph.client() for graph in graphs.values()]
    return clients[0] if all(own is clients[0] for own in clients) and _takes_work(clients[0]) else None


def _takes_work(client: Any) -> bool:
    """Whether a client can be waited for here, and its workers give the bits of this process."""
    if client is None or client.asynchronous or client.status != "running" or _is_in_task():
        return False
    if client not in _alike:
        mine = versions()
        theirs = Watch(client).call(client.run, versions, on_error="return")
        if not theirs or any(own != mine for own in theirs.values()):
            return False
        try:
            # it reads what is sent to workers, of whatever version
            client.run_on_scheduler(versions)
        except Exception:  # noqa: BLE001 (whatever it says, it cannot read what is sent)
            return False
        _alike.add(client)
    return True


def _is_in_task() -> bool:
    """Whether this is a task of a cluster, which would wait for tasks that have no thread left."""
    worker = sys.modules.get("distributed.worker")
    if worker is not None:
        with suppress(ValueError):
            worker.get_worker()
            return True
    return False


@dataclass(frozen=True, eq=False)
class _Together:
    """Several arrays as one source."""

    arrays: tuple[Any, ...]

    def blocks(self, start: int, stop: int) -> list[Any]:
        """Return the rows from ``start`` until before ``stop`` of each."""
        return [None if array is None else array[start:stop] for array in self.arrays]

    def between(self, start: int, stop: int) -> _Together:
        """Return a source of these rows."""
        return _Together(tuple(_between(array, start, stop) for array in self.arrays))


def _between(array: Any, start: int, stop: int) -> Any:
    if isinstance(array, LazyRows):
        return array.between(start, stop)
    return None if array is None else array[start:stop]


@dataclass(frozen=True, eq=False)
class _EachBlock:
    """A function of each block of a run."""

    function: Callable[..., Any]
    size: int

    def __call__(self, rows: _Together, n_rows: int) -> list[Any]:
        starts = range(0, n_rows, self.size)
        return [self.function(*rows.blocks(start, start + self.size)) for start in starts]


def largest_of(rows: Any) -> float:
    """Return the largest size of an entry, block by block."""
    return max((found for _, found in map_blocks(_largest, rows)), default=0.0)


def total_of(weights: Any) -> float:
    """Return the sum of weights, block by block: the same bits wherever they are held."""
    return float(sum(found for _, found in map_blocks(_total, weights)))


def all_of(rows: Any) -> bool:
    """Whether all entries are true."""
    return all(found for _, found in map_blocks(_all, rows))


def any_of(rows: Any) -> bool:
    """Whether any entry is true."""
    return any(found for _, found in map_blocks(_any, rows))


def _largest(block: Any) -> float:
    return float(np.max(np.abs(block), initial=0.0))


def _total(block: Any) -> float:
    return float(np.sum(block, dtype=np.float64))


def _all(block: Any) -> bool:
    return bool(block.all())


def _any(block: Any) -> bool:
    return bool(block.any())
