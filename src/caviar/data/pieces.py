"""Pieces: rows that are stored in runs, of which each is decoded as a whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, Self
from weakref import WeakValueDictionary

import numpy as np

from .._typing import AnyArray
from ..lazy.rows import LazyRows

_KEPT = 2
_KEPT_BYTES = 32 * 2**20
"""Each thread keeps the last pieces that it read: two, if they are small, as a block may lie across two."""


class Pieces(Protocol):
    """Consecutive runs of rows, as they are stored.

    Attributes
    ----------
    label
        Name of the rows in messages.
    lengths
        Rows of each piece.
    event_shape, dtype
        Of a row.
    """

    @property
    def label(self) -> str: ...

    @property
    def lengths(self) -> tuple[int, ...]: ...

    @property
    def event_shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def decode(self, number: int) -> AnyArray:
        """Return a piece as an array of rows, shape (length, event shape...)."""
        ...

    def part(self, first: int, last: int) -> Pieces:
        """Return the pieces from ``first`` until before ``last``."""
        ...


class CutPieces(Pieces, Protocol):
    """Pieces of which some rows are read as fast as they are many: nothing has to be decoded."""

    def rows(self, start: int, stop: int) -> AnyArray:
        """Return the rows between two places, counted from the first row of the first piece."""
        ...


class PieceRows(LazyRows):
    """Rows in pieces: a block is a slice of the piece that was decoded last, or of two."""

    def __init__(self, pieces: Pieces, start: int = 0, stop: int | None = None) -> None:
        self.pieces, self.label = pieces, pieces.label
        self._ends = np.cumsum(pieces.lengths, dtype=np.int64)
        whole = int(self._ends[-1]) if len(self._ends) else 0
        self._start, stop = start, whole if stop is None else stop
        self.shape, self.dtype = (stop - start, *pieces.event_shape), pieces.dtype
        self.together = max(pieces.lengths, default=1)
        self._cache = _Cache(pieces.decode)

    def read(self, start: int, stop: int) -> AnyArray:
        if start >= stop:
            return np.empty((0, *self.shape[1:]), self.dtype)
        start, stop = start + self._start, stop + self._start
        first, last = (int(n) for n in np.searchsorted(self._ends, (start, stop - 1), side="right"))
        found = []
        for number in range(first, last + 1):
            piece = self._cache.get(number)
            before = int(self._ends[number]) - len(piece)
            found.append(piece[max(start - before, 0) : stop - before])
        if len(found) == 1:
            return found[0]
        return np.concatenate(found)

    def between(self, start: int, stop: int) -> Self:
        start, stop = start + self._start, stop + self._start
        first = int(np.searchsorted(self._ends, start, side="right"))
        last = int(np.searchsorted(self._ends, max(stop - 1, start), side="right")) + 1
        before = int(self._ends[first - 1]) if first else 0
        return type(self)(self.pieces.part(first, last), start - before, stop - before)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.pieces, self._start, self._start + self.shape[0])

    def __repr__(self) -> str:
        return f"<{' x '.join(f'{size:,}' for size in self.shape)} numbers ({self.dtype}) of {self.label}>"


class CutRows(PieceRows):
    """Rows in pieces, of which no more are read than are asked for."""

    pieces: CutPieces

    def read(self, start: int, stop: int) -> AnyArray:
        if start >= stop:
            return np.empty((0, *self.shape[1:]), self.dtype)
        found = self.pieces.rows(start + self._start, stop + self._start)
        found.flags.writeable = False
        return found


class _Held:
    """A piece while somebody holds it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: AnyArray | None = None


class _Cache:
    """The pieces that threads read last. Threads that want the same piece share one, decoded once."""

    def __init__(self, decode: Callable[[int], AnyArray]) -> None:
        self._decode = decode
        self._lock = threading.Lock()
        self._shared: WeakValueDictionary[int, _Held] = WeakValueDictionary()
        self._own = threading.local()

    def get(self, number: int) -> AnyArray:
        """Return a piece."""
        kept: dict[int, _Held] = self._own.__dict__.setdefault("kept", {})
        held = kept.get(number)
        if held is None:
            # what is given up makes room before the next piece is decoded
            size = max(
                (0 if held.values is None else held.values.nbytes for held in kept.values()), default=0
            )
            while kept and (len(kept) >= _KEPT or 2 * size > _KEPT_BYTES):
                del kept[next(iter(kept))]
            with self._lock:
                held = self._shared.get(number) or self._shared.setdefault(number, _Held())
        with held.lock:
            if held.values is None:
                values = self._decode(number)
                values.flags.writeable = False
                held.values = values
        kept[number] = held
        return held.values
