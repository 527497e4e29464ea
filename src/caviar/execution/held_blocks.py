"""Blocks on a device: moved there once and kept while they fit, else moved again in each pass, beside the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .array_libraries import ArrayLibrary

_AHEAD = 2
"""Blocks that are moved before the device is done with the one that it works on."""

Bounds = tuple[int, int]


class HeldBlocks:
    """The blocks of one source of rows, prepared in one way.

    Parameters
    ----------
    layout
        How blocks are prepared, and moved: ``layout.move(rows, library)``.
    library
        The arrays of the device.
    read
        Returns the rows between two bounds.
    limit
        Bytes of blocks that are kept; None for any number.
    """

    def __init__(
        self, layout: Any, library: ArrayLibrary, read: Callable[[Bounds], Any], limit: int | None
    ) -> None:
        self.layout = layout
        self.scratch: Any = None
        """Buffers of the passes over these blocks."""
        self._library = library
        self._read = read
        self._limit = limit
        self._kept: dict[Bounds, Any] = {}
        self.n_bytes = 0
        """Bytes that are kept."""

    def __call__(self, bounds: Sequence[Bounds]) -> Iterator[Any]:
        """Yield the blocks between these bounds that have rows, in order."""
        if all(own in self._kept for own in bounds):
            yield from filter(None, map(self._kept.__getitem__, bounds))
            return
        with ThreadPoolExecutor(1, thread_name_prefix="caviar-device") as mover:
            ahead: deque[tuple[Bounds, Future[Any] | None]] = deque()
            marks: deque[Any] = deque([None] * _AHEAD, maxlen=_AHEAD)
            for own in bounds:
                future = None if own in self._kept else mover.submit(self._move, own, marks[0])
                ahead.append((own, future))
                if len(ahead) == _AHEAD:
                    yield from self._next(ahead)
                    marks.append(self._library.mark())
            while ahead:
                yield from self._next(ahead)

    def _next(self, ahead: deque[tuple[Bounds, Future[Any] | None]]) -> Iterator[Any]:
        own, future = ahead.popleft()
        block = self._kept[own] if future is None else self._arrived(own, *future.result())
        if block is not None:
            yield block

    def _move(self, bounds: Bounds, mark: Any) -> tuple[Any, Any]:
        """Return a block on the device, None if it has no rows, and what tells that it is there.

        First the device must have reached a mark, so that no more blocks wait for it than a few.
        """
        rows = self._read(bounds)
        if not rows.n_rows:
            return None, None
        self._library.reach(mark)
        with self._library.copying():
            return self.layout.move(rows, self._library), self._library.copied()

    def _arrived(self, bounds: Bounds, block: Any, copied: Any) -> Any:
        """Return a block that was moved, ready for use; keep it if it fits."""
        size = 0 if block is None else block.n_bytes
        if block is not None:
            arrays = [*block.columns.values(), *([] if block.weights is None else [block.weights])]
            self._library.arrived(copied, arrays)
        if self._limit is None or self.n_bytes + size <= self._limit:
            self._kept[bounds] = block
            self.n_bytes += size
        return block
