"""Rows that a graph of tasks computes: a cluster computes them where they are needed, so they need not come here.

What holds such rows is packed without them: the pickle refers to the pieces that they are made of,
which the cluster hands to the task that unpacks it.
"""

from __future__ import annotations

import io
import pickle
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from .._errors import CaviarError, ClusterError, DataError
from .._typing import AnyArray
from .rows import LazyRows


class Graph(Protocol):
    """Pieces of rows that a graph of tasks computes, as many as its collection has along its rows."""

    def client(self) -> Any:
        """Return the client of the cluster that computes them by default; None if this process does."""
        ...

    def futures(self, client: Any) -> list[Any]:
        """Have a cluster compute all pieces, and return the future of each.

        Raises
        ------
        DataError
            If what they are computed from is held by another cluster.
        """
        ...


class GraphRows(LazyRows):
    """Rows of pieces of a graph.

    Attributes
    ----------
    graph
        All pieces, also of other rows.
    """

    graph: Graph

    @abstractmethod
    def needed(self) -> tuple[range, Callable[[Sequence[Any]], AnyArray]]:
        """Return the numbers of the pieces that the rows are made of, and how: this can be pickled and compared."""


def is_graph(value: Any) -> bool:
    """Whether most of a source or of rows is made of rows of graphs: what else there is would have to be sent."""
    arrays = list(arrays_in(value))
    others = [array for array in arrays if type(array) is np.ndarray or not isinstance(array, GraphRows)]
    return len(others) < len(arrays) and 2 * _size(others) <= _size(arrays)


def arrays_in(value: Any) -> Iterator[Any]:
    """Yield the lazy rows and arrays in a source (its ``arrays``), each once."""
    seen: set[int] = set()
    several = [value]
    while several:
        own = several.pop()
        is_source = type(own) is not np.ndarray and hasattr(own, "between")
        parts = getattr(own, "arrays", None) if is_source else None
        if own is None or id(own) in seen:
            continue
        seen.add(id(own))
        if parts is None:
            yield own
        else:
            several += parts


def _size(arrays: Sequence[Any]) -> int:
    # of a sparse matrix the numbers that it holds
    return sum(int(array.size) for array in arrays)


@contextmanager
def explained() -> Iterator[None]:
    """Raise errors that say why a cluster cannot compute a graph.

    Raises
    ------
    DataError
        If the graph fails, or what it begins with is lost.
    ClusterError
        If workers die of it.
    """
    try:
        yield
    except (CaviarError, TimeoutError):
        raise
    except CancelledError as error:
        raise DataError(
            "the Dask collection was lost with a worker, and cannot be computed again, because its first "
            "data were scattered to the cluster. Make it again, and fit again"
        ) from error
    except Exception as error:
        # by name, for Dask is not imported here
        if type(error).__name__ == "CommClosedError":
            raise ClusterError(
                f"the connection to the cluster that computes the Dask collection was lost ({error}); "
                f"check that it still runs, and fit again"
            ) from error
        if type(error).__name__ == "KilledWorker":
            raise ClusterError(
                f"workers died while they computed the Dask collection ({error}); their logs say why. "
                f"Often memory is short: make smaller chunks, or give the workers more memory"
            ) from error
        raise DataError(
            f"a chunk of the Dask collection cannot be computed: {type(error).__name__}: {error}. Find it by "
            f"collection.compute()"
        ) from error


class Packer:
    """Packs what holds rows of graphs; the pieces of each graph are computed by the cluster once.

    Parameters
    ----------
    client
        Of the cluster. Pieces stay there while the packer exists, or a task that was given them has not run.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._computed: dict[int, tuple[Graph, list[Any]]] = {}

    def pack(self, value: Any) -> tuple[bytes, list[Any]]:
        """Return a pickle without the rows of graphs, and the pieces that :func:`unpacked` makes them from."""
        stream = io.BytesIO()
        pickler = _Pickler(stream, self._pieces)
        pickler.dump(value)
        return stream.getvalue(), pickler.pieces

    def _pieces(self, graph: Graph) -> list[Any]:
        if id(graph) not in self._computed:
            self._computed[id(graph)] = (graph, graph.futures(self._client))
        return self._computed[id(graph)][1]


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, pieces_of: Callable[[Graph], list[Any]]) -> None:
        super().__init__(stream, protocol=5)
        self.pieces: list[Any] = []
        self._pieces_of = pieces_of
        self._numbers: dict[tuple[int, int], int] = {}

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, GraphRows):
            return None
        numbers, made = obj.needed()
        return tuple(self._number(obj.graph, number) for number in numbers), made

    def _number(self, graph: Graph, number: int) -> int:
        place = id(graph), number
        if place not in self._numbers:
            self._numbers[place] = len(self.pieces)
            self.pieces.append(self._pieces_of(graph)[number])
        return self._numbers[place]


def unpacked(packed: bytes, pieces: Sequence[Any]) -> Any:
    """Return what was packed, with arrays in the place of rows of graphs; equal rows are one array."""
    return _Unpickler(io.BytesIO(packed), pieces).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, pieces: Sequence[Any]) -> None:
        super().__init__(stream)
        self._pieces = pieces
        self._made: dict[Any, AnyArray] = {}

    def persistent_load(self, pid: Any) -> AnyArray:
        numbers, made = pid
        if pid not in self._made:
            self._made[pid] = made([self._pieces[number] for number in numbers])
        return self._made[pid]
