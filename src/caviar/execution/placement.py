"""The placement of the chunks of a source: each is sent to one worker once, and again if that worker was lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..lazy.silence import Watch
from .connection import Connection
from .on_worker import Piece

_MESSAGE_BYTES = 32 << 20
"""Bytes of data that are sent to a worker at once."""


class Lost(Exception):  # noqa: N818 (no error: what was lost is sent again)
    """Workers, and what they held, were lost."""


@dataclass(frozen=True, order=True)
class Slot:
    """One thread of a worker."""

    address: str
    thread: int


@dataclass(frozen=True)
class Placed:
    """A chunk, the thread that works on it, and the future of its rows."""

    chunk: Any
    slot: Slot
    future: Any


class Placement:
    """The chunks of one source on the workers of a cluster.

    Parameters
    ----------
    connection
        To the cluster.
    source
        Rows that can be cut.
    """

    def __init__(self, connection: Connection, source: Any) -> None:
        self.client = connection.client
        self.source = source
        self._watch, self._direct = connection.watch, connection.direct
        self._placed: dict[int, Placed] = {}

    def place(self, chunks: Iterable[Any], slots: Sequence[Slot]) -> None:
        """Send the chunks that do not lie on a worker yet: neighbours to the same thread, as many rows to each."""
        n_rows = self.source.n_rows
        wanted: dict[int, Slot] = {}
        new = []
        for chunk in chunks:
            if self.lacks(chunk):
                middle = (chunk.bounds[0][0] + chunk.bounds[-1][1]) // 2
                wanted[chunk.number] = slots[min(middle * len(slots) // n_rows, len(slots) - 1)]
                new.append(chunk)
        self._send(new, wanted)

    def repair(self, slots: Sequence[Slot]) -> None:
        """Send again what was lost, to the threads that have the least; what was moved is found where it is now."""
        held = whereabouts(self._watch, self.client, [placed.future for placed in self._placed.values()])
        load = dict.fromkeys(slots, 0)
        for placed in self._placed.values():
            if placed.slot in load:
                load[placed.slot] += 1
        lost, wanted = [], {}
        for number, placed in self._placed.items():
            where = held.get(placed.future.key, ())
            if placed.slot in load and placed.slot.address in where:
                continue
            slot = placed.slot
            if slot not in load:
                near = [slot for slot in slots if slot.address in where] or list(slots)
                slot = min(near, key=lambda own: load[own])
                load[slot] += 1
            if where:
                self._placed[number] = replace(placed, slot=slot)
                continue
            lost.append(placed.chunk)
            wanted[number] = slot
        self._send(lost, wanted)

    def lacks(self, chunk: Any) -> bool:
        """Whether a chunk was not sent yet."""
        before = self._placed.get(chunk.number)
        return before is None or before.chunk != chunk

    def at(self, chunk: Any) -> tuple[Slot, Any]:
        """Return the thread that a chunk belongs to, and the future of its rows."""
        placed = self._placed[chunk.number]
        return placed.slot, placed.future

    def release(self) -> None:
        """Let the workers forget the rows."""
        for placed in self._placed.values():
            placed.future.release()
        self._placed = {}

    def _send(self, chunks: Sequence[Any], slots: dict[int, Slot]) -> None:
        batch: list[tuple[Any, Piece]] = []
        for chunk in chunks:
            if batch and (
                slots[batch[-1][0].number].address != slots[chunk.number].address
                or sum(piece.nbytes for _, piece in batch) > _MESSAGE_BYTES
            ):
                self._scatter(batch, slots)
                batch = []
            batch.append((chunk, piece_of(self.source, chunk)))
        if batch:
            self._scatter(batch, slots)

    def _scatter(self, batch: Sequence[tuple[Any, Piece]], slots: dict[int, Slot]) -> None:
        address = slots[batch[0][0].number].address
        futures = self._watch.call(
            self.client.scatter,
            [piece for _, piece in batch],
            workers=[address],
            direct=self._direct,
            hash=False,
        )
        for (chunk, _), future in zip(batch, futures, strict=True):
            if chunk.number in self._placed:
                self._placed[chunk.number].future.release()
            self._placed[chunk.number] = Placed(chunk, slots[chunk.number], future)


def piece_of(source: Any, chunk: Any) -> Piece:
    """Return a source of the rows of a chunk, and the chunk with its bounds there."""
    first, last = chunk.bounds[0][0], chunk.bounds[-1][1]
    own = replace(chunk, bounds=tuple((start - first, stop - first) for start, stop in chunk.bounds))
    return Piece(source.between(first, last), own)


def whereabouts(watch: Watch, client: Any, futures: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    """Return the addresses of the workers that hold what was sent, by key; of what is lost nothing."""
    here = [future for future in futures if future.status == "finished"]
    return (
        {key: tuple(where) for key, where in watch.call(client.who_has, here).items() if where}
        if here
        else {}
    )
